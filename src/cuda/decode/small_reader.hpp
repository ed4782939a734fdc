// small_reader.hpp - the codes of `small`: its table, and reading codes upwards and downwards. Spec:
// docs/spec/weights.md 5.2, 5.3. Runs on host and device.
#pragma once

#include <cstdint>

#include "format/geometry.hpp"
#include "format/host_device.hpp"

namespace glyd::cuda {

inline constexpr uint32_t kCodeEntries = 1u << small::kMostCodeBits;

// A table entry: the pair's exponents and its code's length; 0 where no code begins so.
GLYD_HD constexpr uint32_t code_entry(uint32_t low_exponent, uint32_t high_exponent, uint32_t length) {
  return low_exponent | high_exponent << 8 | length << 16;
}
GLYD_HD constexpr uint32_t code_length(uint32_t entry) { return entry >> 16; }
// The exponents in the places of a pair of bf16 values.
GLYD_HD constexpr uint32_t code_exponents(uint32_t entry) { return (entry & 0xff) << 7 | (entry >> 8 & 0xff) << 23; }

// The length of a pair's code in the pack's 144-byte table.
GLYD_HD constexpr uint32_t pair_length(const uint8_t* table, uint32_t pair) {
  return table[small::kMostSymbols + pair / 2] >> (pair % 2 * 4) & 15;
}

// Fills entries of one pair: `before` is how many pairs of the same length come before it, `counts[l]` how many pairs
// have length l. Stays inside `entries` for any table.
GLYD_HD void fill_code(const uint8_t* table, uint32_t pair, const uint32_t* counts, uint32_t before,
                       uint32_t* entries) {
  const uint32_t length = pair_length(table, pair);
  if (length == 0 || length > small::kMostCodeBits) return;
  uint32_t first = 0;
  for (uint32_t l = 1; l < length; ++l) first = (first + counts[l]) << 1;
  const uint32_t step = 1u << (small::kMostCodeBits - length), begin = (first + before) * step;
  const uint32_t entry = code_entry(table[pair / 16], table[pair % 16], length);
  for (uint32_t i = begin; i < begin + step && i < kCodeEntries; ++i) entries[i] = entry;
}

// The 32 bits from bit `bit` of a little-endian string of words on; zeros outside it.
GLYD_HD uint32_t bits_at(const uint32_t* words, uint64_t count, int64_t bit) {
  const int64_t word = bit >> 5;
  const uint32_t shift = static_cast<uint32_t>(bit) & 31;
  const uint32_t low = static_cast<uint64_t>(word) < count ? words[word] : 0;
  const uint32_t high = static_cast<uint64_t>(word + 1) < count ? words[word + 1] : 0;
  return static_cast<uint32_t>((static_cast<uint64_t>(high) << 32 | low) >> shift);
}

GLYD_HD uint32_t reverse_bits(uint32_t v) {
#if defined(__CUDA_ARCH__)
  return __brev(v);
#else
  uint32_t out = 0;
  for (uint32_t i = 0; i < 32; ++i) out |= (v >> i & 1) << (31 - i);
  return out;
#endif
}

// A lane's place in its region: even lanes read upwards from `bit`, odd lanes downwards from it.
struct CodeReader {
  const uint32_t* words;
  uint64_t count;
  int64_t bit;
  bool down;

  GLYD_HD uint32_t next(const uint32_t* entries) {
    const uint32_t window = down ? bits_at(words, count, bit - 32) : reverse_bits(bits_at(words, count, bit));
    const uint32_t entry = entries[window >> (32 - small::kMostCodeBits)];
    bit += down ? -static_cast<int64_t>(code_length(entry)) : static_cast<int64_t>(code_length(entry));
    return entry;
  }
};

// Signs and mantissas of a lane's pair from its plane words (spec 5.1).
GLYD_HD constexpr uint32_t pair_signs(uint32_t word, uint32_t pair) {
  return (pair % 2 == 0 ? word : fast::rotr32(word, 8)) & small::kPairMask;
}

}  // namespace glyd::cuda
