// split_sum.cuh - the sum over splits of k, in fp32 and in ascending order as cuBLAS adds them.
#pragma once

#include "arch/synchronize.cuh"
#include "gemm/scheduler.cuh"
#include "gemm/traits.hpp"

namespace glyd::cuda {

// A word of all ones means "not there yet": no sum of the tensor core is that NaN, and a stored one is replaced.
inline constexpr uint32_t kAbsent = 0xffffffffu;

__device__ __forceinline__ float present_word(float v) {
  return __float_as_uint(v) == kAbsent ? __uint_as_float(0x7fffffffu) : v;
}

__device__ __forceinline__ bool is_present(const uint32_t (&words)[4]) {
  return words[0] != kAbsent && words[1] != kAbsent && words[2] != kAbsent && words[3] != kAbsent;
}

// Where the sums of a strip lie: [splits][tiles][32 lanes][4], all ones between calls, and a counter behind all strips'
// sums.
template <class T>
struct PartialSums {
  float* first;
  uint32_t lane, tokens;

  __device__ __forceinline__ PartialSums(const LinearParams& params, const Unit& unit, uint32_t lane_)
      : first(params.partials + (static_cast<uint64_t>(unit.strip) * params.plan.splits * T::kTiles * 32 + lane_) * 4),
        lane(lane_),
        tokens(params.plan.tokens) {}

  __device__ __forceinline__ float* at(uint32_t split, uint32_t tile) const {
    return first + (split * T::kTiles + tile) * 128;
  }
  __device__ __forceinline__ bool wanted(uint32_t tile) const { return tile * 8 + 2 * (lane & 3) < tokens; }

  __device__ __forceinline__ void store(uint32_t split, const float (&sums)[T::kTiles][4]) const {
#pragma unroll
    for (uint32_t t = 0; t < T::kTiles; ++t) {
      const float v[4] = {present_word(sums[t][0]), present_word(sums[t][1]), present_word(sums[t][2]),
                          present_word(sums[t][3])};
      if (wanted(t)) arch::store_relaxed_16(at(split, t), v);
    }
  }

  // sums = the sums of splits 0 ... count - 1, in that order; waits for those that are not there, and leaves all ones.
  // An answer takes some 700 clocks, so several are asked for at once: of two splits of one tile, or of up to four
  // tiles of one split.
  __device__ __forceinline__ void take(uint32_t count, float (&sums)[T::kTiles][4]) const {
    constexpr uint32_t kTilesAtOnce = T::kTiles < 4 ? T::kTiles : 4, kSplitsAtOnce = T::kTiles == 1 ? 2 : 1;
#pragma unroll
    for (uint32_t first_tile = 0; first_tile < T::kTiles; first_tile += kTilesAtOnce) {
#pragma unroll 1
      for (uint32_t split = 0; split < count; split += kSplitsAtOnce) {
        Words words[kSplitsAtOnce][kTilesAtOnce];
        bool all;
        do {
          all = true;
          for_each<kSplitsAtOnce, kTilesAtOnce>(count - split, first_tile, [&](uint32_t s, uint32_t t) {
            arch::load_relaxed_16(words[s][t].w, at(split + s, first_tile + t));
          });
          for_each<kSplitsAtOnce, kTilesAtOnce>(
              count - split, first_tile, [&](uint32_t s, uint32_t t) { all = all && is_present(words[s][t].w); });
        } while (!all);
        for_each<kSplitsAtOnce, kTilesAtOnce>(count - split, first_tile, [&](uint32_t s, uint32_t t) {
#pragma unroll
          for (uint32_t r = 0; r < 4; ++r) {
            const float v = __uint_as_float(words[s][t].w[r]);
            float& sum = sums[first_tile + t][r];
            sum = split + s == 0 ? v : sum + v;
          }
        });
        for_each<kSplitsAtOnce, kTilesAtOnce>(count - split, first_tile,
                                              [&](uint32_t s, uint32_t t) { leave_absent(split + s, first_tile + t); });
      }
    }
  }

 private:
  struct Words {
    uint32_t w[4];
  };

  // visit(split, tile) of a few splits, as many as there are, and a few tiles that this lane wants.
  template <uint32_t kSplits, uint32_t kTiles, class Visit>
  __device__ __forceinline__ void for_each(uint32_t splits, uint32_t first_tile, const Visit& visit) const {
#pragma unroll
    for (uint32_t s = 0; s < kSplits; ++s) {
#pragma unroll
      for (uint32_t t = 0; t < kTiles; ++t) {
        if (s < splits && wanted(first_tile + t)) visit(s, t);
      }
    }
  }

  __device__ __forceinline__ void leave_absent(uint32_t split, uint32_t tile) const {
    const float ones = __uint_as_float(kAbsent), absent[4] = {ones, ones, ones, ones};
    arch::store_relaxed_16(at(split, tile), absent);
  }
};

// Adds up a strip's splits. In a single round of units the last split waits for the others' sums: units are numbered
// split by split and warps take them in ascending order, so a unit waits only for units that began before it and
// nothing waits in a circle. In several rounds it could wait for long, so there every split leaves its sums, and the
// one that counts itself last adds them. Returns true where `sums` are whole.
template <class T>
__device__ __forceinline__ bool sum_splits(const LinearParams& params, const Unit& unit, uint32_t lane,
                                           float (&sums)[T::kTiles][4]) {
  const LinearPlan& plan = params.plan;
  arch::pin(lane);  // what follows from it is not to wait in registers while records are multiplied
  const PartialSums<T> partial(params, unit, lane);
  const bool last = unit.split == plan.splits - 1;
  if (T::kTiles > 1 || plan.counted || !last) partial.store(unit.split, sums);
  if (plan.counted) {
    __threadfence();
    __syncwarp();
    uint32_t before = 0;
    if (lane == 0) before = atomicAdd(params.arrivals + unit.strip, 1) + 1;  // starts at all ones
    if (__shfl_sync(~0u, before, 0) != plan.splits - 1) return false;
    __threadfence();
    if (lane == 0) params.arrivals[unit.strip] = kAbsent;
  } else if (!last) {
    return false;
  }
  if constexpr (T::kTiles == 1) {  // with more there are no registers to hold its own sums meanwhile
    if (!plan.counted) {
      float own[4];
#pragma unroll
      for (uint32_t r = 0; r < 4; ++r) own[r] = sums[0][r];
      partial.take(plan.splits - 1, sums);
#pragma unroll
      for (uint32_t r = 0; r < 4; ++r) sums[0][r] += own[r];
      return true;
    }
  }
  partial.take(plan.splits, sums);
  return true;
}

}  // namespace glyd::cuda
