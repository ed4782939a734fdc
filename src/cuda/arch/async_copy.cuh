// async_copy.cuh - 16-byte copies from global to shared memory that the issuing thread does not wait for (sm_80 on).
#pragma once

#include <cstdint>

namespace glyd::cuda::arch {

// Copies 16 bytes, or writes 16 zero bytes where not `present` (`from` is then not read).
__device__ __forceinline__ void async_copy_16(uint32_t to, const void* from, bool present) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(present ? 16 : 0) : "memory");
}

// Closes a group of this thread's copies.
__device__ __forceinline__ void async_copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until at most `kGroups` of this thread's newest groups are under way.
template <int kGroups>
__device__ __forceinline__ void async_copy_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kGroups) : "memory");
}

}  // namespace glyd::cuda::arch
