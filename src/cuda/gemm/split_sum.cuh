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
  __device__ __forceinline__ void take(uint32_t count, float (&sums)[T::kTiles][4]) const {
    const float ones = __uint_as_float(kAbsent), absent[4] = {ones, ones, ones, ones};
    // Two splits of one tile are asked for at once, each answer takes as long as both; with more tiles there are no
    // registers for that.
    constexpr uint32_t kAtOnce = T::kTiles == 1 ? 2 : 1;
#pragma unroll
    for (uint32_t t = 0; t < T::kTiles; ++t) {
      if (!wanted(t)) continue;
#pragma unroll 1
      for (uint32_t split = 0; split < count; split += kAtOnce) {
        uint32_t words[kAtOnce][4];
        bool all;
        do {
          all = true;
#pragma unroll
          for (uint32_t s = 0; s < kAtOnce; ++s) {
            if (split + s < count) arch::load_relaxed_16(words[s], at(split + s, t));
          }
#pragma unroll
          for (uint32_t s = 0; s < kAtOnce; ++s) {
            if (split + s < count) all = all && is_present(words[s]);
          }
        } while (!all);
#pragma unroll
        for (uint32_t s = 0; s < kAtOnce; ++s) {
          if (split + s >= count) continue;
          arch::store_relaxed_16(at(split + s, t), absent);
#pragma unroll
          for (uint32_t r = 0; r < 4; ++r) {
            const float v = __uint_as_float(words[s][r]);
            sums[t][r] = split + s == 0 ? v : sums[t][r] + v;
          }
        }
      }
    }
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
  const PartialSums<T> partial(params, unit, lane);
  if (plan.counted) {
    partial.store(unit.split, sums);
    __threadfence();
    __syncwarp();
    uint32_t before = 0;
    if (lane == 0) before = atomicAdd(params.arrivals + unit.strip, 1) + 1;  // starts at all ones
    if (__shfl_sync(~0u, before, 0) != plan.splits - 1) return false;
    __threadfence();
    if (lane == 0) params.arrivals[unit.strip] = kAbsent;
    partial.take(plan.splits, sums);
    return true;
  }
  if (unit.split < plan.splits - 1) {
    partial.store(unit.split, sums);
    return false;
  }
  if constexpr (T::kTiles > 2) {  // no registers to hold its own sums meanwhile
    partial.store(unit.split, sums);
    partial.take(plan.splits, sums);
  } else {
    float last[T::kTiles][4];
#pragma unroll
    for (uint32_t i = 0; i < 4 * T::kTiles; ++i) last[i / 4][i % 4] = sums[i / 4][i % 4];
    partial.take(plan.splits - 1, sums);
#pragma unroll
    for (uint32_t i = 0; i < 4 * T::kTiles; ++i) sums[i / 4][i % 4] += last[i / 4][i % 4];
  }
  return true;
}

}  // namespace glyd::cuda
