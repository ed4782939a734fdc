// counted_sum.cuh - the sum over splits of k where no split may wait for another: every one leaves its sums and counts
// itself, the last adds them all in ascending order.
#pragma once

#include "gemm/split_sum.cuh"

namespace glyd::cuda {

// Where the sums of all splits of a warp's part of y lie: [splits][kPieces][32 lanes] float4, and their counter. All
// words are ones between calls, as the other products want them.
struct CountedSums {
  float4* first;  // of this lane
  uint32_t* arrivals;
  uint32_t splits, split;

  // True in the warp that came last: there `sums` are whole.
  template <uint32_t kPieces>
  __device__ __forceinline__ bool add(uint32_t lane, float (&sums)[kPieces][4]) const {
#pragma unroll
    for (uint32_t p = 0; p < kPieces; ++p) {
      __stcg(first + (split * kPieces + p) * 32, make_float4(sums[p][0], sums[p][1], sums[p][2], sums[p][3]));
    }
    __threadfence();
    __syncwarp();
    uint32_t before = 0;
    if (lane == 0) before = atomicAdd(arrivals, 1) + 1;  // starts at all ones
    if (__shfl_sync(~0u, before, 0) != splits - 1) return false;
    __threadfence();
    if (lane == 0) *arrivals = kAbsent;
    const float4* at = first;
#pragma unroll
    for (uint32_t p = 0; p < kPieces; ++p) {
      const float4 v = __ldcg(at + p * 32);
      sums[p][0] = v.x, sums[p][1] = v.y, sums[p][2] = v.z, sums[p][3] = v.w;
    }
    // Loads whose answers are awaited one by one take 700 clocks each: several are asked for at once, as many as there
    // are registers for.
    constexpr uint32_t kAtOnce = kPieces <= 8 ? kPieces / 2 : 2;
    static_assert(kPieces % kAtOnce == 0);
#pragma unroll 1
    for (uint32_t s = 1; s < splits; ++s) {
      at += kPieces * 32;
#pragma unroll
      for (uint32_t begin = 0; begin < kPieces; begin += kAtOnce) {
        float4 v[kAtOnce];
#pragma unroll
        for (uint32_t i = 0; i < kAtOnce; ++i) v[i] = __ldcg(at + (begin + i) * 32);
#pragma unroll
        for (uint32_t i = 0; i < kAtOnce; ++i) {
          float(&sum)[4] = sums[begin + i];
          sum[0] += v[i].x, sum[1] += v[i].y, sum[2] += v[i].z, sum[3] += v[i].w;
        }
      }
    }
    const float ones = __uint_as_float(kAbsent);
#pragma unroll 1
    for (uint32_t p = 0; p < splits * kPieces; ++p) __stcg(first + p * 32, make_float4(ones, ones, ones, ones));
    return true;
  }
};

}  // namespace glyd::cuda
