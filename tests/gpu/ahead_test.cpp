// Products whose weights are decoded ahead, against cuBLAS on the decoded weights, bit by bit.
#include "product_fixture.hpp"

namespace glyd::test {
namespace {

class AheadTest : public GpuTest {
 protected:
  // Its kernel alone.
  std::unique_ptr<cuda::Context> forced() {
    cuda::ContextOptions options;
    options.kernel = cuda::KernelChoice::kAhead;
    return take(cuda::Context::create(options));
  }
};

bool is_ahead(Product& product, uint64_t tokens) {
  const cuda::Route* const route = product.pack().exact_route(tokens, false);
  return route != nullptr && std::holds_alternative<cuda::AheadPlan>(route->plan);
}

// Rows that end inside a strip, a batch, a tile and a pair of tiles; one wave and many, with a last one of one batch;
// one group of tokens and two.
TEST_F(AheadTest, EveryShapeIsExact) {
  const auto context = forced();
  uint64_t fused = 0, cases = 0;
  for (const Grid& grid : {Grid{1, 8, 128}, Grid{1, 136, 512}, Grid{1, 1000, 1024}, Grid{1, 4104, 2048},
                           Grid{1, 17152, 256}, Grid{1, 64, 512}, Grid{1, 8512, 256}}) {
    Product product(*context, make_values("Gaussian", grid, 1), grid, 4400);
    for (const uint64_t tokens : {2, 33, 255, 256, 257, 700, 1025, 4400}) {
      for (const bool bias : {false, true}) {
        product.prepare({tokens}, bias);
        const Values expected = product.reference(tokens, bias);
        const auto where = fmt::format("{} x {} by {}", grid.rows, grid.cols, tokens);
        EXPECT_EQ(differing(product.fused(tokens, bias), expected), 0u) << where;
        EXPECT_EQ(differing(product.fused(tokens, bias, true, true), expected), 0u) << where << ", early";
        ++cases;
        fused += product.is_fused(tokens, bias);
      }
    }
  }
  fmt::print("{} of {} products decoded ahead\n", fused, cases);
  EXPECT_GT(fused, cases / 2);  // others are summed over several splits, or too small to be checked
}

TEST_F(AheadTest, HeavyTailsAndSpecialInputs) {
  const auto context = forced();
  for (const char* kind : {"Gaussian", "HeavyTails"}) {
    const Grid grid{1, 2048, 2048};
    Product product(*context, make_values(kind, grid, 3), grid, 1024);
    product.prepare({1024}, false);
    EXPECT_TRUE(is_ahead(product, 1024)) << kind;
    product.set_x(special_inputs(1024, grid.cols));
    EXPECT_EQ(differing(product.fused(1024, false), product.reference(1024, false)), 0u) << kind;
  }
}

// What a product leaves in the workspace is what the next one wants, whichever kernel that is.
TEST_F(AheadTest, SharesItsWorkspace) {
  const Grid grid{1, 4096, 4096};
  Product product(context(), make_values("Gaussian", grid, 4), grid, 2048);
  product.prepare({1, 16, 64, 2048}, false);
  EXPECT_TRUE(is_ahead(product, 2048));
  for (int round = 0; round < 3; ++round) {
    for (const uint64_t tokens : {2048, 16, 64, 2048, 1}) {
      EXPECT_EQ(differing(product.fused(tokens, false), product.reference(tokens, false)), 0u) << tokens;
    }
  }
}

// Two at once, more blocks than there are multiprocessors: whichever are there decode for all.
TEST_F(AheadTest, SideBySide) {
  const auto context = forced();
  const Grid grid{1, 4096, 2048};
  Product a(*context, make_values("Gaussian", grid, 5), grid, 1024);
  Product b(*context, make_values("Gaussian", grid, 6), grid, 1024);
  a.prepare({1024}, false);
  ASSERT_TRUE(is_ahead(a, 1024));
  const Values expected[] = {a.reference(1024, false), b.reference(1024, false)};
  cudaStream_t streams[2];
  for (auto& stream : streams) ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  const cuda::DeviceBuffer y[] = {poisoned(expected[0].size() * 2), poisoned(expected[1].size() * 2)};
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 2; ++i) {
      Product& product = i == 0 ? a : b;
      cuda::LinearCall call = product.call(1024, false, y[i].as<uint16_t>());
      call.stream = streams[i];
      take(cuda::linear(product.pack(), call));
    }
  }
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(differing(download(y[i], expected[i].size()), expected[i]), 0u);
  for (auto& stream : streams) cudaStreamDestroy(stream);
}

// y that the copy engine cannot write is decoded for, or written by another kernel.
TEST_F(AheadTest, UnalignedRowsOfY) {
  const auto context = forced();
  const Grid grid{1, 203, 640};
  Product product(*context, make_values("Gaussian", grid, 3), grid, 300);
  product.prepare({300}, true);
  EXPECT_FALSE(product.is_fused(300, true));
  const Values expected = product.reference(300, true);
  EXPECT_EQ(differing(product.fused(300, true), expected), 0u);
  EXPECT_EQ(differing(product.fused(300, true, false), expected), 0u);
}

}  // namespace
}  // namespace glyd::test
