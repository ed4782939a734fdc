#include "codec/lz/prices.hpp"

#include <algorithm>

namespace glyd::codec {
namespace {

using Table = std::array<uint32_t, 256>;

// Counts are kept times 16, so that half of a rare symbol's is not nothing.
constexpr uint32_t kUnit = 16;

void price_table(const Table& counts, size_t symbols, Table& prices) {
  uint64_t total = 0;
  for (size_t s = 0; s < symbols; ++s) total += counts[s] + 1;
  const uint32_t whole = fixed_log2(static_cast<uint32_t>(std::min<uint64_t>(total, UINT32_MAX)));
  const uint32_t most = kMaxCodeBits << kLogFraction;
  for (size_t s = 0; s < 256; ++s) prices[s] = std::min(whole - std::min(whole, fixed_log2(counts[s] + 1)), most);
}

void age(Table& counts) {
  for (uint32_t& c : counts) c /= 4;
}

}  // namespace

// As the writer will choose the bits that go into the symbols.
void Prices::price_offsets() {
  Table counts = offset_counts_;
  uint64_t least = UINT64_MAX;
  for (int low_bits = kMaxLowBits;; --low_bits) {
    Table prices;
    price_table(counts, 256, prices);
    uint64_t bits = 0;
    for (size_t s = 0; s < 256; ++s) {
      if (counts[s] != 0)
        bits += uint64_t{counts[s]} * (prices[s] + (static_cast<uint32_t>(kMaxLowBits - low_bits) << kLogFraction)) +
                (3 * kUnit << kLogFraction);
    }
    if (bits < least) least = bits, low_bits_ = low_bits, offsets_ = prices;
    if (low_bits == 0) return;
    Table fewer{};
    const size_t kept = (size_t{1} << (low_bits - 1)) - 1;
    for (size_t s = 0; s < 256; ++s) fewer[(s >> low_bits) << (low_bits - 1) | (s & kept)] += counts[s];
    counts = fewer;
  }
}

void Prices::price() {
  price_table(literal_counts_, 256, literals_);
  price_table(token_counts_, 256, tokens_);
  price_offsets();
  price_table(run_counts_, 64, run_values_);
  price_table(length_counts_, 64, lengths_);
  Table by_run{}, run_prices;
  for (size_t t = 0; t < 256; ++t) by_run[t & 3] += token_counts_[t];
  price_table(by_run, 4, run_prices);
  std::copy_n(run_prices.begin(), 4, runs_.begin());
  for (uint32_t row = 0; row < matches_.size(); ++row) {
    const uint32_t kind = row >> 2, run = row & 3, least = kind == kTokenNew ? kMinNewLength : kMinRepeatLength;
    for (uint32_t length = least; length < kTabled; ++length) {
      const uint32_t excess = length - least, code = std::min(excess, kTokenLengthEscape);
      matches_[row][length] = tokens_[kind << 6 | code << 2 | run] +
                              (code == kTokenLengthEscape ? escape(lengths_, excess - kTokenLengthEscape) : 0);
    }
  }
}

void Prices::reset() {
  literal_counts_.fill(kUnit);
  offset_counts_.fill(0);
  for (size_t s = 0; s < size_t{22} << kMaxLowBits; ++s) offset_counts_[s] = kUnit;
  run_counts_.fill(0);
  length_counts_.fill(0);
  for (uint32_t s = 0; s < 46; ++s) run_counts_[s] = length_counts_[s] = 2 * kUnit * (46 - s) / 8;
  for (uint32_t t = 0; t < 256; ++t) {
    const uint32_t kind = t >> 6, length = (t >> 2) & 15, run = t & 3;
    const uint32_t by_kind = kind == 0 ? 3 : kind == kTokenNew ? 12 : 1;
    token_counts_[t] = kUnit * by_kind * (16 - length) / (1 + (run == 1 || run == 2));
  }
  price();
}

void Prices::learn(const uint8_t* raw, std::span<const Sequence> sequences, const uint32_t* recent_offsets) {
  age(literal_counts_);
  age(token_counts_);
  age(offset_counts_);
  age(run_counts_);
  age(length_counts_);
  const auto count_escape = [](Table& counts, uint32_t value) {
    if (value < 16) {
      counts[value] += kUnit;
      return;
    }
    const int log = log2_floor(value);
    counts[static_cast<size_t>(16 + (log - 4) * 2) + ((value >> (log - 1)) & 1)] += kUnit;
  };
  uint32_t recent[3] = {recent_offsets[0], recent_offsets[1], recent_offsets[2]};
  const uint8_t* at = raw;
  for (const Sequence& q : sequences) {
    for (uint32_t k = 0; k < q.literals; ++k) literal_counts_[at[k]] += kUnit;
    at += q.literals + q.length;
    uint32_t kind = 0;
    while (kind < 3 && recent[kind] != q.offset) ++kind;
    for (uint32_t k = std::min(kind, 2u); k > 0; --k) recent[k] = recent[k - 1];
    recent[0] = q.offset;
    if (kind == kTokenNew) {
      const uint32_t v = q.offset + kOffsetBias;
      offset_counts_[static_cast<uint32_t>(log2_floor(v) - 3) << kMaxLowBits | (v & ((1u << kMaxLowBits) - 1))] +=
          kUnit;
    }
    const uint32_t excess = q.length - (kind == kTokenNew ? kMinNewLength : kMinRepeatLength);
    const uint32_t run_code = std::min(q.literals, kTokenLiteralEscape),
                   length_code = std::min(excess, kTokenLengthEscape);
    token_counts_[kind << 6 | length_code << 2 | run_code] += kUnit;
    if (run_code == kTokenLiteralEscape) count_escape(run_counts_, q.literals - run_code);
    if (length_code == kTokenLengthEscape) count_escape(length_counts_, excess - length_code);
  }
  price();
}

}  // namespace glyd::codec
