#include "dispatch/device.hpp"

#include <cctype>
#include <fstream>
#include <utility>

namespace glyd::cuda {
namespace {

using EncodeTiled = decltype(&cuTensorMapEncodeTiled);

EncodeTiled encode_tiled() {
  static const EncodeTiled function = [] {
    void* entry = nullptr;
    cudaDriverEntryPointQueryResult result{};
    const cudaError_t error =
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &result);
    return error == cudaSuccess && result == cudaDriverEntryPointSuccess ? reinterpret_cast<EncodeTiled>(entry)
                                                                         : nullptr;
  }();
  return function;
}

// A map of bf16 rows in boxes of 128-byte lines, swizzled.
Result<void> encode_map(cuuint32_t dimensions, const uint16_t* x, const cuuint64_t* sizes, const cuuint64_t* strides,
                        const cuuint32_t* box, CUtensorMap& map) {
  const EncodeTiled encode = encode_tiled();
  if (encode == nullptr) return unsupported("the driver has no cuTensorMapEncodeTiled; it is too old");
  const cuuint32_t steps[3] = {1, 1, 1};
  const CUresult result = encode(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, dimensions, const_cast<uint16_t*>(x), sizes,
                                 strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                 CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) return internal("cuTensorMapEncodeTiled: driver error {}", static_cast<int>(result));
  return Ok{};
}

Result<void> map_x_chunks(uint32_t cols, uint32_t tokens, uint32_t tile, const uint16_t* x, uint64_t x_stride,
                          CUtensorMap& map) {
  const cuuint64_t sizes[2] = {cols, tokens}, strides[1] = {x_stride * 2};
  const cuuint32_t box[2] = {kChunkCols, tile};
  return encode_map(2, x, sizes, strides, box, map);
}

// Without the module's file, as in some containers: the CUDA version that the driver knows.
std::string driver_version() {
  std::ifstream in("/proc/driver/nvidia/version");
  for (std::string word; in >> word;) {
    if (word.size() > 5 && std::isdigit(static_cast<unsigned char>(word[0])) && word.find('.') != std::string::npos)
      return word;
  }
  int version = 0;
  cudaDriverGetVersion(&version);
  return fmt::format("for CUDA {}", version);
}

}  // namespace

Result<void> cuda_check(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return Ok{};
  const Status status = error == cudaErrorMemoryAllocation     ? GLYD_ERROR_OUT_OF_MEMORY
                        : error == cudaErrorNoDevice           ? GLYD_ERROR_UNSUPPORTED
                        : error == cudaErrorInsufficientDriver ? GLYD_ERROR_UNSUPPORTED
                        : error == cudaErrorInvalidDevice      ? GLYD_ERROR_INVALID_ARGUMENT
                                                               : GLYD_ERROR_INTERNAL;
  return make_error(status, "{}: {}", call, cudaGetErrorString(error));
}

Result<DeviceInfo> read_device(int ordinal) {
  DeviceInfo info;
  info.ordinal = ordinal;
  const auto get = [&](cudaDeviceAttr attribute) -> Result<int> {
    int value = 0;
    GLYD_CHECK(cuda_check(cudaDeviceGetAttribute(&value, attribute, ordinal), "cudaDeviceGetAttribute"));
    return value;
  };
  GLYD_TRY(info.compute_major, get(cudaDevAttrComputeCapabilityMajor));
  GLYD_TRY(info.compute_minor, get(cudaDevAttrComputeCapabilityMinor));
  GLYD_TRY(const int multiprocessors, get(cudaDevAttrMultiProcessorCount));
  GLYD_TRY(const int shared, get(cudaDevAttrMaxSharedMemoryPerBlockOptin));
  info.limits = {static_cast<uint32_t>(multiprocessors), static_cast<uint32_t>(shared)};
  cudaDeviceProp properties{};
  GLYD_CHECK(cuda_check(cudaGetDeviceProperties(&properties, ordinal), "cudaGetDeviceProperties"));
  info.name = properties.name;
  info.driver = driver_version();
  return info;
}

Result<DeviceBuffer> DeviceBuffer::allocate(uint64_t bytes) {
  DeviceBuffer buffer;
  GLYD_CHECK(cuda_check(cudaMalloc(&buffer.data_, bytes == 0 ? 1 : bytes), "cudaMalloc"));
  return buffer;
}

bool x_is_mappable(const void* x, uint64_t x_stride) {
  return reinterpret_cast<uintptr_t>(x) % 16 == 0 && x_stride % 8 == 0 && x_stride < uint64_t{1} << 38;
}

Result<void> map_x(const LinearPlan& plan, const uint16_t* x, uint64_t x_stride, CUtensorMap& map) {
  const cuuint32_t tile = token_tile(plan.tokens);
  if (plan.x_by_chunk) return map_x_chunks(plan.cols, plan.tokens, tile, x, x_stride, map);
  const cuuint64_t sizes[3] = {kChunkCols, plan.tokens, plan.chunks}, strides[2] = {x_stride * 2, 2 * kChunkCols};
  const cuuint32_t box[3] = {kChunkCols, tile, x_piece_chunks(tile)};
  return encode_map(3, x, sizes, strides, box, map);
}

Result<void> map_x(const StagedPlan& plan, const uint16_t* x, uint64_t x_stride, CUtensorMap& map) {
  return map_x_chunks(plan.cols, plan.tokens, plan.x_rows, x, x_stride, map);
}

Result<void> map_x(const WidePlan& plan, const uint16_t* x, uint64_t x_stride, CUtensorMap& map) {
  return map_x_chunks(plan.cols, plan.tokens, plan.tile_tokens / plan.cluster, x, x_stride, map);
}

Result<void> map_x(const AheadPlan& plan, const uint16_t* x, uint64_t x_stride, CUtensorMap& map) {
  return map_x_chunks(plan.cols, plan.tokens, kAheadTokens / 2, x, x_stride, map);
}

Result<void> map_y(const AheadPlan& plan, uint16_t* y, uint64_t y_stride, CUtensorMap& map) {
  const cuuint64_t sizes[2] = {plan.rows, plan.tokens}, strides[1] = {y_stride * 2};
  const cuuint32_t box[2] = {64, kAheadOutTokens};
  return encode_map(2, y, sizes, strides, box, map);
}

}  // namespace glyd::cuda
