// synchronize.cuh - named barriers, dependent grids, the elected lane, words passed through global memory.
#pragma once

#include <cstdint>

namespace glyd::cuda::arch {

// A named barrier of two warps: one arrives and goes on, the other waits. Barrier 0 is the block's.
__device__ __forceinline__ void barrier_arrive_pair(uint32_t id) {
  asm volatile("bar.arrive %0, 64;" ::"r"(id) : "memory");
}
__device__ __forceinline__ void barrier_sync_pair(uint32_t id) {
  asm volatile("bar.sync %0, 64;" ::"r"(id) : "memory");
}

// All threads of all blocks of the cluster.
__device__ __forceinline__ void cluster_sync() {
  asm volatile(
      "barrier.cluster.arrive.release.aligned;\n"
      "barrier.cluster.wait.acquire.aligned;" ::
          : "memory");
}
__device__ __forceinline__ uint32_t block_in_cluster() {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

// Makes this thread's stores to shared memory visible to the tensor core and the copy engine, once others
// have waited for them.
__device__ __forceinline__ void shared_stores_fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// Waits until the grid before has ended and its writes are visible; nothing to wait for in an ordinary launch.
__device__ __forceinline__ void grid_dependency_wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
// Allows the grid behind, if it was launched so, to start on free multiprocessors.
__device__ __forceinline__ void grid_dependency_launch() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

// True in one lane of a converged warp. ptxas knows that the branch is uniform, which `lane == 0` does not tell it.
__device__ __forceinline__ bool elect_one() {
  uint32_t elected;
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "elect.sync _|p, 0xffffffff;\n"
      "selp.b32 %0, 1, 0, p;\n"
      "}"
      : "=r"(elected));
  return elected != 0;
}

// Words that other blocks read while this grid runs.
__device__ __forceinline__ void store_relaxed_16(void* p, const float* v) {
  asm volatile("st.relaxed.gpu.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(p), "f"(v[0]), "f"(v[1]), "f"(v[2]),
               "f"(v[3])
               : "memory");
}
__device__ __forceinline__ void load_relaxed_16(uint32_t* v, const void* p) {
  asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
               : "l"(p)
               : "memory");
}

// Keeps a value in its register here: the compiler may neither sink what computes it nor reload it later.
__device__ __forceinline__ void pin(uint32_t& value) { asm volatile("" : "+r"(value)); }

}  // namespace glyd::cuda::arch
