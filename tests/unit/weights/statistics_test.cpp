// statistics_test.cpp - counts of exponents, the same by every instruction set that runs here.
#include <gtest/gtest.h>

#include "base/cpu.hpp"
#include "unit/weights/matrices.hpp"
#include "weights/weights.hpp"

namespace glyd::test {
namespace {

std::array<uint64_t, 256> counted_one_by_one(const Values& values) {
  std::array<uint64_t, 256> counts{};
  for (const uint16_t value : values) ++counts[bf16_exponent(value)];
  return counts;
}

void check_counts(const Values& values) {
  const auto expected = counted_one_by_one(values);
  for (const Isa isa : {Isa::kScalar, Isa::kAvx2, Isa::kAvx512}) {
    if (isa > cpu_isa_detected()) continue;
    const ScopedIsa scoped(isa);
    for (const int threads : {1, 3}) EXPECT_EQ(exponent_counts(values, threads), expected) << isa_name(isa);
  }
}

TEST(ExponentCounts, OfEveryKindOfMatrix) {
  for (const MatrixKind& kind : matrix_kinds()) {
    SCOPED_TRACE(kind.name);
    check_counts(make_values(kind, 300'007, 1000));
  }
}

TEST(ExponentCounts, OfFewAndOfNone) {
  for (const uint64_t count : {0, 1, 31, 2048, 2049, 2080, 3103, 9183, 9184, 9185}) {
    SCOPED_TRACE(count);
    check_counts(make_values(matrix_kinds()[0], count, 100));
  }
}

// The band is taken from the first values: here all others lie outside it, or at an end of what exponents there are.
TEST(ExponentCounts, WhereTheFirstValuesSayNothing) {
  for (const uint32_t first : {0, 1, 127, 239, 240, 241, 254, 255}) {
    SCOPED_TRACE(first);
    Random random(first);
    Values values;
    for (uint32_t i = 0; i < 1500; ++i) values.push_back(bf16_join(0, first, i % 128));
    for (uint32_t i = 0; i < 40'000; ++i) values.push_back(bf16_join(i % 2, below(random, 256), i % 128));
    check_counts(values);
  }
}

}  // namespace
}  // namespace glyd::test
