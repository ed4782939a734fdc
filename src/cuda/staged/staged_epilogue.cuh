// staged_epilogue.cuh - a warp's sums (16 tokens by the tile's rows) to y: added over splits, scaled, biased, rounded.
#pragma once

#include <cuda_bf16.h>

#include "gemm/split_sum.cuh"
#include "staged/stages.cuh"

namespace glyd::cuda {

// Adds up the splits of a tile: every split leaves its sums, the one that counts itself last adds them in ascending
// order. True where `sums` are whole. The words are all ones between calls, as the other products want them.
template <class T>
__device__ __forceinline__ bool sum_staged_splits(const StagedParams& params, const StagedTile& tile, uint32_t warp,
                                                  uint32_t lane, float (&sums)[T::kGroups][4]) {
  const StagedPlan& plan = params.plan;
  const uint32_t place = tile.first_strip / T::kStrips * token_groups(plan.tokens) + warp;
  float4* const first =
      reinterpret_cast<float4*>(params.partials) + static_cast<uint64_t>(place) * plan.splits * T::kGroups * 32 + lane;
#pragma unroll
  for (uint32_t g = 0; g < T::kGroups; ++g) {
    __stcg(first + (tile.split * T::kGroups + g) * 32, make_float4(sums[g][0], sums[g][1], sums[g][2], sums[g][3]));
  }
  __threadfence();
  __syncwarp();
  uint32_t before = 0;
  if (lane == 0) before = atomicAdd(params.arrivals + place, 1) + 1;  // starts at all ones
  if (__shfl_sync(~0u, before, 0) != plan.splits - 1) return false;
  __threadfence();
  if (lane == 0) params.arrivals[place] = kAbsent;
  const float ones = __uint_as_float(kAbsent);
#pragma unroll
  for (uint32_t g = 0; g < T::kGroups; ++g) {
#pragma unroll 1
    for (uint32_t split = 0; split < plan.splits; ++split) {
      float4* const at = first + (split * T::kGroups + g) * 32;
      const float4 v = __ldcg(at);
      __stcg(at, make_float4(ones, ones, ones, ones));
      if (split == 0) {
        sums[g][0] = v.x, sums[g][1] = v.y, sums[g][2] = v.z, sums[g][3] = v.w;
      } else {
        sums[g][0] += v.x, sums[g][1] += v.y, sums[g][2] += v.z, sums[g][3] += v.w;
      }
    }
  }
  return true;
}

template <class T>
__device__ __forceinline__ void store_staged_outputs(const StagedParams& params, const StagedTile& tile, uint32_t warp,
                                                     uint32_t lane, const float (&sums)[T::kGroups][4]) {
  const StagedPlan& plan = params.plan;
  const bool pairs = params.y_stride % 2 == 0 && reinterpret_cast<uintptr_t>(params.y) % 4 == 0;
#pragma unroll
  for (uint32_t g = 0; g < T::kGroups; ++g) {
    const uint32_t row = tile.first_strip * kStripRows + g * 8 + 2 * (lane & 3);
    if (row >= plan.rows) continue;
    const bool both = row + 1 < plan.rows;
    float bias[2] = {0, 0};
    if (params.bias != nullptr) {
      bias[0] = __uint_as_float(static_cast<uint32_t>(params.bias[row]) << 16);
      if (both) bias[1] = __uint_as_float(static_cast<uint32_t>(params.bias[row + 1]) << 16);
    }
#pragma unroll
    for (uint32_t half = 0; half < 2; ++half) {
      const uint32_t token = warp * 16 + lane / 4 + half * 8;
      if (token >= plan.tokens) continue;
      uint32_t values[2];
#pragma unroll
      for (uint32_t r = 0; r < 2; ++r) {
        float value = sums[g][2 * half + r] * params.scale;
        if (params.bias != nullptr) value = __fadd_rn(value, bias[r]);
        values[r] = __bfloat16_as_ushort(__float2bfloat16_rn(value));
      }
      uint16_t* const at = params.y + static_cast<uint64_t>(token) * params.y_stride + row;
      if (both && pairs) {
        *reinterpret_cast<uint32_t*>(at) = values[0] | values[1] << 16;
      } else {
        at[0] = static_cast<uint16_t>(values[0]);
        if (both) at[1] = static_cast<uint16_t>(values[1]);
      }
    }
  }
}

template <class T>
__device__ __forceinline__ void finish_staged(const StagedParams& params, const StagedTile& tile, uint32_t warp,
                                              uint32_t lane, float (&sums)[T::kGroups][4]) {
  if (warp * 16 >= params.plan.tokens) return;  // no token here
  if (params.plan.splits > 1 && !sum_staged_splits<T>(params, tile, warp, lane, sums)) return;
  store_staged_outputs<T>(params, tile, warp, lane, sums);
}

}  // namespace glyd::cuda
