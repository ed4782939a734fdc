// statistics_test.cpp - counts of exponents, the same by every instruction set that runs here, and the window they ask
// for.
#include <gtest/gtest.h>

#include <cstring>

#include "base/cpu.hpp"
#include "format/fast_plan.hpp"
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

// The encoder takes a sample's window first. Whatever the sample says (here: that of each thirty-second part of the
// values, of its first 2,048), the window is the one that all exponents ask for, and the pack is the same as without.
TEST(FastWindow, IsThatOfAllValues) {
  const Grid grid{1, 2048, 1024};
  for (const bool misleading : {false, true}) {
    for (const uint64_t cut : {0, 5}) {  // rows that end within a strip
      SCOPED_TRACE(::testing::Message() << misleading << ", " << cut);
      const Grid shape{1, grid.rows - cut, grid.cols};
      Values values = make_values(matrix_kinds()[0], shape.rows * shape.cols, shape.cols);
      const uint64_t part = values.size() / 32;
      for (uint64_t i = 0; misleading && i < values.size(); ++i) {
        if (i % part < 2048) values[i] = bf16_join(0, 40 + i % 8, i % 128);
      }
      const uint32_t wanted = fast::choose_base(exponent_counts(values, 1));
      Values turned(values.size());
      for (uint64_t r = 0; r < shape.rows; ++r) {
        for (uint64_t c = 0; c < shape.cols; ++c) turned[c * shape.rows + r] = values[r * shape.cols + c];
      }
      const auto pack = pack_tensor(values, shape, false, Layout::kFast, 1);
      const auto other = pack_tensor(turned, shape, true, Layout::kFast, 3);
      ASSERT_TRUE(pack && other);
      EXPECT_EQ(open_pack(pack.value().bytes()).value().base, wanted);
      const ByteSpan a = pack.value().bytes(), b = other.value().bytes();
      ASSERT_EQ(a.size(), b.size());
      EXPECT_EQ(std::memcmp(a.data() + kPackHeaderBytes, b.data() + kPackHeaderBytes, a.size() - kPackHeaderBytes), 0);
    }
  }
}

}  // namespace
}  // namespace glyd::test
