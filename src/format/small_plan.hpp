// small_plan.hpp - what the encoder of layout `small` may choose, chosen from counts alone, so that every encoder
// writes the same bytes. Why: docs/adr/0002-layouts.md.
#pragma once

#include <array>
#include <cstdint>

#include "format/small_code.hpp"

namespace glyd::small {

// The up to 16 most frequent exponents, ascending; of equally frequent ones the lower are taken.
struct Alphabet {
  uint32_t symbols = 0;
  std::array<uint8_t, kMostSymbols> exponents{};
  uint8_t commonest =
      0;  // the most frequent one: stands in for the missing second weight of a pair when pairs are counted
};
Alphabet choose_alphabet(const std::array<uint64_t, 256>& exponent_counts);

// How often each pair of alphabet indices occurs (a whole or half pair, not padding), and the pairs outside the
// alphabet.
struct PairCounts {
  std::array<uint64_t, kPairs> pairs{};
  uint64_t others = 0;
};

// Optimal code lengths of at most 11 bits (package-merge) for the k most frequent pairs (of equal ones the lower
// numbers), k chosen so that codes and patches of the rest cost the fewest bits. The alphabet keeps the symbols that
// are in a coded pair. `symbols` is 0 if no pair occurs.
PairCode choose_code(const Alphabet& alphabet, const PairCounts& counts);

// histogram[b]: regions whose codes need b bits (those of streams shorter than 8 steps at b * 8 / steps).
using RegionHistogram = std::array<uint64_t, kMostMinBits + 1>;
// The value of fewest bits: padding of the regions shorter than it, and patches that shorten those more than 255 bits
// longer; of equal ones the least.
uint32_t choose_min_bits(const RegionHistogram& histogram);

// A header with every size set; `code_words`: 4-byte words of the codes array.
PackHeader plan_header(const Grid& grid, bool transposed, const PairCode& code, uint32_t min_bits, uint64_t code_words);

}  // namespace glyd::small
