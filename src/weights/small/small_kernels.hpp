// small_kernels.hpp - the loops of layout `small` over one stream of up to 8 steps. Pure: no allocation, no checks. A
// table an instruction set, equal results. A tile is [16][kTileStride] bf16 values. Spec: docs/spec/weights.md 5.
#pragma once

#include <cstdint>

#include "format/small_code.hpp"

namespace glyd::small {

// Whatever the bits are, a look-up reads at most 8 steps of 4 codes of 11 bits from a region's end, and 8 bytes at a
// time: no further than this from a record's bit string.
inline constexpr uint32_t kReachBytes = 64;
static_assert(kReachBytes >= (kStreamSteps * 4 * kMostCodeBits + 7) / 8 + 8);

struct StreamBits {
  const uint8_t* bits;           // of the record; kReachBytes before and behind the regions can be read
  uint32_t begin[kRegions + 1];  // each region's first bit, then the end of the last
};

// What the codes of a stream say, [step][pair][lane]: entries of the look-up tables.
struct StreamEntries {
  alignas(64) uint32_t entries[kStreamSteps][4][kLanes];
  uint32_t used[kLanes];  // bits that each lane's codes take
};

// The pairs of a stream, [step][lane][pair]: bits 0-8 the pair's number (kNoPair: it is patched), bits 12-15 its code's
// length.
struct StreamPairs {
  alignas(64) uint16_t pairs[kStreamSteps][kLanes][4];
};
inline constexpr uint32_t kPairNumberMask = 0x1ff, kPairLengthShift = 12;

// What StreamPairs hold of a pair with these exponents: index second << 8 | first.
inline constexpr uint32_t kExponentPairs = 256 * 256;
using PairNumbers = uint16_t[kExponentPairs];
// The index of two bf16 values, the first in the low half.
inline uint32_t exponent_pair(uint32_t values) { return (values >> 7 & 0xff) | (values >> 15 & 0xff00); }

struct Kernels {
  // False where bits begin no code or a lane's step takes more than 32 bits; the entries are then still written.
  bool (*look_up)(const LookupTables& tables, const StreamBits& bits, uint32_t steps, StreamEntries& out);
  // Exponents from the entries, the rest from the planes.
  void (*join)(const StreamEntries& entries, const uint8_t* planes, uint32_t steps, uint16_t* tile);
  // The planes of a tile.
  void (*split)(const uint16_t* tile, uint32_t steps, uint8_t* planes);
  void (*number)(const uint16_t* tile, uint32_t steps, const PairNumbers& numbers, StreamPairs& out);
};

extern const Kernels kScalarKernels;
#if defined(__x86_64__)
extern const Kernels kAvx2Kernels, kAvx512Kernels;
#endif

// The table of cpu_isa().
const Kernels& kernels();

}  // namespace glyd::small
