// Small products by every kernel, for compute-sanitizer (docs/hacking.md) and, without it, against each other: sums
// over as many splits have the same bits whichever kernel adds them. No cuBLAS, which would take most of a sanitizer's
// time.
#include "product_fixture.hpp"

namespace glyd::test {
namespace {

class SanitizerTest : public GpuTest {};

struct Kernel {
  const char* name;
  cuda::KernelChoice choice;
  uint64_t most_tokens;
};
const Kernel kKernels[] = {{"narrow", cuda::KernelChoice::kNarrow, cuda::kMostNarrowTokens},
                           {"staged", cuda::KernelChoice::kStaged, cuda::kStagedTokens},
                           {"wide", cuda::KernelChoice::kWide, 512},
                           {"generic", cuda::KernelChoice::kGeneric, cuda::kMostGenericTokens}};

struct Shape {
  Grid grid;
  const char* kind;
};
// Strips that end inside, records that end inside, chunks that end inside, one of each, none of a slot.
const Shape kShapes[] = {{{1, 16, 64}, "Gaussian"},     {{1, 8, 8}, "Gaussian"},       {{1, 40, 136}, "HeavyTails"},
                         {{2, 33, 200}, "Gaussian"},    {{1, 200, 512}, "HeavyTails"}, {{1, 144, 1032}, "Gaussian"},
                         {{3, 64, 328}, "OneExponent"}, {{1, 500, 776}, "Gaussian"}};
const uint64_t kTokens[] = {1, 3, 9, 17, 33, 70, 150};

TEST_F(SanitizerTest, KernelsAgree) {
  std::vector<std::unique_ptr<cuda::Context>> contexts;
  for (const Kernel& kernel : kKernels) {
    cuda::ContextOptions options;
    options.kernel = kernel.choice;
    contexts.push_back(take(cuda::Context::create(options)));
  }
  if (contexts[0]->options().kernel == cuda::KernelChoice::kGeneric) GTEST_SKIP() << "the generic kernel alone";
  uint64_t products = 0;
  for (const Shape& shape : kShapes) {
    const Grid& grid = shape.grid;
    const Values weights = make_values(shape.kind, grid, 21);
    for (const uint64_t tokens : kTokens) {
      Random random(tokens);
      Values x(tokens * grid.cols), bias(grid.rows);
      for (uint16_t& v : x) v = to_bf16(gaussian(random));
      for (uint16_t& v : bias) v = to_bf16(gaussian(random));
      const auto device_x = upload(x), device_bias = upload(bias);
      for (const uint32_t splits : {1u, 3u}) {
        Values first;
        for (size_t k = 0; k < contexts.size(); ++k) {
          if (tokens > kKernels[k].most_tokens) continue;
          const auto packed = pack_on_gpu(*contexts[k], weights, grid, false, Layout::kFast);
          const cuda::Route* const route = packed.pack->route_of_splits(tokens, splits);
          if (route == nullptr) continue;
          const uint64_t bytes = cuda::kPartialBytes + (route->sums_outside() ? route->sum_bytes : 0);
          const auto workspace = take(cuda::DeviceBuffer::allocate(bytes));
          take(cudaMemset(workspace.as<void>(), 0xff, bytes));
          // Exactly as long as it must be, so that a store behind it is one outside.
          const auto y = poisoned(tokens * grid.rows * 2);
          cuda::LinearCall call;
          call.matrix = grid.stack - 1;
          call.x = device_x.as<uint16_t>(), call.tokens = tokens, call.x_stride = grid.cols;
          call.bias = tokens % 2 == 0 ? nullptr : device_bias.as<uint16_t>();
          call.y = y.as<uint16_t>(), call.y_stride = grid.rows;
          call.workspace = workspace.as<void>(), call.workspace_bytes = bytes;
          take(cuda::launch_fused(*packed.pack, *route, call));
          const Values got = download(y, tokens * grid.rows);
          if (first.empty()) first = got;
          ASSERT_EQ(differing(got, first), 0u) << kKernels[k].name << " " << grid.rows << "x" << grid.cols << " by "
                                               << tokens << ", " << splits << " splits";
          ++products;
        }
      }
    }
  }
  fmt::print("{} products\n", products);
  EXPECT_GT(products, 150u);
}

}  // namespace
}  // namespace glyd::test
