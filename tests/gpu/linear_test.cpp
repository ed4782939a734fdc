// Products from packs on the GPU against cuBLAS on the decoded weights, bit by bit.
#include <thread>

#include "dispatch/product.hpp"
#include "gpu_support.hpp"
#include "unpack/unpack.hpp"

namespace glyd::test {
namespace {

// One matrix, its pack, an input and what cuBLAS makes of them.
class Product {
 public:
  Product(cuda::Context& context, const Values& weights, const Grid& grid, uint64_t most_tokens)
      : context_(context),
        grid_(grid),
        most_tokens_(most_tokens),
        packed_(pack_on_gpu(context, weights, grid, false, Layout::kFast)),
        dense_(upload(weights)) {
    workspace_bytes_ = cuda::linear_workspace_bytes(*packed_.pack);
    workspace_ = take(cuda::DeviceBuffer::allocate(workspace_bytes_));
    take(cuda::initialise_workspace(workspace_.as<void>(), workspace_bytes_, nullptr));
    cublas_workspace_ = take(cuda::DeviceBuffer::allocate(context.cublas_options().workspace_bytes));
    Random random(99);
    Values x(most_tokens * grid.cols);
    for (uint64_t i = 0; i < x.size(); ++i) x[i] = to_bf16(gaussian(random) * (i % grid.cols % 97 == 5 ? 60 : 1));
    set_x(x);
    Values bias(grid.rows);
    for (auto& v : bias) v = to_bf16(gaussian(random));
    bias_ = upload(bias);
  }

  void set_x(const Values& x) { x_ = upload(x); }
  cuda::DevicePack& pack() { return *packed_.pack; }

  Values reference(uint64_t tokens, bool bias, uint64_t matrix = 0) {
    const auto y = poisoned(tokens * grid_.rows * 2);
    cuda::DenseProduct product{dense_.as<uint16_t>() + matrix * grid_.rows * grid_.cols,
                               x_.as<void>(),
                               bias ? bias_.as<void>() : nullptr,
                               y.as<void>(),
                               static_cast<int>(grid_.rows),
                               static_cast<int>(grid_.cols),
                               static_cast<int>(tokens),
                               static_cast<int64_t>(grid_.cols),
                               static_cast<int64_t>(grid_.rows)};
    take(take(context_.cublas())->multiply(product, cublas_workspace_.as<void>(), nullptr));
    return download(y, tokens * grid_.rows);
  }

  cuda::LinearCall call(uint64_t tokens, bool bias, uint16_t* y) {
    cuda::LinearCall call;
    call.x = x_.as<uint16_t>(), call.tokens = tokens, call.x_stride = grid_.cols;
    call.bias = bias ? bias_.as<uint16_t>() : nullptr;
    call.y = y, call.y_stride = grid_.rows;
    call.workspace = workspace_.as<void>(), call.workspace_bytes = workspace_bytes_;
    return call;
  }

  Values fused(uint64_t tokens, bool bias, bool exact = true, bool early = false, uint64_t matrix = 0) {
    const auto y = poisoned(tokens * grid_.rows * 2);
    cuda::LinearCall c = call(tokens, bias, y.as<uint16_t>());
    c.exact = exact, c.early = early, c.matrix = matrix;
    take(cuda::linear(pack(), c));
    return download(y, tokens * grid_.rows);
  }

  void prepare(std::vector<uint64_t> tokens, bool bias) { take(cuda::prepare(pack(), tokens, bias)); }
  bool is_fused(uint64_t tokens, bool bias) {
    return cuda::route_of(pack(), tokens, bias, true).kind == cuda::RouteKind::kFused;
  }
  const Grid& grid() const { return grid_; }

 private:
  cuda::Context& context_;
  Grid grid_;
  uint64_t most_tokens_;
  UploadedPack packed_;
  cuda::DeviceBuffer dense_, x_, bias_, workspace_, cublas_workspace_;
  uint64_t workspace_bytes_ = 0;
};

uint64_t differing(const Values& a, const Values& b) {
  uint64_t count = a.size() != b.size();
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) count += a[i] != b[i];
  return count;
}

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
  Random random(5);
  Values x(16 * grid.cols);
  for (uint64_t i = 0; i < x.size(); ++i)
    x[i] = i / grid.cols % 3 == 0 && i % grid.cols == 77 ? 0x7f80 : to_bf16(gaussian(random));
  x[5 * grid.cols + 3] = 0x7fc1;
  for (uint64_t i = 0; i < grid.cols; ++i) x[8 * grid.cols + i] = 0;
  product.set_x(x);
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
