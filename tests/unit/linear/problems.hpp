// problems.hpp - products to compute, and what their results may be: sums in double precision.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cfloat>
#include <cmath>

#include "base/cpu.hpp"
#include "unit/weights/matrices.hpp"
#include "weights/weights.hpp"

namespace glyd::test {

inline constexpr uint16_t kCanary = 0x1234;
inline constexpr uint16_t kInfinity = 0x7f80, kNan = 0x7fc1;

inline float widen(uint16_t value) { return std::bit_cast<float>(static_cast<uint32_t>(value) << 16); }
inline bool subnormal(uint16_t value) { return bf16_exponent(value) == 0 && bf16_mantissa(value) != 0; }

struct Case {
  Grid grid;
  bool transposed = false;
  uint64_t matrix = 0, tokens = 1;
  uint64_t x_margin = 0, y_margin = 0;  // of the strides
  bool with_bias = false;
};

// A product's inputs; `values` as stored (transposed or not).
struct Problem {
  Case shape;
  Values values, x, bias;

  uint64_t x_stride() const { return shape.grid.cols + shape.x_margin; }
  uint64_t y_stride() const { return shape.grid.rows + shape.y_margin; }
  uint16_t weight(uint64_t row, uint64_t col) const {
    const Grid& g = shape.grid;
    const uint16_t* matrix = values.data() + shape.matrix * g.rows * g.cols;
    return shape.transposed ? matrix[col * g.rows + row] : matrix[row * g.cols + col];
  }
};

inline Problem make_problem(const Case& shape, const MatrixKind& kind) {
  Problem p{shape, {}, {}, {}};
  p.values = make_values(kind, shape.grid.stack * shape.grid.rows * shape.grid.cols, shape.grid.cols);
  Random random(7);
  p.x.resize(shape.tokens * p.x_stride());
  for (uint64_t i = 0; i < p.x.size(); ++i) {
    // Margins hold what must never be read into a sum.
    p.x[i] = i % p.x_stride() < shape.grid.cols ? to_bf16(gaussian(random)) : kNan;
  }
  if (shape.with_bias) {
    for (uint64_t r = 0; r < shape.grid.rows; ++r) p.bias.push_back(to_bf16(gaussian(random)));
  }
  return p;
}

inline AlignedBuffer pack_of(const Problem& p, Layout layout) {
  auto pack = pack_tensor(p.values, p.shape.grid, p.shape.transposed, layout, 1);
  EXPECT_TRUE(pack);
  return std::move(pack).value();
}

// The call that makes p's product in y, which is filled with what must not be there.
inline LinearArgs arguments(const Problem& p, Values& y) {
  y.assign(p.shape.tokens * p.y_stride(), kCanary);
  return {.matrix = p.shape.matrix,
          .x = p.x.data(),
          .tokens = p.shape.tokens,
          .x_stride = p.x_stride(),
          .bias = p.bias.empty() ? nullptr : p.bias.data(),
          .y = y.data(),
          .y_stride = p.y_stride()};
}

// What one output may be.
struct Expected {
  double sum = 0;        // NaN and infinities as IEEE arithmetic gives them
  double magnitude = 0;  // of the finite products
  double flushed = 0;    // of those that AVX-512 and AMX take as zero
};

inline Expected expect(const Problem& p, uint64_t token, uint64_t row) {
  Expected e;
  for (uint64_t c = 0; c < p.shape.grid.cols; ++c) {
    const uint16_t w = p.weight(row, c), x = p.x[token * p.x_stride() + c];
    const double product = double{widen(w)} * double{widen(x)};
    e.sum += product;
    if (std::isfinite(product)) e.magnitude += std::abs(product);
    if (std::isfinite(product) && (subnormal(w) || subnormal(x))) e.flushed += std::abs(product);
  }
  if (!p.bias.empty()) e.sum += double{widen(p.bias[row])};
  return e;
}

// `flushes`: subnormal numbers may have counted as zero.
inline ::testing::AssertionResult matches(const Expected& e, uint16_t got, uint64_t cols, bool flushes) {
  const double y = widen(got);
  if (std::isnan(e.sum))
    return std::isnan(y) ? ::testing::AssertionSuccess() : ::testing::AssertionFailure() << "not NaN but " << y;
  if (e.magnitude > FLT_MAX / 4) return ::testing::AssertionSuccess();  // fp32 may overflow on the way
  if (std::isinf(e.sum))
    return y == e.sum ? ::testing::AssertionSuccess() : ::testing::AssertionFailure() << y << " for " << e.sum;
  // Each of the sums rounds once in fp32, products and sums may be flushed below its normal numbers, and the end rounds
  // to bf16.
  const auto n = static_cast<double>(cols + 32);
  const double flushed = flushes ? e.flushed + n * FLT_MIN : n * std::exp2(-149);
  const double error = e.magnitude * n * std::exp2(-24) + std::abs(e.sum) * std::exp2(-8) + flushed + std::exp2(-134);
  if (std::abs(y - e.sum) <= error) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << y << " for " << e.sum << ", may differ by " << error;
}

inline void check(const Problem& p, const Values& y, bool flushes = cpu_isa() >= Isa::kAvx512) {
  for (uint64_t t = 0; t < p.shape.tokens; ++t) {
    for (uint64_t r = 0; r < p.y_stride(); ++r) {
      const uint16_t got = y[t * p.y_stride() + r];
      if (r < p.shape.grid.rows) {
        ASSERT_TRUE(matches(expect(p, t, r), got, p.shape.grid.cols, flushes)) << "token " << t << ", row " << r;
      } else {
        ASSERT_EQ(got, kCanary) << "written behind row " << r;
      }
    }
  }
}

}  // namespace glyd::test
