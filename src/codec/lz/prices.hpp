// prices.hpp - what tokens, literals, offsets and lengths cost in 1/256 bit, from counts of what was used before.
#pragma once

#include <array>
#include <span>

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
  void learn(const uint8_t* raw, std::span<const Sequence> sequences, const uint32_t* recent_offsets);

  uint32_t literal(uint8_t byte) const { return literals_[byte]; }
  uint32_t offset(uint32_t value) const {
    const uint32_t v = value + kOffsetBias;
    const int log = log2_floor(v);
    return offsets_[static_cast<uint32_t>(log - 3) << low_bits_ | (v & ((1u << low_bits_) - 1))] +
           (static_cast<uint32_t>(log - low_bits_) << kLogFraction);
  }
  // What a run of literals makes the next token cost, on average over the matches that may follow.
  uint32_t run(uint32_t literals) const {
    return literals < kTokenLiteralEscape
               ? runs_[literals]
               : runs_[kTokenLiteralEscape] + escape(run_values_, literals - kTokenLiteralEscape);
  }
  // What `run` literals before a match cost beside its token.
  uint32_t match_run(uint32_t run) const {
    return run < kTokenLiteralEscape ? 0 : escape(run_values_, run - kTokenLiteralEscape);
  }
  // Token and length symbol of matches of each length below kTabled, after `run` literals.
  const uint32_t* matches(uint32_t kind, uint32_t run) const {
    return matches_[kind << 2 | (run < kTokenLiteralEscape ? run : kTokenLiteralEscape)].data();
  }
  // Of any length.
  uint32_t match(uint32_t kind, uint32_t run, uint32_t length) const {
    if (length < kTabled) return matches(kind, run)[length];
    const uint32_t excess = length - (kind == kTokenNew ? kMinNewLength : kMinRepeatLength);
    return tokens_[kind << 6 | kTokenLengthEscape << 2 | (run < kTokenLiteralEscape ? run : kTokenLiteralEscape)] +
           escape(lengths_, excess - kTokenLengthEscape);
  }

  static constexpr uint32_t kTabled = 288;

 private:
  using Table = std::array<uint32_t, 256>;
  uint32_t escape(const Table& prices, uint32_t value) const {
    if (value < 16) return prices[value];
    const int log = log2_floor(value);
    return prices[static_cast<size_t>(16 + (log - 4) * 2) + ((value >> (log - 1)) & 1)] +
           (static_cast<uint32_t>(log - 1) << kLogFraction);
  }
  void price();
  void price_offsets();

  Table literal_counts_, token_counts_, offset_counts_, run_counts_, length_counts_;
  Table literals_, tokens_, offsets_, run_values_, lengths_;
  int low_bits_ = 0;  // of offsets, in their symbols
  std::array<uint32_t, 4> runs_;
  std::array<std::array<uint32_t, kTabled>, 16> matches_;
};

}  // namespace glyd::codec
