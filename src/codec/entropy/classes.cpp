#include "codec/entropy/classes.hpp"

#include <algorithm>
#include <vector>

#include "codec/entropy/fixed_log2.hpp"

namespace glyd::codec {
namespace {

constexpr size_t kStrides[] = {1, 2, 3};

using Pairs = std::vector<Histogram>;  // [symbol before][symbol]

uint64_t add_up(const Histogram& counts) {
  uint64_t total = 0;
  for (const uint32_t c : counts) total += c;
  return total;
}

// Prices of what follows a class, from the sums of what did.
std::vector<Histogram> price_followers(const std::vector<Histogram>& sums) {
  std::vector<Histogram> prices(sums.size());
  for (size_t c = 0; c < sums.size(); ++c) {
    const uint32_t whole = fixed_log2(static_cast<uint32_t>(8 * add_up(sums[c]) + 256));
    for (size_t y = 0; y < 256; ++y) prices[c][y] = whole - fixed_log2(8 * sums[c][y] + 1);
  }
  return prices;
}

uint64_t price_of(const Histogram& counts, const Histogram& prices) {
  uint64_t price = 0;
  for (size_t y = 0; y < 256; ++y) price += uint64_t{counts[y]} * prices[y];
  return price;
}

// Symbols sorted into classes, so that what follows those of a class is alike: starts with the `sums` of what follows
// some, then moves each symbol to the class in whose code its followers are shortest, a few times.
bool cluster(const Pairs& pairs, const std::vector<uint8_t>& order, std::vector<Histogram>& sums, Classes& classes) {
  classes.count = sums.size();
  constexpr int kRounds = 6;
  for (int round = 0; round < kRounds; ++round) {
    const std::vector<Histogram> prices = price_followers(sums);
    for (Histogram& sum : sums) sum.fill(0);
    for (const uint8_t before : order) {
      uint64_t least = UINT64_MAX;
      for (size_t c = 0; c < classes.count; ++c) {
        const uint64_t price = price_of(pairs[before], prices[c]);
        if (price < least) least = price, classes.of[before] = static_cast<uint8_t>(c);
      }
      Histogram& sum = sums[classes.of[before]];
      for (size_t y = 0; y < 256; ++y) sum[y] += pairs[before][y];
    }
  }
  return std::all_of(sums.begin(), sums.end(), [](const Histogram& sum) { return add_up(sum) != 0; });
}

// The symbol whose followers the classes' codes suit least: they take most bits above those of a code of their own.
uint8_t worst_suited(const Pairs& pairs, const std::vector<uint8_t>& order, const std::vector<Histogram>& sums) {
  const std::vector<Histogram> prices = price_followers(sums);
  uint64_t most = 0;
  uint8_t worst = order[0];
  for (const uint8_t before : order) {
    const Histogram& counts = pairs[before];
    const uint32_t whole = fixed_log2(static_cast<uint32_t>(add_up(counts) | 1));
    uint64_t own = 0, least = UINT64_MAX;
    for (const uint32_t c : counts) own += c != 0 ? uint64_t{c} * (whole - fixed_log2(c)) : 0;
    for (const Histogram& p : prices) least = std::min(least, price_of(counts, p));
    if (least > own && least - own > most) most = least - own, worst = before;
  }
  return worst;
}

// Lengths of the classes' codes; the bits of symbols and tables.
size_t make_class_codes(const Pairs& pairs, const std::vector<uint8_t>& order, const Histogram& first,
                        Classes& classes) {
  size_t bits = order.size() * 2;
  for (size_t c = 0; c < classes.count; ++c) {
    Histogram sum = c == 0 ? first : Histogram{};
    for (const uint8_t before : order) {
      if (classes.of[before] != c) continue;
      for (size_t y = 0; y < 256; ++y) sum[y] += pairs[before][y];
    }
    Histogram for_code = sum;
    if (std::count(sum.begin(), sum.end(), 0u) >= 255) {
      const size_t only = static_cast<size_t>(std::max_element(sum.begin(), sum.end()) - sum.begin());
      for_code[only ^ 1] = 1;  // a code of one symbol would have no bits
    }
    make_code_lengths(for_code.data(), 256, kMaxCodeBits, classes.lengths[c].bits.data());
    uint8_t table[kMostTableBytes];
    bits += coded_bits(sum, classes.lengths[c]) + 8 * write_code_lengths(classes.lengths[c], table);
  }
  return bits;
}

}  // namespace

// Where a search ends depends on where it begins, so there are a few beginnings: the most frequent symbols, each by
// each, every second or every third; and one class less with what suits it least put apart.
std::optional<Classes> find_classes(ByteSpan symbols, const Histogram& counts, size_t most_bits) {
  const size_t segment = ceil_div(symbols.size(), static_cast<size_t>(stream_lanes(symbols.size())));
  Pairs pairs(256);
  Histogram first{};
  for (size_t i = 0; i < symbols.size(); ++i) ++(i % segment == 0 ? first : pairs[symbols[i - 1]])[symbols[i]];
  std::vector<uint8_t> order;
  for (size_t s = 0; s < 256; ++s) {
    if (counts[s] != 0) order.push_back(static_cast<uint8_t>(s));
  }
  std::stable_sort(order.begin(), order.end(), [&](uint8_t a, uint8_t b) { return counts[a] > counts[b]; });
  std::optional<Classes> best;
  const auto consider = [&](std::vector<Histogram>& sums) {
    Classes classes;
    if (!cluster(pairs, order, sums, classes)) return;
    const size_t bits = make_class_codes(pairs, order, first, classes);
    if (bits < most_bits) most_bits = bits, best = classes;
  };
  std::vector<Histogram> grown = {counts};
  for (const size_t count : {size_t{2}, size_t{3}, size_t{4}}) {
    for (const size_t stride : kStrides) {
      if (order.size() < count * stride) break;
      std::vector<Histogram> sums(count);
      for (size_t c = 0; c < count; ++c) sums[c] = pairs[order[c * stride]];
      consider(sums);
    }
    grown.push_back(pairs[worst_suited(pairs, order, grown)]);
    consider(grown);
  }
  return best;
}

}  // namespace glyd::codec
