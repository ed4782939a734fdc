// matrix_unit_test.cpp - products on matrix units: the driver with the loops that stand for a unit, on any CPU; and
// AMX, where it is, bit for bit against those loops.
#include "weights/linear/matrix_unit.hpp"

#include "unit/linear/problems.hpp"

namespace glyd::test {
namespace {

constexpr Layout kLayouts[] = {Layout::kRaw, Layout::kFast, Layout::kSmall};

Status multiply(const Problem& p, ByteSpan pack, int threads, const MatrixKernels& kernels, Values& y) {
  const LinearArgs args = arguments(p, y);
  const auto header = open_pack(pack);
  EXPECT_TRUE(header);
  const auto result = multiply_by_matrix_unit({pack, header.value()}, args, threads, kernels);
  return result ? GLYD_OK : result.error().status;
}

// Equal, or both NaN.
void expect_equal(const Values& got, const Values& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) {
    const bool nan = std::isnan(widen(got[i])) && std::isnan(widen(wanted[i]));
    ASSERT_TRUE(nan || got[i] == wanted[i]) << "at " << i << ": " << widen(got[i]) << " for " << widen(wanted[i]);
  }
}

// The first: the loops against sums in double precision. The second: AMX against the loops.
enum class Unit { kLoops, kAmx };

class MatrixUnit : public ::testing::TestWithParam<Unit> {
 protected:
  void SetUp() override {
    if (GetParam() == Unit::kAmx && cpu_isa_detected() < Isa::kAmx) GTEST_SKIP() << "this CPU has no AMX";
  }
  static const MatrixKernels& kernels() {
    return GetParam() == Unit::kAmx ? *matrix_kernels_amx() : matrix_kernels_scalar();
  }
  static void run(const Problem& p, Layout layout, int threads = 1) {
    SCOPED_TRACE(::testing::Message() << "layout " << static_cast<int>(layout) << ", " << p.shape.grid.stack << " x "
                                      << p.shape.grid.rows << " x " << p.shape.grid.cols << ", " << p.shape.tokens
                                      << " tokens, " << threads << " threads");
    const AlignedBuffer pack = pack_of(p, layout);
    Values y, wanted;
    ASSERT_EQ(multiply(p, pack.bytes(), threads, kernels(), y), GLYD_OK);
    if (GetParam() == Unit::kLoops) return check(p, y, true);
    ASSERT_EQ(multiply(p, pack.bytes(), 1, matrix_kernels_scalar(), wanted), GLYD_OK);
    expect_equal(y, wanted);
  }
  static void run(const Case& shape, const std::string& kind, Layout layout, int threads = 1) {
    run(make_problem(shape, matrix_kind(kind)), layout, threads);
  }
};

INSTANTIATE_TEST_SUITE_P(, MatrixUnit, ::testing::Values(Unit::kLoops, Unit::kAmx),
                         [](const auto& tested) { return tested.param == Unit::kAmx ? "Amx" : "Loops"; });

TEST_P(MatrixUnit, EveryNumberOfTokens) {
  for (const uint64_t tokens : {1, 2, 3, 8, 15, 16, 17, 31, 32, 33, 47, 48, 49, 63, 64, 65, 80, 128, 130, 200}) {
    for (const Layout layout : kLayouts) run({.grid = {1, 19, 330}, .tokens = tokens}, "Gaussian", layout);
  }
}

// Ends of rows, sets, steps and records.
TEST_P(MatrixUnit, EveryShape) {
  for (const uint64_t rows : {1, 15, 16, 17, 50, 64, 65, 100}) {
    for (const uint64_t cols : {1, 2, 16, 31, 32, 33, 63, 65, 96, 127, 128, 129, 255, 256, 257, 400}) {
      for (const Layout layout : kLayouts) run({.grid = {1, rows, cols}, .tokens = 1 + cols % 5}, "Gaussian", layout);
    }
  }
}

// A block of columns is 5,376 of them to 16 tokens, 2,048 to 32, 1,280 to 48, 1,024 to 64; and a thread goes through it
// set by set.
TEST_P(MatrixUnit, BlocksOfColumns) {
  for (const uint64_t cols : {1023, 1024, 1025, 1279, 1280, 1281, 2047, 2049}) {
    for (const uint64_t tokens : {2, 20, 40, 64}) {
      for (const Layout layout : kLayouts) run({.grid = {1, 17, cols}, .tokens = tokens}, "Gaussian", layout);
    }
  }
  for (const uint64_t cols : {5376, 5377, 10800}) {
    for (const Layout layout : kLayouts) run({.grid = {1, 17, cols}, .tokens = 9}, "Gaussian", layout);
  }
  for (const uint64_t tokens : {5, 33, 64}) run({.grid = {1, 330, 1100}, .tokens = tokens}, "Gaussian", Layout::kFast);
  run({.grid = {1, 330, 5500}, .tokens = 3}, "Gaussian", Layout::kFast);
}

TEST_P(MatrixUnit, EveryKindOfMatrix) {
  for (const MatrixKind& kind : matrix_kinds()) {
    SCOPED_TRACE(kind.name);
    for (const Layout layout : kLayouts) {
      for (const uint64_t tokens : {3, 35}) run({.grid = {1, 45, 275}, .tokens = tokens}, kind.name, layout);
    }
  }
}

TEST_P(MatrixUnit, StacksStridesAndBias) {
  for (const Layout layout : kLayouts) {
    for (const uint64_t matrix : {0, 2, 4}) {
      for (const bool transposed : {false, true}) {
        for (const uint64_t tokens : {3, 37}) {
          run({.grid = {5, 33, 270},
               .transposed = transposed,
               .matrix = matrix,
               .tokens = tokens,
               .x_margin = 13,
               .y_margin = 5,
               .with_bias = true},
              "Gaussian", layout);
        }
      }
    }
  }
}

// Groups of sets of every size, more than one a thread.
TEST_P(MatrixUnit, Groups) {
  for (const int threads : {1, 2, 3}) {
    for (const uint64_t rows : {16, 60, 1000, 2100})
      run({.grid = {1, rows, 150}, .tokens = 5}, "Gaussian", Layout::kFast, threads);
  }
}

TEST_P(MatrixUnit, ThreadsChangeNothing) {
  for (const Layout layout : kLayouts) {
    for (const uint64_t tokens : {5, 70}) {
      const Problem p =
          make_problem({.grid = {1, 500, 300}, .tokens = tokens, .with_bias = true}, matrix_kind("HeavyTails"));
      const AlignedBuffer pack = pack_of(p, layout);
      Values one, other;
      ASSERT_EQ(multiply(p, pack.bytes(), 1, kernels(), one), GLYD_OK);
      for (const int threads : {2, 3, 0}) {
        ASSERT_EQ(multiply(p, pack.bytes(), threads, kernels(), other), GLYD_OK);
        EXPECT_EQ(one, other) << threads << " threads";
      }
    }
  }
}

// In the last columns too, beside what is not there.
TEST_P(MatrixUnit, NonFiniteXStaysInItsToken) {
  for (const Layout layout : kLayouts) {
    for (const uint64_t cols : {200, 257}) {
      Problem p = make_problem({.grid = {1, 40, cols}, .tokens = 21}, matrix_kind("SomeNonFinite"));
      p.x[3] = kInfinity;
      p.x[p.x_stride() + cols - 1] = kNan;
      p.x[2 * p.x_stride()] = kInfinity | 0x8000;
      p.x[2 * p.x_stride() + 1] = kInfinity;
      p.x[20 * p.x_stride() + cols - 1] = kInfinity;
      run(p, layout);
    }
  }
}

TEST_P(MatrixUnit, ExtremeX) {
  for (const uint16_t extreme :
       {uint16_t{0x7f7f}, uint16_t{0x0080}, uint16_t{0x0001}, uint16_t{0x80ff}, uint16_t{0x7e80}}) {
    Problem p = make_problem({.grid = {1, 20, 150}, .tokens = 2}, matrix_kind("Gaussian"));
    for (uint64_t c = 0; c < 150; c += 7) p.x[c] = extreme;
    run(p, Layout::kFast);
  }
}

TEST_P(MatrixUnit, NothingToSum) {
  run({.grid = {1, 19, 0}, .tokens = 2, .with_bias = true}, "Gaussian", Layout::kFast);
  run({.grid = {1, 19, 0}, .tokens = 70}, "Gaussian", Layout::kFast);
}

// The outputs that no vector of a whole register holds keep what was there (`check` looks behind each row).
TEST_P(MatrixUnit, WritesNothingBehindARow) {
  for (const uint64_t rows : {1, 7, 15, 31}) {
    run({.grid = {1, rows, 40}, .tokens = 18, .y_margin = 20}, "One", Layout::kRaw);
  }
}

TEST_P(MatrixUnit, RefusesBrokenPatches) {
  const Problem p = make_problem({.grid = {1, 400, 512}, .tokens = 4}, matrix_kind("Gaussian"));
  AlignedBuffer pack = pack_of(p, Layout::kFast);
  const PackHeader header = open_pack(pack.bytes()).value();
  ASSERT_TRUE(header.layout == Layout::kFast && header.slot_bytes > 0);
  uint8_t* const slots = pack.data() + header.array_offset(fast::kPatches);
  for (const uint64_t record : {0, 1, 3, 50}) {
    uint8_t& count = slots[record * header.slot_bytes];
    const uint8_t kept = count;
    count = 0x7f;
    Values y;
    EXPECT_EQ(multiply(p, pack.bytes(), 2, kernels(), y), GLYD_ERROR_CORRUPT) << record;
    count = kept;
    EXPECT_EQ(multiply(p, pack.bytes(), 2, kernels(), y), GLYD_OK);
  }
}

}  // namespace
}  // namespace glyd::test
