// bulk_copy.cuh - the copy engine: global to shared memory, completing on an mbarrier. One thread issues.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace glyd::cuda::arch {

// What createpolicy.fractional.L2::evict_first with fraction 1.0 gives: bytes that are read once leave L2 first.
inline constexpr uint64_t kEvictFirst = 0x12f0000000000000;

// Addresses and `bytes` are multiples of 16.
__device__ __forceinline__ void bulk_copy(uint32_t shared, const void* global, uint32_t bytes, uint32_t barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared),
               "l"(global), "r"(bytes), "r"(barrier)
               : "memory");
}

__device__ __forceinline__ void bulk_copy_hinted(uint32_t shared, const void* global, uint32_t bytes, uint32_t barrier,
                                                 uint64_t policy) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::
          "r"(shared),
      "l"(global), "r"(bytes), "r"(barrier), "l"(policy)
      : "memory");
}

// A box of a tensor map; what lies outside the tensor arrives as zeros.
__device__ __forceinline__ void tensor_copy_2d(uint32_t shared, const CUtensorMap* map, uint32_t c0, uint32_t c1,
                                               uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
          shared),
      "l"(map), "r"(c0), "r"(c1), "r"(barrier)
      : "memory");
}

// The same to the same place of several blocks of the cluster (`blocks`: a bit each), completing on the barrier at
// `barrier` of each.
__device__ __forceinline__ void tensor_copy_2d_cluster(uint32_t shared, const CUtensorMap* map, uint32_t c0,
                                                       uint32_t c1, uint32_t barrier, uint32_t blocks) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, "
      "%3}], [%4], %5;" ::"r"(shared),
      "l"(map), "r"(c0), "r"(c1), "r"(barrier), "h"(static_cast<uint16_t>(blocks))
      : "memory");
}

__device__ __forceinline__ void tensor_copy_3d(uint32_t shared, const CUtensorMap* map, uint32_t c0, uint32_t c1,
                                               uint32_t c2, uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], "
      "[%5];" ::"r"(shared),
      "l"(map), "r"(c0), "r"(c1), "r"(c2), "r"(barrier)
      : "memory");
}

__device__ __forceinline__ void prefetch_tensor_map(const CUtensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

}  // namespace glyd::cuda::arch
