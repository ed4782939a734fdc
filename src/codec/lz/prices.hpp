// prices.hpp - what tokens, literals, offsets and lengths cost in 1/256 bit, from counts of what was used before.
#pragma once

#include <array>

#include "codec/entropy/fixed_log2.hpp"
#include "codec/format.hpp"
#include "codec/kernels/basics.hpp"
#include "codec/lz/sequence.hpp"

namespace glyd::codec {

class Prices {
 public:
  Prices() { reset(); }
  // Plausible counts before anything is known.
  void reset();
  // Counts of a parse; older ones keep a quarter of their weight.
  void learn(const uint8_t* raw, size_t raw_bytes, const Sequences& sequences);

  uint32_t literal(uint8_t byte) const { return literals_[byte]; }
  uint32_t offset(uint32_t value) const {
    const int log = log2_floor(value + kOffsetBias);
    return offsets_[static_cast<size_t>(log - 3)] + (static_cast<uint32_t>(log) << kLogFraction);
  }
  // What a run of literals makes the next token cost, on average over the matches that may follow.
  uint32_t run(uint32_t literals) const {
    return literals < kTokenLiteralEscape ? runs_[literals]
                                          : runs_[kTokenLiteralEscape] + escape(literals - kTokenLiteralEscape);
  }
  // Token and length symbols of a match of `length` after `run` literals.
  uint32_t match(uint32_t kind, uint32_t run, uint32_t length) const {
    const uint32_t excess = length - (kind == kTokenNew ? kMinNewLength : kMinRepeatLength);
    const uint32_t run_code = run < kTokenLiteralEscape ? run : kTokenLiteralEscape;
    const uint32_t length_code = excess < kTokenLengthEscape ? excess : kTokenLengthEscape;
    uint32_t price = tokens_[kind << 6 | length_code << 2 | run_code];
    if (run_code == kTokenLiteralEscape) price += escape(run - run_code);
    if (length_code == kTokenLengthEscape) price += escape(excess - length_code);
    return price;
  }

 private:
  uint32_t escape(uint32_t value) const {
    if (value < 16) return lengths_[value];
    const int log = log2_floor(value);
    return lengths_[static_cast<size_t>(16 + (log - 4) * 2) + ((value >> (log - 1)) & 1)] +
           (static_cast<uint32_t>(log - 1) << kLogFraction);
  }
  void price();

  using Table = std::array<uint32_t, 256>;
  Table literal_counts_, token_counts_, offset_counts_, length_counts_;
  Table literals_, tokens_, offsets_, lengths_;
  std::array<uint32_t, 4> runs_;
};

}  // namespace glyd::codec
