// small_scalar_loops.hpp - scalar loops that kernels of several instruction sets share: each compiles its own copy.
#pragma once

#include "base/bytes.hpp"
#include "weights/registry.hpp"
#include "weights/small/small_kernels.hpp"

namespace glyd::small {
namespace {  // a copy a file, for each is compiled with other flags

// Regions `region` ... `region + N - 1`, 2 N lanes at once: their look-ups do not wait for each other. Not zero where
// bits begin no code or a step takes more than 32 bits. One load of 8 bytes gives at least 57 bits, a step's four codes
// take at most 44.
template <uint32_t N>
inline uint32_t look_up_regions(const LookupTables& tables, const StreamBits& stream, uint32_t region, uint32_t steps,
                                StreamEntries& out) {
  // Bits are counted from kReachBytes before the string, so that no number goes below zero.
  const uint8_t* const base = stream.bits - kReachBytes;
  uint64_t up[N], down[N];  // the next bit upwards; one past the next bit downwards
  for (uint32_t n = 0; n < N; ++n) {
    up[n] = stream.begin[region + n] + 8 * kReachBytes;
    down[n] = stream.begin[region + n + 1] + 8 * kReachBytes;
  }
  uint32_t flags = 0;
  for (uint32_t step = 0; step < steps; ++step) {
    uint64_t up_bits[N], down_bits[N], up_start[N], down_start[N];
    for (uint32_t n = 0; n < N; ++n) {
      up_start[n] = up[n];
      down_start[n] = down[n];
      up_bits[n] = load_le<uint64_t>(base + up[n] / 8) >> up[n] % 8;
      down_bits[n] = load_le<uint64_t>(base + (down[n] + 7) / 8 - 8) << (0 - down[n]) % 8;
    }
    for (uint32_t pair = 0; pair < 4; ++pair) {
      for (uint32_t n = 0; n < N; ++n) {
        const uint32_t even = tables.up[up_bits[n] & (kLookups - 1)];
        const uint32_t odd = tables.down[down_bits[n] >> (64 - kMostCodeBits)];
        flags |= (even | odd) & kNoCode;
        up_bits[n] >>= even & kEntryLengthMask;
        up[n] += even & kEntryLengthMask;
        down_bits[n] <<= odd & kEntryLengthMask;
        down[n] -= odd & kEntryLengthMask;
        out.entries[step][pair][2 * (region + n)] = even;
        out.entries[step][pair][2 * (region + n) + 1] = odd;
      }
    }
    for (uint32_t n = 0; n < N; ++n) {
      flags |= up[n] - up_start[n] > kMostStepBits || down_start[n] - down[n] > kMostStepBits ? 1u : 0u;
    }
  }
  for (uint32_t n = 0; n < N; ++n) {
    out.used[2 * (region + n)] = static_cast<uint32_t>(up[n] - 8 * kReachBytes - stream.begin[region + n]);
    out.used[2 * (region + n) + 1] = static_cast<uint32_t>(stream.begin[region + n + 1] + 8 * kReachBytes - down[n]);
  }
  return flags;
}

inline uint32_t pair_at(const uint16_t* tile, uint32_t step, uint32_t lane, uint32_t pair) {
  return load_le<uint32_t>(tile + pair_row(lane, pair) * kTileStride + step * kStepCols + pair_col(lane, pair));
}

inline void number_pairs(const uint16_t* tile, uint32_t steps, const PairNumbers& numbers, StreamPairs& out) {
  for (uint32_t step = 0; step < steps; ++step) {
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      for (uint32_t pair = 0; pair < 4; ++pair) {
        out.pairs[step][lane][pair] = numbers[exponent_pair(pair_at(tile, step, lane, pair))];
      }
    }
  }
}

}  // namespace
}  // namespace glyd::small
