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

// Every split but the last leaves its sums in global memory; the last waits for them, adds, and leaves all ones again.
// Units are numbered split by split and warps take them in ascending order, so a unit waits only for units that began
// before it: nothing can wait in a circle. Returns true where `sums` are whole, in the last split.
template <class T>
__device__ __forceinline__ bool sum_splits(const LinearParams& params, const Unit& unit, uint32_t lane,
                                           float (&sums)[T::kTiles][4]) {
  const LinearPlan& plan = params.plan;
  const uint32_t earlier = plan.splits - 1;
  float* const tile = params.partials + (static_cast<uint64_t>(unit.strip) * earlier * T::kTiles * 32 + lane) * 4;
  const auto place = [&](uint32_t split, uint32_t t) { return tile + (split * T::kTiles + t) * 128; };
  const auto wanted = [&](uint32_t t) { return t * 8 + 2 * (lane & 3) < plan.tokens; };
  if (unit.split < earlier) {
#pragma unroll
    for (uint32_t t = 0; t < T::kTiles; ++t) {
      const float v[4] = {present_word(sums[t][0]), present_word(sums[t][1]), present_word(sums[t][2]),
                          present_word(sums[t][3])};
      if (wanted(t)) arch::store_relaxed_16(place(unit.split, t), v);
    }
    return false;
  }
  const float absent[4] = {__uint_as_float(kAbsent), __uint_as_float(kAbsent), __uint_as_float(kAbsent),
                           __uint_as_float(kAbsent)};
#pragma unroll
  for (uint32_t t = 0; t < T::kTiles; ++t) {
    if (!wanted(t)) continue;
    float total[4];
#pragma unroll 1
    for (uint32_t split = 0; split < earlier; ++split) {
      uint32_t words[4];
      do {
        arch::load_relaxed_16(words, place(split, t));
      } while (words[0] == kAbsent || words[1] == kAbsent || words[2] == kAbsent || words[3] == kAbsent);
      arch::store_relaxed_16(place(split, t), absent);
#pragma unroll
      for (uint32_t r = 0; r < 4; ++r) {
        const float v = __uint_as_float(words[r]);
        total[r] = split == 0 ? v : total[r] + v;
      }
    }
#pragma unroll
    for (uint32_t r = 0; r < 4; ++r) sums[t][r] = total[r] + sums[t][r];
  }
  return true;
}

}  // namespace glyd::cuda
