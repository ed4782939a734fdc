// epilogue.cuh - whole sums to y: the exponents' shift undone, the bias added, one rounding to bf16.
#pragma once

#include <cuda_bf16.h>

#include "gemm/scheduler.cuh"
#include "gemm/traits.hpp"

namespace glyd::cuda {

template <class T>
__device__ __forceinline__ void store_outputs(const LinearParams& params, const Unit& unit, uint32_t lane,
                                              const float (&sums)[T::kTiles][4]) {
  const LinearPlan& plan = params.plan;
#pragma unroll
  for (uint32_t half = 0; half < 2; ++half) {
    const uint32_t row = unit.strip * kStripRows + lane / 4 + half * 8;
    if (row >= plan.rows) continue;
    float bias = 0;
    if (params.bias != nullptr) bias = __uint_as_float(static_cast<uint32_t>(params.bias[row]) << 16);
#pragma unroll
    for (uint32_t t = 0; t < T::kTiles; ++t) {
#pragma unroll
      for (uint32_t r = 0; r < 2; ++r) {
        const uint32_t token = t * 8 + 2 * (lane & 3) + r;
        float value = sums[t][2 * half + r] * params.scale;
        if (params.bias != nullptr) value = __fadd_rn(value, bias);
        if (token < plan.tokens) {
          params.y[static_cast<uint64_t>(token) * params.y_stride + row] =
              __bfloat16_as_ushort(__float2bfloat16_rn(value));
        }
      }
    }
  }
}

}  // namespace glyd::cuda
