// ahead_epilogue.cuh - a warpgroup's sums (64 rows by the tile's tokens) to y: scaled, biased, rounded, turned round in
// shared memory and written by the copy engine, 128 bytes of 16 tokens at a time.
#pragma once

#include <cuda_bf16.h>

#include "ahead/ahead_order.hpp"
#include "arch/global_memory.cuh"
#include "arch/matrix.cuh"
#include "arch/shared_memory.cuh"
#include "gemm/row_bias.cuh"

namespace glyd::cuda {

// `out`: the warpgroup's two places in shared memory, of kAheadOutBytes each. One instruction a value counts: a warp
// has nobody to hide behind here.
class AheadOutputs {
 public:
  __device__ __forceinline__ AheadOutputs(const AheadParams& params, uint32_t out, uint32_t warp, uint32_t lane)
      : params_(params), out_(out), warp_(warp), lane_(lane) {
    // Matrix m = lane / 8 of a store is tokens 8 * (m / 2) ..., rows 8 * (m % 2) ...; its rows in shared memory are
    // tokens of 128 bytes, pieces of 16 bytes swizzled as the copy engine reads them.
    const uint32_t token = lane / 16 * 8 + lane % 8, piece = warp % 4 * 2 + (lane / 8 & 1);
    store_at_ = out + token * 128 + ((piece ^ (token & 7)) << 4);
  }

  __device__ __forceinline__ void store(const AheadTile& tile, const float (&sums)[AheadTraits::kTiles][4]) const {
    const uint32_t row = tile.row_tile * kAheadRows + warp_ / 4 * 64;
    if (row >= params_.plan.rows) return;  // the same for all of the warpgroup
    const uint32_t token = tile.token_tile * kAheadTokens;
    float bias[2] = {0, 0};
    if (params_.bias != nullptr) {
      load_row_bias(params_.bias, row + warp_ % 4 * 16, params_.plan.rows, lane_, bias);
      store_all<true>(row, token, bias, sums);
    } else {
      store_all<false>(row, token, bias, sums);
    }
  }
  __device__ __forceinline__ void finish() const {
    if (warp_ % 4 == 0 && arch::elect_one()) arch::bulk_store_wait<0>();
  }

 private:
  template <bool kBias>
  __device__ __forceinline__ void store_all(uint32_t row, uint32_t token, const float (&bias)[2],
                                            const float (&sums)[AheadTraits::kTiles][4]) const {
    const bool leads = warp_ % 4 == 0;
#pragma unroll
    for (uint32_t t = 0; t < AheadTraits::kTiles; t += 2) {
      uint32_t pairs[4];
#pragma unroll
      for (uint32_t m = 0; m < 4; ++m) {
        const float* const s = sums[t + m / 2] + m % 2 * 2;
        float low = s[0] * params_.scale, high = s[1] * params_.scale;
        if constexpr (kBias) low = __fadd_rn(low, bias[m % 2]), high = __fadd_rn(high, bias[m % 2]);
        const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
        pairs[m] = *reinterpret_cast<const uint32_t*>(&pair);
      }
      const uint32_t half = t / 2 % 2 * kAheadOutBytes;
      if (leads && arch::elect_one()) arch::bulk_store_wait_read<1>();  // what was here has left
      arch::barrier_sync_warpgroup(1 + warp_ / 4);
      arch::store_matrix_x4_transposed(store_at_ + half, pairs);
      arch::shared_stores_fence();
      arch::barrier_sync_warpgroup(1 + warp_ / 4);
      if (leads && arch::elect_one()) {
        arch::tensor_store_2d(&params_.y_map, out_ + half, row, token + t * 8);
        arch::bulk_store_commit();
      }
    }
  }

  const AheadParams& params_;
  uint32_t out_, warp_, lane_, store_at_;
};

}  // namespace glyd::cuda
