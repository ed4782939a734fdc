// Products of experts: each as linear() alone, whatever the numbers of tokens on the device say.
#include "dispatch/experts.hpp"

#include <numeric>

#include "product_fixture.hpp"

namespace glyd::test {
namespace {

// A stack in one pack, with tokens for its experts.
class Experts {
 public:
  Experts(cuda::Context& context, const Grid& grid, const char* kind, uint64_t tokens, Layout layout = Layout::kFast)
      : grid_(grid), tokens_(tokens), packed_(pack_on_gpu(context, make_values(kind, grid, 11), grid, false, layout)) {
    Random random(12);
    Values x(tokens * grid.cols), bias(grid.stack * grid.rows);
    for (uint16_t& v : x) v = to_bf16(gaussian(random));
    for (uint16_t& v : bias) v = to_bf16(gaussian(random));
    x_ = upload(x), bias_ = upload(bias);
    workspace_bytes_ = cuda::linear_workspace_bytes(*packed_.pack);
    workspace_ = take(cuda::DeviceBuffer::allocate(workspace_bytes_));
    take(cuda::initialise_workspace(workspace_.as<void>(), workspace_bytes_, nullptr));
    ends_ = take(cuda::DeviceBuffer::allocate(grid.stack * 4));
  }

  cuda::DevicePack& pack() { return *packed_.pack; }
  void prepare(uint64_t most, bool bias) {
    std::vector<uint64_t> tokens(most);
    std::iota(tokens.begin(), tokens.end(), 1);
    take(cuda::prepare(pack(), tokens, bias));
  }
  void set_ends(const std::vector<int32_t>& ends) {
    take(cudaMemcpy(ends_.as<void>(), ends.data(), ends.size() * 4, cudaMemcpyHostToDevice));
  }

  cuda::ExpertsCall call(uint16_t* y, bool bias, bool exact, uint64_t most) const {
    cuda::ExpertsCall call;
    call.x = x_.as<uint16_t>(), call.tokens = tokens_, call.x_stride = grid_.cols;
    call.ends = ends_.as<int32_t>(), call.most_tokens = most;
    call.bias = bias ? bias_.as<uint16_t>() : nullptr;
    call.y = y, call.y_stride = grid_.rows;
    call.exact = exact;
    return call;
  }
  Values run(bool bias, bool exact, uint64_t most) {
    const auto y = poisoned(tokens_ * grid_.rows * 2);
    take(cuda::linear_experts(pack(), call(y.as<uint16_t>(), bias, exact, most)));
    return download(y, tokens_ * grid_.rows);
  }

  // linear() an expert; where the order is free, by the context's own kernel in one split.
  Values loop(const std::vector<int32_t>& ends, bool bias, bool exact) {
    const auto y = poisoned(tokens_ * grid_.rows * 2);
    uint64_t first = 0;
    for (uint64_t e = 0; e < grid_.stack; ++e) {
      const auto end = static_cast<uint64_t>(ends[e]);
      cuda::LinearCall one;
      one.matrix = e;
      one.x = x_.as<uint16_t>() + first * grid_.cols, one.tokens = end - first, one.x_stride = grid_.cols;
      one.bias = bias ? bias_.as<uint16_t>() + e * grid_.rows : nullptr;
      one.y = y.as<uint16_t>() + first * grid_.rows, one.y_stride = grid_.rows;
      one.workspace = workspace_.as<void>(), one.workspace_bytes = workspace_bytes_;
      if (exact) {
        take(cuda::linear(pack(), one));
      } else if (one.tokens > 0) {
        take(cuda::launch_fused(pack(), *pack().route_of_splits(one.tokens, 1), one));
      }
      first = end;
    }
    return download(y, tokens_ * grid_.rows);
  }

 private:
  Grid grid_;
  uint64_t tokens_;
  UploadedPack packed_;
  cuda::DeviceBuffer x_, bias_, ends_, workspace_;
  uint64_t workspace_bytes_ = 0;
};

class ExpertsTest : public GpuTest {};

// Counts of tokens, some zero, to ends.
std::vector<int32_t> ends_of(const std::vector<int32_t>& counts) {
  std::vector<int32_t> ends(counts.size());
  std::partial_sum(counts.begin(), counts.end(), ends.begin());
  return ends;
}

// Shapes and numbers of tokens that cuBLAS adds up in a known order (shapes_test).
TEST_F(ExpertsTest, ExactAsALoopOfLinear) {
  for (const Grid& grid : {Grid{4, 2048, 2048}, Grid{4, 1024, 4096}, Grid{4, 2304, 1024}}) {
    for (const char* kind : {"Gaussian", "HeavyTails"}) {
      Experts experts(context(), grid, kind, 40);
      for (const bool bias : {false, true}) {
        experts.prepare(17, bias);
        for (const auto& counts : {std::vector<int32_t>{3, 0, 17, 1}, {17, 17, 0, 6}, {0, 0, 0, 1}}) {
          const auto ends = ends_of(counts);
          experts.set_ends(ends);
          ASSERT_EQ(differing(experts.run(bias, true, 17), experts.loop(ends, bias, true)), 0u)
              << kind << " " << grid.rows << "x" << grid.cols << (bias ? ", bias" : "");
        }
      }
    }
  }
}

// More experts than a warp looks at in one go; more tokens of one than the kernel holds; rows of no expert.
TEST_F(ExpertsTest, ManyExperts) {
  const Grid grid{70, 48, 200};
  Experts experts(context(), grid, "Gaussian", 300);
  Random random(3);
  for (int round = 0; round < 6; ++round) {
    std::vector<int32_t> counts(grid.stack);
    for (int i = 0; i < 250; ++i) ++counts[random() % (round == 0 ? 2 : grid.stack)];
    if (round == 1) std::fill(counts.begin(), counts.end() - 1, 0);
    const auto ends = ends_of(counts);
    experts.set_ends(ends);
    const Values y = experts.run(true, false, 0);
    ASSERT_EQ(differing(y, experts.loop(ends, true, false)), 0u) << round;
    ASSERT_EQ(y.back(), 0xffff) << "a row of no expert was written";
  }
}

// What `ends` holds is not trusted: whatever it says, nothing outside y is written or outside x is read.
TEST_F(ExpertsTest, HostileEnds) {
  const Grid grid{5, 32, 72};
  const uint64_t tokens = 30, size = tokens * grid.rows;
  Experts experts(context(), grid, "HeavyTails", tokens);
  for (const auto& ends : {std::vector<int32_t>{-5, 1 << 30, 7, 100, 30},
                           {INT32_MIN, INT32_MAX, INT32_MIN, INT32_MAX, 0},
                           {30, 20, 10, 5, -1},
                           {0, 0, 0, 0, 0}}) {
    experts.set_ends(ends);
    const auto y = poisoned(3 * size * 2);
    take(cuda::linear_experts(experts.pack(), experts.call(y.as<uint16_t>() + size, false, false, 0)));
    const Values all = download(y, 3 * size);
    const auto whole = [](auto begin, auto end) { return std::all_of(begin, end, [](auto v) { return v == 0xffff; }); };
    EXPECT_TRUE(whole(all.begin(), all.begin() + static_cast<long>(size)));
    EXPECT_TRUE(whole(all.begin() + 2 * static_cast<long>(size), all.end()));
  }
}

// A graph holds the call, not the numbers of tokens.
TEST_F(ExpertsTest, AGraphReadsTheEndsOfTheDay) {
  const Grid grid{4, 64, 128};
  const uint64_t tokens = 20;
  Experts experts(context(), grid, "Gaussian", tokens);
  const auto y = poisoned(tokens * grid.rows * 2);
  cudaStream_t stream = nullptr;
  take(cudaStreamCreate(&stream));
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t instance = nullptr;
  take(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  cuda::ExpertsCall call = experts.call(y.as<uint16_t>(), true, false, 0);
  call.stream = stream;
  take(cuda::linear_experts(experts.pack(), call));
  take(cudaStreamEndCapture(stream, &graph));
  take(cudaGraphInstantiate(&instance, graph, 0));
  for (const auto& counts : {std::vector<int32_t>{5, 5, 5, 5}, {0, 20, 0, 0}, {1, 2, 0, 17}}) {
    const auto ends = ends_of(counts);
    experts.set_ends(ends);
    take(cudaGraphLaunch(instance, stream));
    take(cudaStreamSynchronize(stream));
    EXPECT_EQ(differing(download(y, tokens * grid.rows), experts.loop(ends, true, false)), 0u);
  }
  take(cudaGraphExecDestroy(instance));
  take(cudaGraphDestroy(graph));
  take(cudaStreamDestroy(stream));
}

TEST_F(ExpertsTest, SaysWhatItCannotDo) {
  const Grid grid{3, 64, 128};
  Experts experts(context(), grid, "Gaussian", 100), small(context(), grid, "Gaussian", 100, Layout::kSmall);
  experts.set_ends({30, 60, 100});
  small.set_ends({30, 60, 100});
  const auto y = poisoned(100 * grid.rows * 2);
  const auto status_of = [&](Experts& of, auto change) {
    cuda::ExpertsCall call = of.call(y.as<uint16_t>(), false, false, 0);
    change(call);
    const auto result = cuda::linear_experts(of.pack(), call);
    return result ? GLYD_OK : result.error().status;
  };
  EXPECT_EQ(status_of(experts, [](auto&) {}), GLYD_OK);
  EXPECT_EQ(status_of(small, [](auto&) {}), GLYD_ERROR_UNSUPPORTED);
  EXPECT_EQ(status_of(experts, [](auto& c) { c.exact = true, c.most_tokens = 4; }), GLYD_ERROR_UNSUPPORTED);
  EXPECT_EQ(status_of(experts, [](auto& c) { c.exact = true; }), GLYD_ERROR_UNSUPPORTED);  // 100 tokens of one
  EXPECT_EQ(status_of(experts, [](auto& c) { ++c.x; }), GLYD_ERROR_UNSUPPORTED);
  EXPECT_EQ(status_of(experts, [](auto& c) { c.x_stride = 100; }), GLYD_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(status_of(experts, [](auto& c) { c.ends = nullptr; }), GLYD_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(status_of(experts, [](auto& c) { c.tokens = 0, c.x = nullptr; }), GLYD_OK);
}

}  // namespace
}  // namespace glyd::test
