// Small products by every kernel, for compute-sanitizer (docs/hacking.md) and, without it, against each other: sums
// over as many splits have the same bits whichever kernel adds them. No cuBLAS, which would take most of a sanitizer's
// time.
#include "product_fixture.hpp"

namespace glyd::test {
namespace {

struct Kernel {
  const char* name;
  cuda::KernelChoice choice;
};
const Kernel kKernels[] = {{"Narrow", cuda::KernelChoice::kNarrow},
                           {"Staged", cuda::KernelChoice::kStaged},
                           {"Wide", cuda::KernelChoice::kWide},
                           {"Ahead", cuda::KernelChoice::kAhead}};

class SanitizerTest : public GpuTest, public testing::WithParamInterface<Kernel> {};

struct Shape {
  Grid grid;
  const char* kind;
};
// Strips that end inside, records that end inside, chunks that end inside, one of each, none of a slot.
const Shape kShapes[] = {{{1, 16, 64}, "Gaussian"},     {{1, 8, 8}, "Gaussian"},       {{1, 40, 136}, "HeavyTails"},
                         {{2, 33, 200}, "Gaussian"},    {{1, 200, 512}, "HeavyTails"}, {{1, 144, 1032}, "Gaussian"},
                         {{3, 64, 328}, "OneExponent"}, {{1, 500, 776}, "Gaussian"},   {{2, 400, 384}, "HeavyTails"},
                         {{1, 8, 128}, "Gaussian"},     {{1, 136, 256}, "OneExponent"}};
const uint64_t kTokens[] = {1, 3, 9, 17, 33, 64, 150};

// y of one product by `splits` splits; empty where the kernel does not take it.
Values run(cuda::Context& context, const Values& weights, const Grid& grid, uint64_t tokens, uint32_t splits) {
  Random random(tokens);
  Values x(tokens * grid.cols), bias(grid.rows);
  for (uint16_t& v : x) v = to_bf16(gaussian(random));
  for (uint16_t& v : bias) v = to_bf16(gaussian(random));
  const auto device_x = upload(x), device_bias = upload(bias);
  const auto packed = pack_on_gpu(context, weights, grid, false, Layout::kFast);
  const cuda::Route* const route = packed.pack->route_of_splits(tokens, splits);
  if (route == nullptr) return {};
  // That kernel writes y by the copy engine.
  if (std::holds_alternative<cuda::AheadPlan>(route->plan) && grid.rows % 8 != 0) return {};
  const uint64_t workspace_bytes = cuda::kPartialBytes + route->scratch_bytes;
  const auto workspace = poisoned(workspace_bytes);
  // Exactly as long as it must be, so that a store behind it is one outside.
  const auto y = poisoned(tokens * grid.rows * 2);
  cuda::LinearCall call;
  call.matrix = grid.stack - 1;
  call.x = device_x.as<uint16_t>(), call.tokens = tokens, call.x_stride = grid.cols;
  call.bias = tokens % 2 == 0 ? nullptr : device_bias.as<uint16_t>();
  call.y = y.as<uint16_t>(), call.y_stride = grid.rows;
  call.workspace = workspace.as<void>(), call.workspace_bytes = workspace_bytes;
  take(cuda::launch_fused(*packed.pack, *route, call));
  return download(y, tokens * grid.rows);
}

TEST_P(SanitizerTest, AddsAsTheGenericKernel) {
  cuda::ContextOptions options;
  options.kernel = cuda::KernelChoice::kGeneric;
  const auto generic = take(cuda::Context::create(options));
  options.kernel = GetParam().choice;
  const auto own = take(cuda::Context::create(options));
  if (own->options().kernel == cuda::KernelChoice::kGeneric) GTEST_SKIP() << "this GPU has the generic kernel alone";
  uint64_t products = 0;
  for (const Shape& shape : kShapes) {
    const Values weights = make_values(shape.kind, shape.grid, 21);
    for (const uint64_t tokens : kTokens) {
      for (const uint32_t splits : {1u, 3u}) {
        const Values y = run(*own, weights, shape.grid, tokens, splits);
        if (y.empty()) continue;
        const Values expected = run(*generic, weights, shape.grid, tokens, splits);
        if (!expected.empty()) {  // it takes no more than 64 tokens
          ASSERT_EQ(differing(y, expected), 0u)
              << shape.grid.rows << "x" << shape.grid.cols << " by " << tokens << ", " << splits << " splits";
        }
        ++products;
      }
    }
  }
  fmt::print("{} products\n", products);
  EXPECT_GT(products, GetParam().choice == cuda::KernelChoice::kAhead ? 20u : 60u);
}

INSTANTIATE_TEST_SUITE_P(Kernels, SanitizerTest, testing::ValuesIn(kKernels),
                         [](const auto& kernel) { return std::string(kernel.param.name); });

}  // namespace
}  // namespace glyd::test
