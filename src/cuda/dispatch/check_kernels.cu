#include "dispatch/check_kernels.hpp"

namespace glyd::cuda {
namespace {

constexpr uint32_t kThreads = 256, kMostBlocks = 2048;

uint32_t blocks_for(uint64_t count) {
  const uint64_t blocks = (count + kThreads - 1) / kThreads;
  return static_cast<uint32_t>(blocks < 1 ? 1 : blocks > kMostBlocks ? kMostBlocks : blocks);
}

// splitmix64's output function, public domain (Steele, Lea and Flood 2014).
__device__ uint64_t mixed(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

__global__ void fill_input(uint16_t* values, uint64_t count, uint64_t cols, InputKind kind, uint64_t number) {
  const uint64_t stride = uint64_t{gridDim.x} * kThreads;
  for (uint64_t i = uint64_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += stride) {
    const uint64_t bits = mixed((number + 1) * 0x632be59bd9b4e019u + (i + 1) * 0x9e3779b97f4a7c15u);
    // Four uniform numbers: near enough to a normal one.
    float v = 0;
    for (uint32_t k = 0; k < 4; ++k) v += static_cast<float>(bits >> (16 * k) & 0xffff) / 65536.0f - 0.5f;
    if (kind == InputKind::kOutliers && i % cols % 97 == 5) v *= 60;
    if (kind == InputKind::kWide) v = ldexpf(v, static_cast<int>(bits % 24) - 12);
    values[i] = static_cast<uint16_t>(__float_as_uint(v) >> 16);
  }
}

__device__ bool is_nan(uint16_t v) { return (v & 0x7fff) > 0x7f80; }

__global__ void count_differing(const uint16_t* a, const uint16_t* b, uint64_t count, uint64_t* differing) {
  const uint64_t stride = uint64_t{gridDim.x} * kThreads;
  uint32_t mine = 0;
  for (uint64_t i = uint64_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += stride) {
    mine += a[i] != b[i] && !(is_nan(a[i]) && is_nan(b[i]));
  }
  mine = __reduce_add_sync(~0u, mine);
  if (threadIdx.x % 32 == 0 && mine != 0) {
    atomicAdd(reinterpret_cast<unsigned long long*>(differing), static_cast<unsigned long long>(mine));
  }
}

}  // namespace

cudaError_t launch_fill_input(uint16_t* values, uint64_t count, uint64_t cols, InputKind kind, uint64_t number,
                              cudaStream_t stream) {
  fill_input<<<blocks_for(count), kThreads, 0, stream>>>(values, count, cols, kind, number);
  return cudaGetLastError();
}

cudaError_t launch_count_differing(const uint16_t* a, const uint16_t* b, uint64_t count, uint64_t* differing,
                                   cudaStream_t stream) {
  count_differing<<<blocks_for(count), kThreads, 0, stream>>>(a, b, count, differing);
  return cudaGetLastError();
}

}  // namespace glyd::cuda
