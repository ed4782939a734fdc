// Products of random small shapes, layouts, strides and orders against sums in double on the host, and special values
// against cuBLAS on the decoded weights.
#include <thread>

#include "gpu_support.hpp"

namespace glyd::test {
namespace {

float to_float(uint16_t value) { return std::bit_cast<float>(static_cast<uint32_t>(value) << 16); }
bool is_nan(uint16_t value) { return (value & 0x7fff) > 0x7f80; }

// A product with everything in host and device memory.
struct RandomProduct {
  Grid grid;
  Layout layout = Layout::kFast;
  bool transposed = false, exact = true, early = false, prepared = false;
  uint64_t tokens = 1, matrix = 0, x_stride = 0, y_stride = 0;
  Values weights, x, bias;  // no bias if empty

  // Weight (row, col) of the matrix that is multiplied.
  float weight(uint64_t row, uint64_t col) const {
    const uint64_t first = matrix * grid.rows * grid.cols;
    return to_float(weights[first + (transposed ? col * grid.rows + row : row * grid.cols + col)]);
  }
};

Values run(cuda::Context& context, const RandomProduct& p) {
  const auto packed = pack_on_gpu(context, p.weights, p.grid, p.transposed, p.layout);
  const auto x = upload(p.x), y = poisoned(p.tokens * p.y_stride * 2);
  const auto bias = upload(p.bias.empty() ? Values(1) : p.bias);
  const uint64_t workspace_bytes = cuda::linear_workspace_bytes(*packed.pack);
  const auto workspace = take(cuda::DeviceBuffer::allocate(workspace_bytes));
  take(cuda::initialise_workspace(workspace.as<void>(), workspace_bytes, nullptr));
  if (p.prepared) take(cuda::prepare(*packed.pack, std::span(&p.tokens, 1), !p.bias.empty()));
  cuda::LinearCall call;
  call.matrix = p.matrix;
  call.x = x.as<uint16_t>(), call.tokens = p.tokens, call.x_stride = p.x_stride;
  call.bias = p.bias.empty() ? nullptr : bias.as<uint16_t>();
  call.y = y.as<uint16_t>(), call.y_stride = p.y_stride;
  call.exact = p.exact, call.early = p.early;
  call.workspace = workspace.as<void>(), call.workspace_bytes = workspace_bytes;
  take(cuda::linear(*packed.pack, call));
  return download(y, p.tokens * p.y_stride);
}

RandomProduct make_product(Random& random) {
  RandomProduct p;
  const uint64_t step = random() % 3 == 0 ? 1 : 8;  // two in three can run fused
  p.grid = {1 + random() % 3, 1 + random() % 300, step * (1 + random() % (600 / step))};
  if (random() % 2 == 0) p.grid.rows = round_up(p.grid.rows, uint64_t{8});
  const Layout layouts[] = {Layout::kFast, Layout::kFast, Layout::kSmall, Layout::kRaw};
  p.layout = layouts[random() % 4];
  p.transposed = random() % 4 == 0;
  p.exact = random() % 2 == 0, p.prepared = random() % 2 == 0, p.early = random() % 2 == 0;
  p.tokens = random() % 4 == 0 ? 1 + random() % 300 : 1 + random() % 64;
  p.matrix = random() % p.grid.stack;
  p.x_stride = p.grid.cols + (random() % 2 == 0 ? 0 : 8 * (random() % 4));
  p.y_stride = p.grid.rows + (random() % 2 == 0 ? 0 : random() % 20);
  const char* const kinds[] = {"Gaussian", "Gaussian", "HeavyTails", "PrunedHalf", "TwentyExponents"};
  p.weights = make_values(kinds[random() % 5], p.grid, random());
  p.x.resize(p.tokens * p.x_stride);
  for (uint64_t i = 0; i < p.x.size(); ++i) p.x[i] = to_bf16(gaussian(random));
  if (random() % 3 == 0) {
    p.bias.resize(p.grid.rows);
    for (uint16_t& v : p.bias) v = to_bf16(gaussian(random));
  }
  return p;
}

// Sums of a random order, with partial sums rounded to bf16 as cuBLAS may, stay within this of the exact sum; any
// wrong weight or place does not.
void expect_close(const RandomProduct& p, const Values& y) {
  std::vector<float> weights(p.grid.rows * p.grid.cols);
  for (uint64_t r = 0; r < p.grid.rows; ++r)
    for (uint64_t c = 0; c < p.grid.cols; ++c) weights[r * p.grid.cols + c] = p.weight(r, c);
  for (uint64_t t = 0; t < p.tokens; ++t) {
    for (uint64_t r = 0; r < p.grid.rows; ++r) {
      double sum = p.bias.empty() ? 0 : static_cast<double>(to_float(p.bias[r])), squares = sum * sum;
      for (uint64_t c = 0; c < p.grid.cols; ++c) {
        const double term = static_cast<double>(weights[r * p.grid.cols + c]) * to_float(p.x[t * p.x_stride + c]);
        sum += term, squares += term * term;
      }
      const double got = to_float(y[t * p.y_stride + r]);
      ASSERT_LE(std::abs(got - sum), 0.01 * std::abs(sum) + 0.02 * std::sqrt(squares) + 1e-37)
          << "token " << t << " row " << r;
    }
    for (uint64_t r = p.grid.rows; r < p.y_stride; ++r) ASSERT_EQ(y[t * p.y_stride + r], 0xffff) << "written outside";
  }
}

class RandomProductsTest : public GpuTest, public testing::WithParamInterface<uint64_t> {};

TEST_P(RandomProductsTest, AreClose) {
  Random random(1000 + GetParam());
  for (int i = 0; i < 125; ++i) {
    const RandomProduct p = make_product(random);
    SCOPED_TRACE(
        fmt::format("{}: {}x{}x{} by {}, layout {}, transposed {}, matrix {}, strides {} {}, bias {}, exact {}"
                    ", prepared {}, early {}",
                    i, p.grid.stack, p.grid.rows, p.grid.cols, p.tokens, static_cast<int>(p.layout), p.transposed,
                    p.matrix, p.x_stride, p.y_stride, !p.bias.empty(), p.exact, p.prepared, p.early));
    expect_close(p, run(context(), p));
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(AThousand, RandomProductsTest, testing::Range(uint64_t{0}, uint64_t{8}));

class SpecialValuesTest : public GpuTest {
 protected:
  // cuBLAS on the weights themselves; p is not transposed.
  static Values reference(const RandomProduct& p) {
    const auto weights = upload(p.weights), x = upload(p.x), y = poisoned(p.tokens * p.y_stride * 2);
    const auto workspace = take(cuda::DeviceBuffer::allocate(context().cublas_options().workspace_bytes));
    const cuda::DenseProduct dense{weights.as<uint16_t>() + p.matrix * p.grid.rows * p.grid.cols,
                                   x.as<void>(),
                                   nullptr,
                                   y.as<void>(),
                                   static_cast<int>(p.grid.rows),
                                   static_cast<int>(p.grid.cols),
                                   static_cast<int>(p.tokens),
                                   static_cast<int64_t>(p.x_stride),
                                   static_cast<int64_t>(p.y_stride)};
    take(take(context().cublas())->multiply(dense, workspace.as<void>(), nullptr));
    return download(y, p.tokens * p.y_stride);
  }
  static uint64_t differing(const Values& a, const Values& b) {
    uint64_t count = 0;
    for (size_t i = 0; i < a.size(); ++i) count += a[i] != b[i] && !(is_nan(a[i]) && is_nan(b[i]));
    return count;
  }
  static RandomProduct product(uint64_t tokens, Layout layout) {
    RandomProduct p;
    p.grid = {1, 256, 1024};
    p.layout = layout, p.tokens = tokens, p.prepared = true;
    p.x_stride = p.grid.cols, p.y_stride = p.grid.rows;
    p.weights = make_values("Gaussian", p.grid, 17);
    Random random(18);
    p.x.resize(p.tokens * p.x_stride);
    for (uint16_t& v : p.x) v = to_bf16(gaussian(random));
    return p;
  }
  static constexpr uint64_t kTokens[] = {1, 5, 8, 16, 32, 64, 96, 200};
};

// Infinities and NaN in weights and inputs, where they meet zeros too, all zeros of either sign, and values near the
// range within which sums in shifted form are exact (2^104; docs/gpu.md).
TEST_F(SpecialValuesTest, AreWhatCublasMakesOfThem) {
  const uint16_t specials[] = {0x7f80, 0xff80, 0x7fc0, 0xffff, 0x0000, 0x8000, 0x7200, 0xf200};
  for (const Layout layout : {Layout::kFast, Layout::kRaw}) {
    for (const uint64_t tokens : kTokens) {
      for (const bool in_weights : {false, true}) {
        RandomProduct p = product(tokens, layout);
        Values& values = in_weights ? p.weights : p.x;
        Random random(19);
        // In some rows only, so that finite results stand beside the others.
        for (uint64_t row = 0; row < values.size() / p.grid.cols; row += 3) {
          for (int i = 0; i < 2; ++i) values[row * p.grid.cols + random() % p.grid.cols] = specials[random() % 8];
        }
        for (uint64_t c = 0; c < p.grid.cols; c += 2) p.x[c] = c % 4 == 0 ? 0 : 0x8000;
        EXPECT_EQ(differing(run(context(), p), reference(p)), 0u)
            << tokens << " tokens, layout " << static_cast<int>(layout) << (in_weights ? ", weights" : ", inputs");
      }
    }
  }
}

// Past that range a sum in shifted form may overflow where the true one is still finite, or the other way round: then
// an output is an infinity or a NaN instead of a number near the end of bf16's range, never another number.
TEST_F(SpecialValuesTest, PastTheExactRangeSumsOverflow) {
  for (const uint64_t tokens : kTokens) {
    RandomProduct p = product(tokens, Layout::kFast);
    p.x[100] = 0x7f7f, p.x[500] = 0xff7f;  // of the first token
    const Values y = run(context(), p), expected = reference(p);
    for (uint64_t i = 0; i < y.size(); ++i) {
      const bool finite = (y[i] & 0x7f80) != 0x7f80 && (expected[i] & 0x7f80) != 0x7f80;
      ASSERT_TRUE(y[i] == expected[i] || (i < p.grid.rows && !finite)) << tokens << " tokens, output " << i;
    }
  }
}

TEST_F(SpecialValuesTest, ZerosKeepTheirSigns) {
  for (const uint64_t tokens : kTokens) {
    for (const uint16_t zero : {uint16_t{0}, uint16_t{0x8000}}) {
      RandomProduct p = product(tokens, Layout::kFast);
      std::fill(p.weights.begin(), p.weights.begin() + static_cast<long>(p.weights.size() / 2), zero);
      for (uint64_t i = 0; i < p.x.size(); i += 7) p.x[i] = zero;
      EXPECT_EQ(differing(run(context(), p), reference(p)), 0u) << tokens;
      std::fill(p.x.begin(), p.x.end(), zero);
      EXPECT_EQ(differing(run(context(), p), reference(p)), 0u) << tokens << ", x is zero";
    }
  }
}

// `raw` is multiplied where it lies, or decoded where it cannot be; both as cuBLAS does.
TEST_F(SpecialValuesTest, RawPacksAreMultipliedWhereTheyLie) {
  for (const Grid& grid : {Grid{1, 512, 1024}, Grid{3, 40, 72}, Grid{2, 33, 100}}) {
    for (const uint64_t tokens : kTokens) {
      for (uint64_t matrix = 0; matrix < grid.stack; ++matrix) {
        RandomProduct p = product(tokens, Layout::kRaw);
        p.grid = grid, p.matrix = matrix;
        p.x_stride = grid.cols, p.y_stride = grid.rows;
        p.weights = make_values("Gaussian", grid, 20);
        p.x.resize(p.tokens * p.x_stride);
        ASSERT_EQ(differing(run(context(), p), reference(p)), 0u)
            << grid.rows << "x" << grid.cols << " matrix " << matrix << " by " << tokens;
      }
    }
  }
}

}  // namespace
}  // namespace glyd::test
