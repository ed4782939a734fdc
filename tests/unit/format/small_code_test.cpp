// The code of layout `small`: optimal lengths, canonical codes, the table's rules, look-ups.
#include <gtest/gtest.h>

#include <queue>
#include <random>

#include "format/small_plan.hpp"

namespace glyd::small::test {
namespace {

PairCounts random_counts(uint32_t seed, double decay) {
  std::mt19937 random(seed);
  PairCounts counts;
  double weight = 1e6;
  for (uint32_t i = 0; i < kPairs; ++i) {
    counts.pairs[i * 37 % kPairs] = static_cast<uint64_t>(weight * (0.5 + static_cast<double>(random() % 1000) / 1000));
    weight *= decay;
  }
  return counts;
}
Alphabet whole_alphabet() {
  std::array<uint64_t, 256> exponents{};
  for (uint32_t e = 110; e < 126; ++e) exponents[e] = e == 120 ? 500 : 100;
  return choose_alphabet(exponents);
}

uint64_t huffman_bits(const std::array<uint64_t, kPairs>& counts) {
  std::priority_queue<uint64_t, std::vector<uint64_t>, std::greater<>> queue;
  for (const uint64_t count : counts) {
    if (count > 0) queue.push(count);
  }
  uint64_t bits = 0;
  while (queue.size() > 1) {
    uint64_t sum = queue.top();
    queue.pop();
    sum += queue.top();
    queue.pop();
    bits += sum;
    queue.push(sum);
  }
  return bits;
}

TEST(SmallPlan, LengthsAreHuffmansWhereTheLimitIsFar) {
  const PairCounts counts = random_counts(1, 0.999);  // nearly flat: no code comes near 11 bits
  const PairCode code = choose_code(whole_alphabet(), counts);
  uint64_t bits = 0;
  for (uint32_t pair = 0; pair < kPairs; ++pair) {
    ASSERT_GT(code.lengths[pair], 0u);
    bits += counts.pairs[pair] * code.lengths[pair];
  }
  EXPECT_EQ(bits, huffman_bits(counts.pairs));
}

TEST(SmallPlan, CodesAreCompleteAndAtMostElevenBits) {
  for (const double decay : {0.999, 0.97, 0.9, 0.8, 0.5}) {
    const PairCode code = choose_code(whole_alphabet(), random_counts(2, decay));
    uint32_t kraft = 0;
    for (const uint8_t length : code.lengths) {
      ASSERT_LE(length, kMostCodeBits);
      if (length > 0) kraft += 1u << (kMostCodeBits - length);
    }
    EXPECT_EQ(kraft, 1u << kMostCodeBits) << decay;
  }
}

TEST(SmallPlan, RarePairsAreLeftToPatches) {
  PairCounts counts;
  counts.pairs[0] = 1000000;
  counts.pairs[17] = 1000000;
  counts.pairs[34] = 1;  // a third code would cost a bit a pair
  const PairCode code = choose_code(whole_alphabet(), counts);
  EXPECT_EQ(code.symbols, 2u);  // nor does its symbol stay
  EXPECT_EQ(code.lengths[0], 1u);
  EXPECT_EQ(code.lengths[17], 1u);
}

TEST(SmallPlan, NothingToCode) { EXPECT_EQ(choose_code(whole_alphabet(), {}).symbols, 0u); }

TEST(SmallPlan, AlphabetOfTheMostFrequent) {
  std::array<uint64_t, 256> counts{};
  for (uint32_t e = 100; e < 120; ++e) counts[e] = 5;
  counts[3] = 9;
  const Alphabet alphabet = choose_alphabet(counts);
  EXPECT_EQ(alphabet.symbols, 16u);
  EXPECT_EQ(alphabet.exponents[0], 3u);
  EXPECT_EQ(alphabet.exponents[15], 114u);  // of equal ones the lower
  EXPECT_EQ(alphabet.commonest, 3u);
}

TEST(SmallPlan, LeastBitsOfARegion) {
  RegionHistogram histogram{};
  histogram[300] = 10;
  EXPECT_EQ(choose_min_bits(histogram), 45u);  // 45 + 255: none too long, none padded
  histogram[20] = 1000;                        // padding of the many against patches of the few
  // 300 - 255 - 15 = 30 bits too many are three patches, as at 20; with 14, four.
  EXPECT_EQ(choose_min_bits(histogram), 15u);
}

TEST(SmallCode, TableComesBackAndLookupsAgree) {
  const PairCode code = choose_code(whole_alphabet(), random_counts(3, 0.95));
  uint8_t table[kTableBytes];
  write_table(code, table);
  const auto read = read_table(table, code.symbols);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read.value().lengths, code.lengths);
  EXPECT_EQ(read.value().alphabet, code.alphabet);
  CanonicalCodes canonical;
  ASSERT_TRUE(make_canonical(code, canonical));
  EXPECT_EQ(canonical.codes[canonical.zero_pair], 0u);
  LookupTables tables;
  make_lookups(code, canonical, tables);
  for (uint32_t pair = 0; pair < kPairs; ++pair) {
    const uint32_t length = code.lengths[pair];
    if (length == 0) continue;
    uint32_t reversed = 0;
    for (uint32_t i = 0; i < length; ++i) reversed |= (canonical.codes[pair] >> (length - 1 - i) & 1u) << i;
    const uint32_t wanted = pair_entry(code.alphabet[pair / 16], code.alphabet[pair % 16]) | length;
    EXPECT_EQ(tables.up[reversed], wanted);
    EXPECT_EQ(tables.up[reversed | (kLookups - (1u << length))], wanted);
    EXPECT_EQ(tables.down[static_cast<uint32_t>(canonical.codes[pair]) << (kMostCodeBits - length)], wanted);
  }
}

TEST(SmallCode, IncompleteCodesHaveHoles) {
  PairCode code;
  code.symbols = 1;
  code.alphabet[0] = 120;
  code.lengths[0] = 1;
  CanonicalCodes canonical;
  ASSERT_TRUE(make_canonical(code, canonical));
  LookupTables tables;
  make_lookups(code, canonical, tables);
  EXPECT_EQ(tables.up[0], pair_entry(120, 120) | 1);
  EXPECT_EQ(tables.up[1], kNoCode);
  EXPECT_EQ(tables.down[kLookups - 1], kNoCode);
}

TEST(SmallCode, BrokenTablesAreRefused) {
  const PairCode good = choose_code(whole_alphabet(), random_counts(4, 0.97));
  const auto refused = [](const PairCode& code, uint32_t symbols) {
    uint8_t table[kTableBytes];
    write_table(code, table);
    return !read_table(table, symbols);
  };
  EXPECT_FALSE(refused(good, good.symbols));
  EXPECT_TRUE(refused(good, good.symbols - 1));  // symbols behind the last
  PairCode bad = good;
  bad.alphabet[1] = bad.alphabet[0];
  EXPECT_TRUE(refused(bad, bad.symbols));
  bad = good;
  bad.lengths[5] = 12;
  EXPECT_TRUE(refused(bad, bad.symbols));
  bad = good;
  bad.lengths[5] = 1;  // more than Kraft allows
  EXPECT_TRUE(refused(bad, bad.symbols));
  bad = {};
  bad.symbols = 2;
  bad.alphabet = {1, 2};
  EXPECT_TRUE(refused(bad, 2));  // no code at all
  bad.lengths[0] = 1;
  EXPECT_TRUE(refused(bad, 2));  // the second symbol is in no pair
  bad.lengths[2] = 1;
  EXPECT_TRUE(refused(bad, 2));  // a pair outside the alphabet
}

TEST(SmallFormat, PatchFieldsComeBack) {
  const uint32_t patch = make_patch(19, 2, 1, 5, 200, 17);
  EXPECT_EQ(patch_lane(patch), 19u);
  EXPECT_EQ(patch_pair(patch), 2u);
  EXPECT_EQ(patch_stream(patch), 1u);
  EXPECT_EQ(patch_step(patch), 5u);
  EXPECT_EQ(patch_first(patch), 200u);
  EXPECT_EQ(patch_second(patch), 17u);
  EXPECT_EQ(patch & kPatchZeroBits, 0u);
}

}  // namespace
}  // namespace glyd::small::test
