// global_memory.cuh - copies from shared to global memory, and words through which blocks of one launch tell each other
// what lies there.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace glyd::cuda::arch {

// The copy engine: shared to global memory, in groups that the issuing thread ends and waits for. Addresses and `bytes`
// are multiples of 16.
__device__ __forceinline__ void bulk_store(void* global, uint32_t shared, uint32_t bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(global), "r"(shared), "r"(bytes)
               : "memory");
}
// A box of a tensor map; what lies outside the tensor is not written.
__device__ __forceinline__ void tensor_store_2d(const CUtensorMap* map, uint32_t shared, uint32_t c0, uint32_t c1) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map), "r"(c0),
               "r"(c1), "r"(shared)
               : "memory");
}
__device__ __forceinline__ void bulk_store_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
// Until all but the newest kPending of this thread's groups have read their source.
template <uint32_t kPending>
__device__ __forceinline__ void bulk_store_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kPending) : "memory");
}
// Until all but the newest kPending of this thread's groups are written.
template <uint32_t kPending>
__device__ __forceinline__ void bulk_store_wait() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(kPending) : "memory");
}

// Between the acquired word that tells of stores to global memory and copies by the copy engine from there.
__device__ __forceinline__ void global_copies_fence() { asm volatile("fence.proxy.async.global;" ::: "memory"); }

__device__ __forceinline__ uint32_t load_acquire(const uint32_t* p) {
  uint32_t v;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}

// Adds; what was stored before is seen by whoever acquires the sum.
__device__ __forceinline__ void add_release(uint32_t* p, uint32_t value) {
  asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(p), "r"(value) : "memory");
}

__device__ __forceinline__ void prefetch_to_l2(const void* p) { asm volatile("prefetch.global.L2 [%0];" ::"l"(p)); }

// All threads of a warpgroup. Barrier 0 is the block's.
__device__ __forceinline__ void barrier_sync_warpgroup(uint32_t id) {
  asm volatile("bar.sync %0, 128;" ::"r"(id) : "memory");
}

// Weights that are read once.
__device__ __forceinline__ uint4 load_once_16(const void* p) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(p));
  return v;
}
__device__ __forceinline__ uint32_t load_once_4(const void* p) {
  uint32_t v;
  asm volatile("ld.global.nc.L1::no_allocate.u32 %0, [%1];" : "=r"(v) : "l"(p));
  return v;
}

}  // namespace glyd::cuda::arch
