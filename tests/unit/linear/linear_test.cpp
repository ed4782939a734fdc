// linear_test.cpp - products from packed weights against sums in double precision, on every instruction set that runs
// here.
#include <gtest/gtest.h>

#include "unit/linear/problems.hpp"

namespace glyd::test {
namespace {

Result<void> multiply(const Problem& p, ByteSpan pack, int threads, Values& y) {
  return linear(pack, arguments(p, y), threads);
}

class Linear : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (GetParam() > cpu_isa_detected()) GTEST_SKIP() << "this CPU has no " << isa_name(GetParam());
    isa_.emplace(GetParam());
  }
  void run(const Case& shape, const MatrixKind& kind, Layout layout) { run(make_problem(shape, kind), layout); }
  void run(const Problem& p, Layout layout) {
    SCOPED_TRACE(::testing::Message() << "layout " << static_cast<int>(layout) << ", " << p.shape.grid.stack << " x "
                                      << p.shape.grid.rows << " x " << p.shape.grid.cols << ", " << p.shape.tokens
                                      << " tokens");
    const AlignedBuffer pack = pack_of(p, layout);
    Values y;
    ASSERT_TRUE(multiply(p, pack.bytes(), 1, y));
    check(p, y);
  }

 private:
  std::optional<ScopedIsa> isa_;
};

INSTANTIATE_TEST_SUITE_P(Every, Linear, ::testing::Values(Isa::kScalar, Isa::kAvx2, Isa::kAvx512, Isa::kAmx),
                         [](const auto& tested) { return isa_name(tested.param); });

constexpr Layout kLayouts[] = {Layout::kRaw, Layout::kFast, Layout::kSmall};

TEST_P(Linear, EveryShape) {
  for (const uint64_t rows : {1, 15, 16, 17, 130}) {
    for (const uint64_t cols :
         {1, 2, 15, 16, 17, 31, 33, 48, 64, 79, 80, 96, 111, 112, 127, 128, 129, 256, 257, 513, 640}) {
      for (const Layout layout : kLayouts)
        run({.grid = {1, rows, cols}, .tokens = 1 + cols % 3}, matrix_kind("Gaussian"), layout);
    }
  }
}

TEST_P(Linear, EveryNumberOfTokens) {
  for (const uint64_t tokens : {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17, 33, 64, 65, 70}) {
    for (const Layout layout : kLayouts) run({.grid = {1, 35, 330}, .tokens = tokens}, matrix_kind("Gaussian"), layout);
  }
}

TEST_P(Linear, EveryKindOfMatrix) {
  for (const MatrixKind& kind : matrix_kinds()) {
    SCOPED_TRACE(kind.name);
    for (const Layout layout : kLayouts) {
      for (const uint64_t tokens : {1, 5}) run({.grid = {1, 45, 275}, .tokens = tokens}, kind, layout);
    }
  }
}

TEST_P(Linear, StacksStridesAndBias) {
  for (const Layout layout : kLayouts) {
    for (const uint64_t matrix : {0, 2, 4}) {
      for (const bool transposed : {false, true}) {
        run({.grid = {5, 33, 270},
             .transposed = transposed,
             .matrix = matrix,
             .tokens = 3,
             .x_margin = 13,
             .y_margin = 5,
             .with_bias = true},
            matrix_kind("Gaussian"), layout);
      }
    }
  }
}

TEST_P(Linear, TransposedRawOfAnyShape) {
  for (const uint64_t cols : {1, 16, 31, 255, 257, 600}) {
    run({.grid = {1, 39, cols}, .transposed = true, .tokens = 9}, matrix_kind("RandomBits"), Layout::kRaw);
  }
}

// Long rows: several blocks of columns, and x too large to be scaled in advance.
TEST_P(Linear, LongRows) {
  for (const Layout layout : kLayouts) {
    for (const uint64_t tokens : {1, 9})
      run({.grid = {1, 18, 9001}, .tokens = tokens}, matrix_kind("Gaussian"), layout);
  }
}

TEST_P(Linear, NonFiniteXStaysInItsToken) {
  for (const Layout layout : kLayouts) {
    Problem p = make_problem({.grid = {1, 40, 200}, .tokens = 5}, matrix_kind("SomeNonFinite"));
    p.x[3] = kInfinity;
    p.x[p.x_stride() + 199] = kNan;
    p.x[2 * p.x_stride()] = kInfinity | 0x8000;
    p.x[2 * p.x_stride() + 1] = kInfinity;
    run(p, layout);
  }
}

// Values whose product with a power of two is no bf16 number: the shifted form of `fast` would lose them.
TEST_P(Linear, ExtremeX) {
  for (const Layout layout : kLayouts) {
    for (const uint16_t extreme :
         {uint16_t{0x7f7f}, uint16_t{0x0080}, uint16_t{0x0001}, uint16_t{0x80ff}, uint16_t{0x7e80}}) {
      Problem p = make_problem({.grid = {1, 20, 150}, .tokens = 2}, matrix_kind("Gaussian"));
      for (uint64_t c = 0; c < 150; c += 7) p.x[c] = extreme;
      run(p, layout);
    }
    // Weights as extreme as x, the products ordinary.
    Problem p = make_problem({.grid = {1, 20, 150}, .tokens = 2}, matrix_kind("HugeExponents"));
    for (uint16_t& x : p.x) x = static_cast<uint16_t>((x & 0x807f) | 8 << 7);
    run(p, layout);
  }
}

TEST_P(Linear, ThreadsChangeNothing) {
  for (const Layout layout : kLayouts) {
    for (const uint64_t tokens : {1, 5}) {
      const Problem p =
          make_problem({.grid = {1, 1100, 700}, .tokens = tokens, .with_bias = true}, matrix_kind("HeavyTails"));
      const AlignedBuffer pack = pack_of(p, layout);
      Values one, other;
      ASSERT_TRUE(multiply(p, pack.bytes(), 1, one));
      for (const int threads : {2, 5, 0}) {
        ASSERT_TRUE(multiply(p, pack.bytes(), threads, other));
        EXPECT_EQ(one, other) << threads << " threads";
      }
    }
  }
}

TEST_P(Linear, NothingToSum) {
  const Problem p = make_problem({.grid = {1, 19, 0}, .tokens = 2, .with_bias = true}, matrix_kind("Gaussian"));
  run(p, Layout::kFast);
  const Problem none = make_problem({.grid = {1, 0, 19}, .tokens = 2}, matrix_kind("Gaussian"));
  run(none, Layout::kFast);
  run({.grid = {1, 5, 5}, .tokens = 0}, matrix_kind("Gaussian"), Layout::kFast);
}

TEST_P(Linear, RefusesWrongArguments) {
  Problem p = make_problem({.grid = {2, 20, 40}, .tokens = 2}, matrix_kind("Gaussian"));
  const AlignedBuffer pack = pack_of(p, Layout::kFast);
  Values y(40);
  const LinearArgs good{.matrix = 1, .x = p.x.data(), .tokens = 2, .x_stride = 40, .y = y.data(), .y_stride = 20};
  ASSERT_TRUE(linear(pack.bytes(), good, 1));
  const auto refused = [&](auto&& change) {
    LinearArgs args = good;
    change(args);
    const auto result = linear(pack.bytes(), args, 1);
    return !result && result.error().status == GLYD_ERROR_INVALID_ARGUMENT;
  };
  EXPECT_TRUE(refused([](LinearArgs& args) { args.matrix = 2; }));
  EXPECT_TRUE(refused([](LinearArgs& args) { args.x = nullptr; }));
  EXPECT_TRUE(refused([](LinearArgs& args) { args.y = nullptr; }));
  EXPECT_TRUE(refused([](LinearArgs& args) { args.x_stride = 39; }));
  EXPECT_TRUE(refused([](LinearArgs& args) { args.y_stride = 19; }));
  EXPECT_FALSE(linear(pack.bytes().first(64), good, 1));
}

// Patch slots that claim what is not there. The pack's slot of strip 0, record 0.
TEST_P(Linear, RefusesBrokenPatches) {
  if (GetParam() == Isa::kScalar) GTEST_SKIP() << "decodes by the layout's own decoder";
  const Problem p = make_problem({.grid = {1, 64, 512}}, matrix_kind("Gaussian"));
  const AlignedBuffer good = pack_of(p, Layout::kFast);
  const PackHeader header = open_pack(good.bytes()).value();
  ASSERT_EQ(header.layout, Layout::kFast);
  ASSERT_TRUE(header.fusible && header.slot_bytes > 0);
  const auto status_with = [&](auto&& change) {
    AlignedBuffer pack(good.size());
    std::memcpy(pack.data(), good.data(), good.size());
    change(pack.data() + header.array_offset(fast::kPatches));
    Values y;
    const auto result = multiply(p, pack.bytes(), 1, y);
    return result ? GLYD_OK : result.error().status;
  };
  EXPECT_EQ(status_with([](uint8_t*) {}), GLYD_OK);
  EXPECT_EQ(status_with([](uint8_t* slot) { slot[0] = 0x7f; }), GLYD_ERROR_CORRUPT);
  EXPECT_EQ(status_with([](uint8_t* slot) { slot[1] = 0xff; }), GLYD_ERROR_CORRUPT);
  const uint32_t place_at = header.slot_bytes - 4;
  for (const uint32_t place : {uint32_t{0}, uint32_t{1} << 20, ~uint32_t{0}}) {
    const auto result = status_with([&](uint8_t* slot) {
      slot[0] = 0x80;
      slot[1] = 0;
      store_le<uint32_t>(slot + place_at, place + static_cast<uint32_t>(header.array_bytes[fast::kOverflow] / 4));
    });
    EXPECT_EQ(result, GLYD_ERROR_CORRUPT) << place;
  }
  // A refused pack leaves nothing behind in the memory that products keep.
  Values y;
  ASSERT_TRUE(multiply(p, good.bytes(), 1, y));
  check(p, y);
}

// Whatever the bytes, no crash and nothing out of bounds (the sanitizer builds look on).
TEST_P(Linear, SurvivesAnyBytes) {
  Random random(3);
  for (const Layout layout : {Layout::kFast, Layout::kSmall}) {
    const Problem p = make_problem({.grid = {1, 50, 390}, .tokens = 2}, matrix_kind("HeavyTails"));
    const AlignedBuffer good = pack_of(p, layout);
    for (int round = 0; round < 60; ++round) {
      AlignedBuffer pack(good.size());
      std::memcpy(pack.data(), good.data(), good.size());
      const uint32_t flips = 1u << below(random, 12);
      for (uint32_t i = 0; i < flips; ++i) {
        pack.data()[128 + below(random, static_cast<uint32_t>(good.size() - 128))] = static_cast<uint8_t>(random());
      }
      Values y;
      (void)multiply(p, pack.bytes(), 1, y);
    }
  }
}

TEST(LinearIsa, EveryInstructionSetAgreesWithinRounding) {
  const Problem p = make_problem({.grid = {1, 64, 1024}, .tokens = 4}, matrix_kind("Gaussian"));
  const AlignedBuffer pack = pack_of(p, Layout::kFast);
  for (const Isa isa : {Isa::kScalar, Isa::kAvx2, Isa::kAvx512, Isa::kAmx}) {
    if (isa > cpu_isa_detected()) continue;
    const ScopedIsa scope(isa);
    Values y;
    ASSERT_TRUE(multiply(p, pack.bytes(), 2, y));
    check(p, y);
  }
}

}  // namespace
}  // namespace glyd::test
