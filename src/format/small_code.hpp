// small_code.hpp - the prefix code of layout `small`: its table, canonical codes, look-up tables. Spec:
// docs/spec/weights.md 5.2.
#pragma once

#include <array>
#include <cstdint>

#include "base/result.hpp"
#include "format/pack_header.hpp"

namespace glyd::small {

inline constexpr uint32_t kNoPair = 256;  // an index in the tables below: a pair that has no code
inline constexpr uint32_t kLookups = 1u << kMostCodeBits;

// Pair number 16 a + b: alphabet indices of the exponents at the lower and the higher k.
struct PairCode {
  uint32_t symbols = 0;
  std::array<uint8_t, kMostSymbols> alphabet{};  // ascending
  std::array<uint8_t, kPairs> lengths{};         // 0: no code
};

// Canonical codes and the first pair of their order, the zero pair.
struct CanonicalCodes {
  std::array<uint16_t, kPairs> codes{};
  uint32_t zero_pair = 0;
  uint32_t pairs = 0;  // that have a code
};
// False where the lengths break Kraft's inequality or no pair has a code.
bool make_canonical(const PairCode& code, CanonicalCodes& out);

void write_table(const PairCode& code, uint8_t* table);  // kTableBytes
// Checks every rule of spec 5.2 that the table alone can break.
Result<PairCode> read_table(ByteSpan table, uint32_t symbols);

// What a look-up by the next 11 bits gives: bits 7-14 the exponent at the lower k, 23-30 the other (where a pair of
// bf16 values has them), bits 0-3 the code's length; kNoCode alone where the bits begin no code.
inline constexpr uint32_t kEntryLengthMask = 15, kNoCode = 16, kEntryExponents = 0x7f807f80u;
static_assert((kEntryExponents ^ kPairMask) == 0xffffffffu);
struct LookupTables {
  uint32_t up[kLookups];    // index: the next 11 bits of an even lane, the first one lowest
  uint32_t down[kLookups];  // of an odd lane, the first one highest
};
void make_lookups(const PairCode& code, const CanonicalCodes& canonical, LookupTables& out);

GLYD_HD constexpr uint32_t pair_entry(uint32_t first, uint32_t second) { return first << 7 | second << 23; }

// A patch (spec 5.4).
GLYD_HD constexpr uint32_t make_patch(uint32_t lane, uint32_t pair, uint32_t stream, uint32_t step, uint32_t first,
                                      uint32_t second) {
  return lane | pair << 5 | stream << 7 | step << 8 | first << 16 | second << 24;
}
GLYD_HD constexpr uint32_t patch_lane(uint32_t patch) { return patch & 31u; }
GLYD_HD constexpr uint32_t patch_pair(uint32_t patch) { return (patch >> 5) & 3u; }
GLYD_HD constexpr uint32_t patch_stream(uint32_t patch) { return (patch >> 7) & 1u; }
GLYD_HD constexpr uint32_t patch_step(uint32_t patch) { return (patch >> 8) & 7u; }
GLYD_HD constexpr uint32_t patch_first(uint32_t patch) { return (patch >> 16) & 0xffu; }
GLYD_HD constexpr uint32_t patch_second(uint32_t patch) { return patch >> 24; }
inline constexpr uint32_t kPatchOrderBits = 0x7ffu, kPatchZeroBits = 0xf800u;

// Row in the strip and column in the step of a pair's first weight.
GLYD_HD constexpr uint32_t pair_row(uint32_t lane, uint32_t pair) { return fragment_row(lane, 2 * pair); }
GLYD_HD constexpr uint32_t pair_col(uint32_t lane, uint32_t pair) { return fragment_col(lane, 2 * pair); }

// Plane words (spec 5.1).
GLYD_HD constexpr uint32_t plane_word(uint32_t pair_low, uint32_t pair_high) {
  const uint32_t high = pair_high & kPairMask;
  return (pair_low & kPairMask) | (high << 8 | high >> 24);
}

}  // namespace glyd::small
