#include "format/small_plan.hpp"

#include <algorithm>
#include <numeric>

namespace glyd::small {
namespace {

constexpr uint64_t kPatchBits = 32;
constexpr uint64_t kMostLengthByte = 255;

// Package-merge over weights in ascending order: lengths in the same order. One list a bit of length, each the leaves
// merged with the pairs of the list before (leaves first where equal); the 2n - 2 cheapest of the last one are taken,
// and what they are made of, list by list.
class PackageMerge {
 public:
  // Total bits; lengths to lengths[0 ... n - 1]. 1 <= n <= 256.
  uint64_t run(const uint64_t* weights, uint32_t n, uint8_t* lengths) {
    std::fill_n(lengths, n, uint8_t{1});
    if (n == 1) return weights[0];
    std::fill_n(lengths, n, uint8_t{0});
    uint32_t size = 0;
    for (uint32_t level = 0; level < kMostCodeBits; ++level) size = merge(weights, n, level, size);
    uint32_t take = 2 * n - 2;
    uint64_t total = 0;
    for (uint32_t level = kMostCodeBits; level-- > 0;) {
      uint32_t leaves = 0;
      for (uint32_t i = 0; i < take; ++i) leaves += is_leaf_[level][i];
      for (uint32_t i = 0; i < leaves; ++i) {
        ++lengths[i];
        total += weights[i];
      }
      take = 2 * (take - leaves);
    }
    return total;
  }

 private:
  uint32_t merge(const uint64_t* weights, uint32_t n, uint32_t level, uint32_t previous_size) {
    const auto& from = lists_[(level + 1) % 2];
    auto& to = lists_[level % 2];
    const uint32_t packages = previous_size / 2;
    uint32_t leaf = 0, package = 0, size = 0;
    while (leaf < n || package < packages) {
      const uint64_t packed = package < packages ? from[2 * package] + from[2 * package + 1] : UINT64_MAX;
      const bool take_leaf = leaf < n && weights[leaf] <= packed;
      to[size] = take_leaf ? weights[leaf++] : packed;
      package += take_leaf ? 0 : 1;
      is_leaf_[level][size++] = take_leaf ? 1 : 0;
    }
    return size;
  }

  uint64_t lists_[2][2 * kPairs];
  uint8_t is_leaf_[kMostCodeBits][2 * kPairs];
};

// The k most frequent of `order` coded, the others patched: bits in all. Lengths by rank, the most frequent first.
uint64_t cost_of(PackageMerge& merge, const std::array<uint64_t, kPairs>& ranked, uint32_t k, uint64_t patched,
                 uint8_t* lengths) {
  uint64_t ascending[kPairs] = {};
  for (uint32_t i = 0; i < k; ++i) ascending[i] = ranked[k - 1 - i];
  const uint64_t bits = merge.run(ascending, k, lengths);
  std::reverse(lengths, lengths + k);
  return bits + patched * (kPatchBits + lengths[0]);
}

// Drops the symbols that are in no coded pair.
PairCode shrink(const Alphabet& alphabet, const std::array<uint8_t, kPairs>& lengths) {
  PairCode code;
  std::array<uint32_t, kMostSymbols> index{};
  for (uint32_t s = 0; s < alphabet.symbols; ++s) {
    bool used = false;
    for (uint32_t t = 0; t < kMostSymbols; ++t) used |= lengths[16 * s + t] != 0 || lengths[16 * t + s] != 0;
    if (!used) continue;
    index[s] = code.symbols;
    code.alphabet[code.symbols++] = alphabet.exponents[s];
  }
  for (uint32_t pair = 0; pair < kPairs; ++pair) {
    if (lengths[pair] != 0) code.lengths[16 * index[pair / 16] + index[pair % 16]] = lengths[pair];
  }
  return code;
}

}  // namespace

Alphabet choose_alphabet(const std::array<uint64_t, 256>& exponent_counts) {
  std::array<uint32_t, 256> order;
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return exponent_counts[a] > exponent_counts[b]; });
  Alphabet alphabet;
  alphabet.commonest = static_cast<uint8_t>(order[0]);
  while (alphabet.symbols < kMostSymbols && exponent_counts[order[alphabet.symbols]] > 0) {
    alphabet.exponents[alphabet.symbols] = static_cast<uint8_t>(order[alphabet.symbols]);
    ++alphabet.symbols;
  }
  std::sort(alphabet.exponents.begin(), alphabet.exponents.begin() + alphabet.symbols);
  return alphabet;
}

PairCode choose_code(const Alphabet& alphabet, const PairCounts& counts) {
  std::array<uint32_t, kPairs> order;
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return counts.pairs[a] > counts.pairs[b]; });
  std::array<uint64_t, kPairs> ranked;
  std::array<uint64_t, kPairs + 1> rest{};  // rest[k]: pairs patched if the k most frequent are coded
  rest[kPairs] = counts.others;
  uint32_t present = 0;
  for (uint32_t i = kPairs; i-- > 0;) {
    ranked[i] = counts.pairs[order[i]];
    rest[i] = rest[i + 1] + ranked[i];
    present += ranked[i] > 0 ? 1 : 0;
  }
  if (present == 0) return {};
  PackageMerge merge;
  uint8_t lengths[kPairs] = {};
  uint32_t best = present;
  uint64_t least = cost_of(merge, ranked, present, rest[present], lengths);
  const auto consider = [&](uint32_t k) {
    const uint64_t cost = cost_of(merge, ranked, k, rest[k], lengths);
    if (cost >= least) return;
    least = cost;
    best = k;
  };
  // The cost falls and then rises in k but for ripples: every 16th, then all within 15 of the best.
  for (uint32_t k = present / 16 * 16; k >= 16; k -= 16) consider(k);
  const uint32_t centre = best;
  for (uint32_t k = centre > 15 ? centre - 15 : 1; k <= std::min(centre + 15, present); ++k) consider(k);
  cost_of(merge, ranked, best, rest[best], lengths);
  std::array<uint8_t, kPairs> by_pair{};
  for (uint32_t i = 0; i < best; ++i) by_pair[order[i]] = lengths[i];
  return shrink(alphabet, by_pair);
}

uint32_t choose_min_bits(const RegionHistogram& histogram) {
  uint32_t best = 0;
  uint64_t least = UINT64_MAX;
  for (uint32_t min_bits = 0; min_bits <= kMostMinBits; ++min_bits) {
    uint64_t cost = 0;
    for (uint32_t bits = 0; bits <= kMostMinBits; ++bits) {
      if (bits < min_bits) {
        cost += histogram[bits] * (min_bits - bits);
      } else if (bits > min_bits + kMostLengthByte) {
        // A patch shortens a region by 10 bits at most.
        cost += histogram[bits] * ((bits - min_bits - kMostLengthByte + 9) / 10) * kPatchBits;
      }
    }
    if (cost < least) {
      least = cost;
      best = min_bits;
    }
  }
  return best;
}

PackHeader plan_header(const Grid& grid, bool transposed, const PairCode& code, uint32_t min_bits,
                       uint64_t code_words) {
  PackHeader header;
  header.layout = Layout::kSmall;
  header.transposed = transposed;
  header.grid = grid;
  header.min_bits = min_bits;
  header.symbols = code.symbols;
  header.array_bytes[kPlanes] = planes_bytes(grid.strips(), grid.steps());
  header.array_bytes[kCodes] = 4 * code_words;
  header.array_bytes[kOffsets] = offsets_bytes(grid.strips(), grid.steps());
  header.array_bytes[kTable] = kTableBytes;
  finish_sizes(header);
  return header;
}

}  // namespace glyd::small
