// staged_epilogue.cuh - a warp's sums (16 tokens by the tile's rows) to y: added over splits, scaled, biased, rounded.
#pragma once

#include <cuda_bf16.h>

#include "gemm/counted_sum.cuh"
#include "staged/stages.cuh"

namespace glyd::cuda {

// Adds up the splits of a tile: true where `sums` are whole.
template <class T>
__device__ __forceinline__ bool sum_staged_splits(const StagedParams& params, const StagedTile& tile, uint32_t warp,
                                                  uint32_t lane, float (&sums)[T::kGroups][4]) {
  const StagedPlan& plan = params.plan;
  const uint32_t place = tile.first_strip / T::kStrips * token_groups(plan.tokens) + warp;
  float4* const first = reinterpret_cast<float4*>(params.partials);
  return CountedSums{first + static_cast<uint64_t>(place) * plan.splits * T::kGroups * 32 + lane,
                     params.arrivals + place, plan.splits, tile.split}
      .add(lane, sums);
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
