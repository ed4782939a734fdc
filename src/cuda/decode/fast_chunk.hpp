// fast_chunk.hpp - one lane's part of a chunk of `fast`, from the stored words to tensor core operands. Spec:
// docs/spec/weights.md 4. Everything here runs on the host too, where tests hold it against the CPU decoder.
#pragma once

#include <cstdint>

#include "format/fast_patch.hpp"
#include "format/host_device.hpp"

namespace glyd::cuda {

// The upper exponent bits of a weight of the window, as they stand in the high byte of a bf16 (u = 15).
inline constexpr uint32_t kWindowByte = fast::kWindowUpper << 2;
inline constexpr uint32_t kWindowWord = kWindowByte * 0x01010101u;

GLYD_HD uint32_t byte_permute(uint32_t a, uint32_t b, uint32_t selector) {
#if defined(__CUDA_ARCH__)
  return __byte_perm(a, b, selector);
#else
  const uint64_t bytes = static_cast<uint64_t>(b) << 32 | a;
  uint32_t out = 0;
  for (uint32_t i = 0; i < 4; ++i) out |= static_cast<uint32_t>(bytes >> (selector >> (4 * i) & 7) * 8 & 0xff) << 8 * i;
  return out;
#endif
}

// a where mask is set, else b: one lop3. (By hand: the compiler makes three of it where it knows bits to be unused.)
GLYD_HD uint32_t select_bits(uint32_t mask, uint32_t a, uint32_t b) {
#if defined(__CUDA_ARCH__)
  uint32_t out;
  asm("lop3.b32 %0, %1, %2, %3, 0xca;" : "=r"(out) : "r"(mask), "r"(a), "r"(b));
  return out;
#else
  return (a & mask) | (b & ~mask);
#endif
}

// The bits of the high plane of one step: the words for its two words of the low plane, to be masked. `last` of step 3
// comes of all three stored words.
struct StepBits {
  uint32_t first, second;
};
template <uint32_t kStep>
GLYD_HD StepBits high_bits(const uint32_t (&high)[3]) {
  // fast::unpack_high with the masks moved behind the rotations, so that each word is one AND-OR.
  if constexpr (kStep < 3) {
    return {high[kStep], fast::rotr32(high[kStep], 3)};
  } else {
    const uint32_t last = select_bits(0x78787878u, select_bits(0x60606060u, high[0], high[1] >> 2), high[2] >> 4);
    return {fast::rotr32(last, 5), fast::rotr32(last, 2)};
  }
}

// low: the low plane's 8 words of the lane (4 steps of 8 bytes); high: X0..X2; upper: for each byte of `low` the upper
// exponent bits in place (kWindowByte unless patched). out: the 4 registers of the A operand of the step, exponents
// shifted.
template <uint32_t kStep>
GLYD_HD void decode_step(const uint32_t (&low)[8], const uint32_t (&high)[3], const uint32_t (&upper)[8],
                         uint32_t* out) {
  const StepBits bits = high_bits<kStep>(high);
  const uint32_t first = (bits.first & fast::kHighMask) | upper[2 * kStep];
  const uint32_t second = (bits.second & fast::kHighMask) | upper[2 * kStep + 1];
  out[0] = byte_permute(low[2 * kStep], first, 0x5140);
  out[1] = byte_permute(low[2 * kStep], first, 0x7362);
  out[2] = byte_permute(low[2 * kStep + 1], second, 0x5140);
  out[3] = byte_permute(low[2 * kStep + 1], second, 0x7362);
}

// All steps of a chunk: out[4 * step + r] is register r of the A operand of that step.
GLYD_HD void decode_chunk(const uint32_t (&low)[8], const uint32_t (&high)[3], const uint32_t (&upper)[8],
                          uint32_t (&out)[16]) {
  decode_step<0>(low, high, upper, out);
  decode_step<1>(low, high, upper, out + 4);
  decode_step<2>(low, high, upper, out + 8);
  decode_step<3>(low, high, upper, out + 12);
}

// A patch slot's first word (spec 4.3); other bits of `word` may be anything.
struct SlotHeader {
  uint32_t first = 0, second = 0;  // entries of chunk 0 and 1
  uint32_t overflow = 0;           // not 0: there is a group
  GLYD_HD uint32_t entries() const { return first + second; }
  // Whether 32 lanes with an entry each do not serve it.
  GLYD_HD bool crowded() const { return (entries() | overflow) > 32; }
};
static_assert(fast::kSlotFlag > 32 && fast::kSlotFlag > fast::kSlotCountMask);
GLYD_HD SlotHeader slot_header(uint32_t word) {
  return {word & fast::kSlotCountMask, word >> 8 & fast::kSlotCountMask, word & fast::kSlotFlag};
}

// Entry i as words: the word of the slot in which it starts, and the shift there; it may reach into the next word.
GLYD_HD constexpr uint32_t entry_word(uint32_t i) { return (16 + fast::kEntryBits * i) / 32; }
GLYD_HD constexpr uint32_t entry_shift(uint32_t i) { return (16 + fast::kEntryBits * i) % 32; }

struct Patch {
  uint32_t place;  // in the record: bit 10 is the chunk
  uint32_t byte;   // upper exponent bits, as they stand in a bf16's high byte; other bits may be anything
};
// `bits`: the entry at its low end.
GLYD_HD Patch slot_patch(uint32_t bits, bool second_chunk) {
  constexpr uint32_t kBytes = fast::upper_of_class(0) << 2 | fast::upper_of_class(1) << 10 |
                              fast::upper_of_class(2) << 18 | fast::upper_of_class(3) << 26;
  return {(bits & 0x3ff) | (second_chunk ? fast::kChunkWeights : 0), kBytes >> (bits >> 7 & 0x18)};
}
// An entry of an overflow group (spec 4.4).
GLYD_HD Patch overflow_patch(uint32_t word) { return {word & fast::kPatchOrderBits, fast::patch_upper(word) << 2}; }

// Where a weight of a chunk stands in a tile of bf16 rows of 64 columns, swizzled as the tensor core reads it
// (arch::tile_descriptor), from the tile's begin on, in bytes. `place` as in a patch; higher bits may be anything.
GLYD_HD uint32_t swizzled_place(uint32_t place) {
  // Bits of a place, lowest first: h, r % 2, r / 2, step % 2, q (2), g (3), step / 2.
  // Of the result: 0, h, q (2), then r / 2 and step (2), these three exclusive-or g, then g (3), r % 2.
  return (place << 1 & 0x382) ^ (place >> 2 & 0x7c) ^ (place << 2 & 0x30) ^ (place >> 3 & 0x40) ^ (place << 9 & 0x400);
}

}  // namespace glyd::cuda
