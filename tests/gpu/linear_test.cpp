// Products from packs on the GPU against cuBLAS on the decoded weights, bit by bit.
#include <thread>

#include "product_fixture.hpp"
#include "unpack/unpack.hpp"

namespace glyd::test {
namespace {

class LinearTest : public GpuTest {};

const std::vector<uint64_t> kFewTokens = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
const std::vector<uint64_t> kMoreTokens = {17, 24, 31, 32, 33, 48, 64};

struct Case {
  Grid grid;
  bool model;  // a shape of a public model: to be fused, not decoded
};
// Records that straddle splits, short last records, rows that end inside a strip, fewer units than multiprocessors.
const Case kShapes[] = {
    {{1, 4096, 4096}, true},  {{1, 1024, 4096}, true}, {{1, 512, 3584}, true},   {{1, 2048, 2048}, true},
    {{1, 1040, 2880}, true},  {{1, 4096, 7232}, true}, {{1, 4096, 12288}, true}, {{1, 5120, 5120}, true},
    {{1, 2880, 4096}, true},  {{1, 3072, 8192}, true}, {{1, 6144, 4096}, true},  {{1, 896, 4864}, true},
    {{1, 1152, 896}, true},   {{1, 201, 1024}, false}, {{1, 64, 720}, false},    {{1, 17, 136}, false},
    {{1, 1000, 1032}, false}, {{1, 1, 8}, false},      {{1, 128, 24}, false},    {{1, 520, 1000}, false},
};

// Whatever the route, exact is exact; and the shapes of models are to be fused.
TEST_F(LinearTest, ExactProductsAreCublassBits) {
  uint64_t fused = 0, checked = 0;
  for (const auto& [grid, model] : kShapes) {
    Product product(context(), make_values("Gaussian", grid, 1), grid, 64);
    for (const auto* set : {&kFewTokens, &kMoreTokens}) {
      product.prepare(*set, false);
      std::string decoded;
      for (const uint64_t tokens : *set) {
        const Values expected = product.reference(tokens, false);
        EXPECT_EQ(differing(product.fused(tokens, false), expected), 0u)
            << grid.rows << " x " << grid.cols << " by " << tokens;
        EXPECT_EQ(differing(product.fused(tokens, false, true, true), expected), 0u)
            << grid.rows << " x " << grid.cols << " by " << tokens;
        const bool is_fused = product.is_fused(tokens, false);
        if (!is_fused) decoded += fmt::format(" {}", tokens);
        if (model) fused += is_fused, ++checked;
      }
      if (!decoded.empty()) fmt::print("{} x {} decoded at{}\n", grid.rows, grid.cols, decoded);
    }
  }
  fmt::print("shapes of models: {} of {} fused\n", fused, checked);
  EXPECT_GE(fused * 100, checked * 95);
}

TEST_F(LinearTest, BiasIsAddedBeforeTheRounding) {
  for (const Grid& grid : {Grid{1, 4096, 4096}, Grid{1, 1152, 896}, Grid{1, 1000, 1032}}) {
    Product product(context(), make_values("Gaussian", grid, 2), grid, 64);
    const std::vector<uint64_t> counts = {1, 2, 8, 16, 32, 64};
    product.prepare(counts, true);
    for (const uint64_t tokens : counts) {
      ASSERT_EQ(differing(product.fused(tokens, true), product.reference(tokens, true)), 0u)
          << grid.rows << " by " << tokens;
      if (!product.is_fused(tokens, true))
        std::printf("decoded with bias: %lux%lu by %lu\n", grid.rows, grid.cols, tokens);
    }
  }
}

// Weights of every kind, those that are not fusible among them.
TEST_F(LinearTest, EveryKindOfWeightsIsExact) {
  const Grid grid{1, 256, 1088};
  for (const MatrixKind& kind : matrix_kinds()) {
    Product product(context(), make_values(kind.name, grid, 3), grid, 16);
    product.prepare({1, 8, 16}, false);
    for (const uint64_t tokens : {1, 8, 16}) {
      const Values expected = product.reference(tokens, false), got = product.fused(tokens, false);
      uint64_t count = 0;
      for (size_t i = 0; i < got.size(); ++i) {
        const bool both_nan = (got[i] & 0x7fff) > 0x7f80 && (expected[i] & 0x7fff) > 0x7f80;
        count += !both_nan && got[i] != expected[i];
      }
      EXPECT_EQ(count, 0u) << kind.name << " by " << tokens << ": "
                           << cuda::route_of(product.pack(), tokens, false, true).reason;
    }
  }
}

TEST_F(LinearTest, NonFiniteInputsGiveWhatCublasGives) {
  const Grid grid{1, 512, 1024};
  Product product(context(), make_values("Gaussian", grid, 4), grid, 16);
  product.prepare({1, 8, 16}, false);
  product.set_x(special_inputs(16, grid.cols));
  for (const uint64_t tokens : {1, 8, 16})
    ASSERT_EQ(differing(product.fused(tokens, false), product.reference(tokens, false)), 0u);
}

// Without a check there is no fused exact product; free ones are near.
TEST_F(LinearTest, UnpreparedIsDecodedAndFreeIsClose) {
  const Grid grid{1, 768, 1280};
  Product product(context(), make_values("Gaussian", grid, 6), grid, 64);
  for (const uint64_t tokens : {1, 7, 16, 33, 64}) {
    EXPECT_FALSE(product.is_fused(tokens, false));
    const Values expected = product.reference(tokens, false);
    EXPECT_EQ(differing(product.fused(tokens, false), expected), 0u);
    const Values close = product.fused(tokens, false, false);
    double error = 0, norm = 0;
    for (size_t i = 0; i < close.size(); ++i) {
      const double a = std::bit_cast<float>(static_cast<uint32_t>(close[i]) << 16),
                   b = std::bit_cast<float>(static_cast<uint32_t>(expected[i]) << 16);
      error += (a - b) * (a - b), norm += b * b;
    }
    EXPECT_LT(std::sqrt(error / norm), 3e-3) << tokens;
  }
}

TEST_F(LinearTest, ColumnsThatDoNotDivideByEightAreServed) {
  const Grid grid{1, 100, 333};
  Product product(context(), make_values("Gaussian", grid, 7), grid, 8);
  product.prepare({1, 5}, false);
  for (const uint64_t tokens : {1, 5}) {
    EXPECT_FALSE(product.is_fused(tokens, false));
    EXPECT_EQ(differing(product.fused(tokens, false), product.reference(tokens, false)), 0u);
  }
}

TEST_F(LinearTest, EachMatrixOfAStackIsItsOwn) {
  const Grid grid{3, 208, 640};
  Product product(context(), make_values("HeavyTails", grid, 8), grid, 8);
  product.prepare({1, 8}, false);
  for (uint64_t matrix = 0; matrix < 3; ++matrix) {
    for (const uint64_t tokens : {1, 8}) {
      ASSERT_EQ(differing(product.fused(tokens, false, true, false, matrix), product.reference(tokens, false, matrix)),
                0u)
          << matrix;
    }
  }
}

// A graph replayed many times, and streams at once with a workspace each: the sums over splits must clean up behind
// themselves.
TEST_F(LinearTest, GraphsAndStreamsAgree) {
  const Grid grid{1, 1024, 4096};
  Product product(context(), make_values("Gaussian", grid, 9), grid, 8);
  product.prepare({8}, false);
  ASSERT_TRUE(product.is_fused(8, false));
  const Values expected = product.reference(8, false);
  const auto run = [&](int rounds) {
    cudaStream_t stream = nullptr;
    take(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    const auto y = poisoned(8 * grid.rows * 2);
    const auto workspace = take(cuda::DeviceBuffer::allocate(cuda::kPartialBytes));
    take(cuda::initialise_workspace(workspace.as<void>(), cuda::kPartialBytes, stream));
    cuda::LinearCall call = product.call(8, false, y.as<uint16_t>());
    call.workspace = workspace.as<void>(), call.workspace_bytes = cuda::kPartialBytes, call.stream = stream;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    take(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < 20; ++i) {
      call.early = i % 2 != 0;
      take(cuda::linear(product.pack(), call));
    }
    take(cudaStreamEndCapture(stream, &graph));
    take(cudaGraphInstantiate(&executable, graph, 0));
    for (int r = 0; r < rounds; ++r) take(cudaGraphLaunch(executable, stream));
    take(cudaStreamSynchronize(stream));
    EXPECT_EQ(differing(download(y, 8 * grid.rows), expected), 0u);
    cudaGraphExecDestroy(executable);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(stream);
  };
  run(50);
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i) threads.emplace_back(run, 100);
  for (auto& thread : threads) thread.join();
}

TEST_F(LinearTest, BadCallsAreRefused) {
  const Grid grid{1, 64, 128};
  Product product(context(), make_values("Gaussian", grid, 10), grid, 8);
  const auto y = poisoned(8 * grid.rows * 2);
  cuda::LinearCall call = product.call(8, false, y.as<uint16_t>());
  call.x_stride = 120;
  EXPECT_EQ(cuda::linear(product.pack(), call).error().status, GLYD_ERROR_INVALID_ARGUMENT);
  call = product.call(8, false, y.as<uint16_t>());
  call.matrix = 1;
  EXPECT_EQ(cuda::linear(product.pack(), call).error().status, GLYD_ERROR_INVALID_ARGUMENT);
  call = product.call(8, false, y.as<uint16_t>());
  call.workspace_bytes = 0;
  EXPECT_EQ(cuda::linear(product.pack(), call).error().status, GLYD_ERROR_BUFFER_TOO_SMALL);
  call = product.call(0, false, nullptr);
  EXPECT_TRUE(cuda::linear(product.pack(), call));
}

}  // namespace
}  // namespace glyd::test
