// gpu_support.hpp - what tests on a GPU share: the context, device copies, packs.
#pragma once

#include <gtest/gtest.h>

#include "dispatch/product.hpp"
#include "unit/weights/matrices.hpp"
#include "weights/weights.hpp"

namespace glyd::test {

// Fails the test with the error's text.
template <typename T>
T take(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(result).value();
}
inline void take(Result<void> result) {
  if (!result) throw std::runtime_error(result.error().message);
}
inline void take(cudaError_t error) { take(cuda::cuda_check(error, "cuda")); }

class GpuTest : public testing::Test {
 protected:
  static cuda::Context& context() {
    static const std::unique_ptr<cuda::Context> context = take(cuda::Context::create({}));
    return *context;
  }
  void SetUp() override {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) GTEST_SKIP() << "no GPU";
  }
};

inline cuda::DeviceBuffer upload(const void* data, uint64_t bytes) {
  auto buffer = take(cuda::DeviceBuffer::allocate(bytes));
  take(cudaMemcpy(buffer.as<void>(), data, bytes, cudaMemcpyHostToDevice));
  return buffer;
}
inline cuda::DeviceBuffer upload(const Values& values) { return upload(values.data(), values.size() * 2); }
inline Values download(const cuda::DeviceBuffer& buffer, uint64_t count) {
  Values values(count);
  take(cudaMemcpy(values.data(), buffer.as<void>(), count * 2, cudaMemcpyDeviceToHost));
  return values;
}
// Device memory in which every byte is 0xff, so that what is not written shows.
inline cuda::DeviceBuffer poisoned(uint64_t bytes) {
  auto buffer = take(cuda::DeviceBuffer::allocate(bytes));
  take(cudaMemset(buffer.as<void>(), 0xff, bytes));
  return buffer;
}

inline Values make_values(const std::string& kind, const Grid& grid, uint64_t seed) {
  return make_values(matrix_kind(kind), grid.stack * grid.rows * grid.cols, grid.cols, seed);
}

// A pack on the host and on the device.
struct UploadedPack {
  AlignedBuffer host;
  cuda::DeviceBuffer device;
  std::unique_ptr<cuda::DevicePack> pack;
};
inline UploadedPack upload_pack(cuda::Context& context, AlignedBuffer host) {
  auto device = upload(host.data(), host.size());
  auto pack =
      take(cuda::DevicePack::open(context, host.bytes().first(kPackHeaderBytes), host.size(), device.as<void>()));
  return {std::move(host), std::move(device), std::move(pack)};
}
inline UploadedPack pack_on_gpu(cuda::Context& context, const Values& values, const Grid& grid, bool transposed,
                                Layout layout) {
  return upload_pack(context, take(pack_tensor(values, grid, transposed, layout, 0)));
}

}  // namespace glyd::test
