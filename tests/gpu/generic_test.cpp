// The generic product, forced where it is not the GPU's own, against cuBLAS on the decoded weights, bit by bit.
#include <cstdlib>

#include "product_fixture.hpp"

namespace glyd::test {
namespace {

class GenericTest : public GpuTest {
 protected:
  static cuda::Context& generic() {
    static const std::unique_ptr<cuda::Context> context = [] {
      cuda::ContextOptions options;
      options.kernel = cuda::KernelChoice::kGeneric;
      return take(cuda::Context::create(options));
    }();
    return *context;
  }
};

// Rows that end inside a strip, records that straddle splits, short last records, one strip, several strips a block.
const Grid kGrids[] = {{1, 1040, 2880}, {1, 2048, 7232},  {1, 1000, 1032}, {1, 520, 1000},
                       {1, 64, 720},    {1, 24576, 1024}, {1, 4096, 4096}, {1, 2560, 9728}};
const uint64_t kTokens[] = {1, 2, 5, 8, 9, 16, 17, 33, 64};

TEST_F(GenericTest, IsExact) {
  uint64_t fused = 0, cases = 0;
  for (const Grid& grid : kGrids) {
    Product product(generic(), make_values("Gaussian", grid, 1), grid, 64);
    for (const uint64_t tokens : kTokens) {
      for (const bool bias : {false, true}) {
        product.prepare({tokens}, bias);
        const Values expected = product.reference(tokens, bias);
        EXPECT_EQ(differing(product.fused(tokens, bias), expected), 0u)
            << grid.rows << "x" << grid.cols << " by " << tokens << (bias ? ", bias" : "");
        ++cases;
        if (product.is_fused(tokens, bias)) {
          ++fused;
        } else {
          fmt::print("decoded: {}x{} by {}{}\n", grid.rows, grid.cols, tokens, bias ? ", bias" : "");
        }
      }
    }
  }
  fmt::print("{} of {} generic products fused\n", fused, cases);
  EXPECT_GT(fused, cases * 9 / 10);
}

// The same sums as the GPU's own kernels for any number of splits, whatever cuBLAS does; all matrices of a stack.
TEST_F(GenericTest, AddsAsTheOthersDo) {
  const Grid grid{3, 200, 3000};
  for (const char* kind : {"Gaussian", "HeavyTails", "OneExponent"}) {
    const Values weights = make_values(kind, grid, 7);
    Product own(context(), weights, grid, 64), other(generic(), weights, grid, 64);
    for (const uint32_t splits : {1u, 2u, 3u, 4u, 5u, 7u, 11u}) {
      for (const uint64_t tokens : {1, 8, 13, 40}) {
        for (uint64_t matrix = 0; matrix < grid.stack; ++matrix) {
          Values y[2];
          for (Product* product : {&own, &other}) {
            const cuda::Route* const route = product->pack().route_of_splits(tokens, splits);
            ASSERT_NE(route, nullptr) << kind << ", " << splits << " splits, " << tokens << " tokens";
            const auto out = poisoned(tokens * grid.rows * 2);
            cuda::LinearCall call = product->call(tokens, true, out.as<uint16_t>());
            call.matrix = matrix;
            take(cuda::launch_fused(product->pack(), *route, call));
            y[product == &other] = download(out, tokens * grid.rows);
          }
          ASSERT_EQ(differing(y[0], y[1]), 0u) << kind << ", " << splits << " splits, " << tokens << " tokens";
        }
      }
    }
  }
}

TEST_F(GenericTest, SpecialInputs) {
  for (const char* kind : {"Gaussian", "HeavyTails"}) {
    const Grid grid{1, 1024, 2048};
    Product product(generic(), make_values(kind, grid, 3), grid, 24);
    product.prepare({24}, false);
    EXPECT_TRUE(product.is_fused(24, false)) << kind;
    Random random(5);
    Values x(24 * grid.cols);
    for (uint64_t i = 0; i < x.size(); ++i)
      x[i] = i / grid.cols % 3 == 0 && i % grid.cols == 77 ? 0x7f80 : to_bf16(gaussian(random));
    for (uint64_t i = 0; i < grid.cols; ++i) x[8 * grid.cols + i] = i % 2 == 0 ? 0 : 0x8000;
    product.set_x(x);
    EXPECT_EQ(differing(product.fused(24, false), product.reference(24, false)), 0u) << kind;
  }
}

TEST_F(GenericTest, MoreTokensAreDecoded) {
  const Grid grid{1, 512, 512};
  Product product(generic(), make_values("Gaussian", grid, 3), grid, 100);
  product.prepare({65, 100}, false);
  for (const uint64_t tokens : {65, 100}) {
    EXPECT_FALSE(product.is_fused(tokens, false));
    EXPECT_EQ(differing(product.fused(tokens, false), product.reference(tokens, false)), 0u);
  }
}

TEST_F(GenericTest, TheEnvironmentForcesIt) {
  ASSERT_EQ(setenv("GLYD_CUDA_KERNEL", "generic", 1), 0);
  const auto forced = take(cuda::Context::create({}));
  ASSERT_EQ(unsetenv("GLYD_CUDA_KERNEL"), 0);
  EXPECT_EQ(forced->options().kernel, cuda::KernelChoice::kGeneric);
  EXPECT_EQ(take(cuda::Context::create({}))->options().kernel == cuda::KernelChoice::kGeneric,
            forced->device().compute_major != 9 || forced->device().compute_minor != 0);
}

}  // namespace
}  // namespace glyd::test
