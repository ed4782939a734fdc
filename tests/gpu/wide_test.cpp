// The product of many tokens in every way in which it can be cut, against cuBLAS on the decoded weights, bit by bit.
#include "product_fixture.hpp"

namespace glyd::test {
namespace {

class WideTest : public GpuTest {};

// Of the wide kernel; with a number of strips, of the staged one.
struct Cut {
  uint32_t tile_tokens, groups, cluster, strips = 0;
};
const Cut kCuts[] = {{0, 0, 0, 2}, {0, 0, 0, 3}, {0, 0, 0, 4}, {0, 0, 0, 6}, {0, 0, 0, 8}, {256, 1, 1},
                     {256, 2, 1},  {256, 2, 2},  {128, 1, 1},  {128, 3, 1},  {128, 3, 2},  {64, 1, 1},
                     {64, 3, 1},   {64, 2, 2},   {32, 1, 1},   {32, 3, 1},   {32, 3, 2}};
// Rows that end inside a strip and inside a group, records that straddle splits, short last records, one tile, many.
const Grid kGrids[] = {{1, 1040, 2880}, {1, 2048, 7232}, {1, 1000, 1032}, {1, 520, 1000}, {1, 64, 720}};
const uint64_t kTokens[] = {2, 17, 32, 33, 64, 65, 100, 130, 256, 300, 513};

// Every cut gives the bits that cuBLAS gives, wherever the check calls it exact, and the shapes here are nearly all.
TEST_F(WideTest, EveryCutIsExact) {
  uint64_t fused = 0, cases = 0;
  std::vector<Values> weights;
  for (const Grid& grid : kGrids) weights.push_back(make_values("Gaussian", grid, 1));
  for (const Cut& cut : kCuts) {
    cuda::ContextOptions options;
    options.kernel = cut.strips == 0 ? cuda::KernelChoice::kWide : cuda::KernelChoice::kStaged;
    options.wide = {cut.tile_tokens, cut.groups, cut.cluster};
    options.staged_strips = cut.strips;
    const auto forced = take(cuda::Context::create(options));
    std::string decoded;
    for (size_t g = 0; g < std::size(kGrids); ++g) {
      const Grid& grid = kGrids[g];
      Product product(*forced, weights[g], grid, 513);
      for (const uint64_t tokens : kTokens) {
        if (cut.strips != 0 && tokens > cuda::kStagedTokens) continue;
        for (const bool bias : {false, true}) {
          product.prepare({tokens}, bias);
          const Values expected = product.reference(tokens, bias);
          const auto where = fmt::format("{} x {} by {}, tile {}, groups {}, cluster {}, strips {}", grid.rows,
                                         grid.cols, tokens, cut.tile_tokens, cut.groups, cut.cluster, cut.strips);
          EXPECT_EQ(differing(product.fused(tokens, bias), expected), 0u) << where;
          EXPECT_EQ(differing(product.fused(tokens, bias, true, true), expected), 0u) << where << ", early";
          ++cases;
          if (product.is_fused(tokens, bias)) {
            ++fused;
          } else {
            decoded += fmt::format(" {}x{}:{}{}", grid.rows, grid.cols, tokens, bias ? "b" : "");
          }
        }
      }
    }
    if (!decoded.empty()) {
      fmt::print("tile {} groups {} cluster {} strips {}: decoded{}\n", cut.tile_tokens, cut.groups, cut.cluster,
                 cut.strips, decoded);
    }
  }
  fmt::print("{} of {} products of many tokens fused\n", fused, cases);
  EXPECT_GT(fused, cases * 9 / 10);
}

// Patches in every number, NaN and infinities in x.
TEST_F(WideTest, HeavyTailsAndSpecialInputs) {
  for (const char* kind : {"Gaussian", "HeavyTails"}) {
    const Grid grid{1, 208, 2048};
    Product product(context(), make_values(kind, grid, 3), grid, 96);
    product.prepare({96}, false);
    EXPECT_TRUE(product.is_fused(96, false)) << kind;
    product.set_x(special_inputs(96, grid.cols));
    EXPECT_EQ(differing(product.fused(96, false), product.reference(96, false)), 0u) << kind;
  }
}

// Rows of y that are not aligned are decoded where they must be exact, and written one by one where not.
TEST_F(WideTest, UnalignedRowsOfY) {
  const Grid grid{1, 203, 640};
  Product product(context(), make_values("Gaussian", grid, 3), grid, 96);
  product.prepare({96}, true);
  EXPECT_FALSE(product.is_fused(96, true));
  const Values expected = product.reference(96, true);
  EXPECT_EQ(differing(product.fused(96, true), expected), 0u);
  EXPECT_LT(differing(product.fused(96, true, false), expected), expected.size() / 20);
}

}  // namespace
}  // namespace glyd::test
