// wide_epilogue.cuh - a warp's sums (16 rows by the tile's tokens) to y: added over splits, scaled, biased, rounded,
// and turned round in shared memory so that whole 32-byte pieces of y are written.
#pragma once

#include <cuda_bf16.h>

#include "arch/matrix.cuh"
#include "arch/shared_memory.cuh"
#include "gemm/row_bias.cuh"
#include "gemm/split_sum.cuh"
#include "wide/tiles.cuh"

namespace glyd::cuda {

// Adds up the splits of a strip and token tile: every split leaves its sums, the one that counts itself last adds them
// in ascending order. True where `sums` are whole. The words are all ones between calls, as the other products want
// them.
template <class T>
__device__ __forceinline__ bool sum_wide_splits(const WideParams& params, const Tile& tile, uint32_t strip,
                                                uint32_t lane, float (&sums)[T::kTiles][4]) {
  const WidePlan& plan = params.plan;
  const uint64_t place = static_cast<uint64_t>(strip) * plan.token_tiles + tile.token_tile;
  float4* const first = reinterpret_cast<float4*>(params.partials) + place * plan.splits * T::kTiles * 32 + lane;
  const uint32_t tokens = plan.tokens - tile.token_tile * T::kTokens;  // from the tile's first on
#pragma unroll
  for (uint32_t t = 0; t < T::kTiles; ++t) {
    if (t * 8 < tokens) {
      __stcg(first + (tile.split * T::kTiles + t) * 32, make_float4(sums[t][0], sums[t][1], sums[t][2], sums[t][3]));
    }
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
  for (uint32_t t = 0; t < T::kTiles; ++t) {
    if (t * 8 >= tokens) continue;
#pragma unroll 1
    for (uint32_t split = 0; split < plan.splits; ++split) {
      float4* const at = first + (split * T::kTiles + t) * 32;
      const float4 v = __ldcg(at);
      __stcg(at, make_float4(ones, ones, ones, ones));
      if (split == 0) {
        sums[t][0] = v.x, sums[t][1] = v.y, sums[t][2] = v.z, sums[t][3] = v.w;
      } else {
        sums[t][0] += v.x, sums[t][1] += v.y, sums[t][2] += v.z, sums[t][3] += v.w;
      }
    }
  }
  return true;
}

// Where bf16 pieces of y go, a warp's 16 rows.
struct OutputStrip {
  uint16_t* y;  // of the tile's first token, the strip's first row
  uint32_t stride, tokens, rows;
  bool whole;  // all 16 rows exist, and 16-byte pieces are aligned
};

// Writes 16 tokens that lie in the scratch, token by token, 16 rows each.
__device__ __forceinline__ void write_tokens(const OutputStrip& out, uint32_t scratch, uint32_t first, uint32_t lane) {
  const uint32_t token = first + lane / 2, half = lane & 1;
  if (token >= out.tokens) return;
  const uint4 piece = arch::load_shared_16(scratch + lane * 16);
  uint16_t* const at = out.y + static_cast<uint64_t>(token) * out.stride + half * 8;
  if (out.whole) {
    *reinterpret_cast<uint4*>(at) = piece;
    return;
  }
  const uint32_t words[4] = {piece.x, piece.y, piece.z, piece.w};
#pragma unroll
  for (uint32_t i = 0; i < 8; ++i) {
    if (half * 8 + i < out.rows) at[i] = static_cast<uint16_t>(words[i / 2] >> (i % 2 * 16));
  }
}

// `scratch`: 2 KiB of shared memory of the warp, whose contents are lost.
template <class T>
__device__ __forceinline__ void store_wide_outputs(const WideParams& params, const Tile& tile, uint32_t strip,
                                                   uint32_t lane, uint32_t scratch, const float (&sums)[T::kTiles][4]) {
  const WidePlan& plan = params.plan;
  const uint32_t row = strip * kStripRows, token = tile.token_tile * T::kTokens;
  OutputStrip out{params.y + static_cast<uint64_t>(token) * params.y_stride + row, params.y_stride, plan.tokens - token,
                  min(plan.rows - row, uint32_t{kStripRows}), false};
  out.whole = out.rows == kStripRows && params.y_stride % 8 == 0 && reinterpret_cast<uintptr_t>(params.y) % 16 == 0;
  float bias[2] = {0, 0};
  if (params.bias != nullptr) load_row_bias(params.bias, row, plan.rows, lane, bias);
  const auto rounded = [&](float sum, uint32_t half) {
    float value = sum * params.scale;
    if (params.bias != nullptr) value = __fadd_rn(value, bias[half]);
    return static_cast<uint32_t>(__bfloat16_as_ushort(__float2bfloat16_rn(value)));
  };
  // Matrix m = lane / 8 of a store is tokens 8 * (m / 2) ..., rows 8 * (m % 2) ...; its rows in shared memory are
  // tokens.
  const uint32_t store_at = scratch + (lane / 16 * 8 + lane % 8) * 32 + (lane / 8 & 1) * 16;
#pragma unroll
  for (uint32_t t = 0; t < T::kTiles; t += 2) {
    uint32_t pairs[4];
#pragma unroll
    for (uint32_t m = 0; m < 4; ++m) {
      const float* const s = sums[t + m / 2] + m % 2 * 2;
      pairs[m] = rounded(s[0], m % 2) | rounded(s[1], m % 2) << 16;
    }
    const uint32_t half_scratch = t % 4 * 256;  // two halves of 512 bytes in turn
    arch::store_matrix_x4_transposed(store_at + half_scratch, pairs);
    __syncwarp();
    write_tokens(out, scratch + half_scratch, t * 8, lane);
  }
  __syncwarp();
}

}  // namespace glyd::cuda
