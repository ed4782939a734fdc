// device.hpp - what the host asks of the driver: limits of a GPU, maps of x for the copy engine, errors as Result.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "base/result.hpp"
#include "dispatch/ahead_plan.hpp"
#include "dispatch/staged_plan.hpp"
#include "dispatch/wide_plan.hpp"

namespace glyd::cuda {

// Names the call and CUDA's own words.
Result<void> cuda_check(cudaError_t error, const char* call);

struct DeviceInfo {
  int ordinal = 0;
  int compute_major = 0, compute_minor = 0;
  std::string name, driver;  // the driver's version as the kernel module tells it, "580.65.06"
  DeviceLimits limits;
};
Result<DeviceInfo> read_device(int ordinal);

// Makes a device current for as long as it lives.
class ScopedDevice {
 public:
  explicit ScopedDevice(int ordinal) {
    if (cudaGetDevice(&previous_) == cudaSuccess && previous_ != ordinal)
      changed_ = cudaSetDevice(ordinal) == cudaSuccess;
  }
  ~ScopedDevice() {
    if (changed_) cudaSetDevice(previous_);
  }
  ScopedDevice(const ScopedDevice&) = delete;
  ScopedDevice& operator=(const ScopedDevice&) = delete;

 private:
  int previous_ = 0;
  bool changed_ = false;
};

// Device memory of a scope.
class DeviceBuffer {
 public:
  static Result<DeviceBuffer> allocate(uint64_t bytes);
  DeviceBuffer() = default;
  DeviceBuffer(DeviceBuffer&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    return *this;
  }
  ~DeviceBuffer() {
    if (data_ != nullptr) cudaFree(data_);
  }
  template <typename T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
};

// Whether the copy engine can read such rows of x.
bool x_is_mappable(const void* x, uint64_t x_stride);

// The map by which the kernel of `plan` reads x [tokens, cols]: boxes of 64 columns by the tile's tokens (by several
// times 64 columns where cols divide), rows in 128-byte lines, swizzled. What lies outside arrives as zeros.
Result<void> map_x(const LinearPlan& plan, const uint16_t* x, uint64_t x_stride, CUtensorMap& map);
// The same for the other kernels: boxes of 64 columns by the tile's tokens.
Result<void> map_x(const StagedPlan& plan, const uint16_t* x, uint64_t x_stride, CUtensorMap& map);
Result<void> map_x(const WidePlan& plan, const uint16_t* x, uint64_t x_stride, CUtensorMap& map);
Result<void> map_x(const AheadPlan& plan, const uint16_t* x, uint64_t x_stride, CUtensorMap& map);
// The map by which the kernel that decodes ahead writes y [tokens, rows]: boxes of 64 rows by 16 tokens.
Result<void> map_y(const AheadPlan& plan, uint16_t* y, uint64_t y_stride, CUtensorMap& map);

}  // namespace glyd::cuda
