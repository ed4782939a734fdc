// How products are cut, on the host: everything is covered once, everything fits, and what the kernels rely on holds.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "ahead/ahead_order.hpp"
#include "dispatch/ahead_plan.hpp"
#include "dispatch/staged_plan.hpp"
#include "dispatch/wide_plan.hpp"

namespace glyd::cuda {
namespace {

constexpr DeviceLimits kH200{132, 232448}, kSmall{16, 101376};
constexpr DeviceLimits kShare{22, 232448}, kLeast{2, 232448};  // of an H200, beside other products

PackHeader header_of(uint64_t rows, uint64_t cols, uint32_t slot_bytes) {
  PackHeader header;
  header.layout = Layout::kFast;
  header.fusible = true;
  header.grid = {1, rows, cols};
  header.slot_bytes = slot_bytes;
  return header;
}

const std::pair<uint64_t, uint64_t> kShapes[] = {{6144, 4096}, {24576, 4096}, {4096, 12288}, {1024, 4096}, {8, 8},
                                                 {17, 136},    {1040, 2880},  {151936, 896}, {512, 32768}, {201, 1024}};
const uint32_t kSplits[] = {1, 2, 3, 7, 16};

// Chunks of all splits together: none is left out, none is counted twice.
template <class Plan>
void expect_all_chunks(const Plan& plan) {
  ASSERT_GE(plan.splits, 1u);
  EXPECT_GE(plan.split_chunks * plan.splits, plan.chunks);
  EXPECT_LT(plan.split_chunks * (plan.splits - 1), plan.chunks) << "an empty split";
}

template <class Body>
void for_each_case(const Body& body) {
  for (const auto& [rows, cols] : kShapes) {
    for (const uint32_t splits : kSplits) {
      for (const uint32_t slot_bytes : {0u, 48u, 336u}) {
        for (const DeviceLimits& limits : {kH200, kSmall, kShare, kLeast}) {
          SCOPED_TRACE(testing::Message()
                       << rows << " x " << cols << ", splits " << splits << ", slots " << slot_bytes);
          body(header_of(rows, cols, slot_bytes), splits, limits);
        }
      }
    }
  }
}

TEST(PlanTest, NarrowPlansCoverAndFit) {
  uint64_t planned = 0;
  for_each_case([&](const PackHeader& header, uint32_t splits, const DeviceLimits& limits) {
    for (const uint32_t tokens : {1u, 8u, 13u, 16u, 33u, 64u}) {
      const auto plan = plan_linear(header, tokens, splits, limits);
      if (!plan) continue;
      ++planned;
      expect_all_chunks(*plan);
      EXPECT_EQ(plan->units, plan->strips * plan->splits);
      // Blocks share the units by a multiplication, as the kernel does it.
      const auto first = [&](uint32_t block) {
        return static_cast<uint32_t>(uint64_t{plan->units * block} * plan->unit_magic >> 32);
      };
      EXPECT_EQ(first(0), 0u);
      EXPECT_EQ(first(plan->blocks), plan->units);
      EXPECT_LE(plan->shared_bytes, limits.shared_bytes);
      EXPECT_LE(plan->workers(), most_workers(token_tile(tokens), plan->splits > 1));
      EXPECT_EQ(plan->ring_at % 128, 0u);
      EXPECT_EQ(plan->barriers_at % 8, 0u);
    }
  });
  EXPECT_GT(planned, 1000u);
}

TEST(PlanTest, StagedPlansCoverAndKeepDecodersWithinARound) {
  uint64_t planned = 0;
  for_each_case([&](const PackHeader& header, uint32_t splits, const DeviceLimits& limits) {
    for (const uint32_t tokens : {1u, 17u, 32u, 33u, 64u, 65u, 100u, 128u}) {
      for (const uint32_t strips : {0u, 2u, 3u, 4u, 6u, 8u}) {
        const auto plan = plan_staged(header, tokens, splits, limits, strips);
        if (!plan) continue;
        ++planned;
        expect_all_chunks(*plan);
        EXPECT_TRUE(strips == 0 || plan->tile_strips == strips);
        const uint32_t row_tiles = plan->tiles / plan->splits;
        EXPECT_EQ(plan->tiles, row_tiles * plan->splits);
        EXPECT_GE(row_tiles * plan->tile_strips, plan->strips);
        EXPECT_LT((row_tiles - 1) * plan->tile_strips, plan->strips);
        // A barrier's phase is one bit: a decoder a whole round ahead of another would overwrite a stage.
        EXPECT_GE(plan->stages, plan->turn);
        EXPECT_LE(plan->decoders(), kMostDecoders);
        EXPECT_GE(plan->stages, 2u);
        EXPECT_LE(plan->shared_bytes, limits.shared_bytes);
        EXPECT_EQ(plan->x_at % 1024, 0u) << "swizzled tiles start at multiples of 1024";
        EXPECT_EQ(plan->ring_at % 128, 0u);
        EXPECT_EQ(plan->barriers_at % 8, 0u);
        EXPECT_GE(partial_sum_bytes(*plan), plan->splits == 1 ? 0 : uint64_t{plan->strips} * 16 * plan->splits * 4);
      }
    }
  });
  EXPECT_GT(planned, 1000u);
}

TEST(PlanTest, WidePlansCoverAndFit) {
  uint64_t planned = 0;
  for_each_case([&](const PackHeader& header, uint32_t splits, const DeviceLimits& limits) {
    for (const uint32_t tokens : {17u, 64u, 65u, 300u, 2048u, 32768u}) {
      const auto plan = plan_wide(header, tokens, splits, limits);
      if (!plan) continue;
      ++planned;
      expect_all_chunks(*plan);
      EXPECT_EQ(plan->token_tiles, (tokens + plan->tile_tokens - 1) / plan->tile_tokens);
      const uint32_t clusters_of_rows = plan->tiles / plan->token_tiles / plan->splits;
      EXPECT_EQ(plan->tiles, clusters_of_rows * plan->token_tiles * plan->splits);
      EXPECT_GE(clusters_of_rows * plan->cluster * plan->groups * 4, plan->strips);
      EXPECT_LE(plan->groups, most_warpgroups(plan->tile_tokens));
      EXPECT_LE(plan->blocks(), limits.multiprocessors);
      EXPECT_EQ(plan->x_stages, 1u << plan->x_shift) << "stages are found by masks";
      EXPECT_LE(plan->shared_bytes, limits.shared_bytes);
      EXPECT_EQ(plan->ring_at % 128, 0u);
      EXPECT_EQ(plan->barriers_at % 8, 0u);
    }
  });
  EXPECT_GT(planned, 500u);
}

TEST(PlanTest, AheadPlansCoverAndFit) {
  uint64_t planned = 0;
  for_each_case([&](const PackHeader& header, uint32_t splits, const DeviceLimits& limits) {
    for (const uint32_t tokens : {17u, 256u, 257u, 2048u, 32768u}) {
      const auto plan = plan_ahead(header, tokens, splits, limits);
      if (!plan) continue;
      ++planned;
      EXPECT_EQ(header.grid.cols % 128, 0u) << "only whole records";
      EXPECT_EQ(split_chunks(header.grid.cols, splits), plan->chunks) << "one split";
      EXPECT_GE(uint64_t{plan->row_tiles} * kAheadRows, plan->rows);
      EXPECT_EQ(plan->tiles, (plan->row_tiles + 1) / 2 * plan->token_tiles);
      EXPECT_LE(plan->blocks(), limits.multiprocessors);
      EXPECT_LE(AheadTraits::kSharedBytes, limits.shared_bytes);
      EXPECT_GE(ahead_scratch_bytes(*plan), header.grid.rows * header.grid.cols * 2);
      // The rows of the first wave are those that all blocks multiply first, and none is left out behind the last.
      EXPECT_EQ(plan->wave_strips % kAheadTileStrips, 0u);
      const uint32_t wave_tiles = plan->wave_strips / kAheadTileStrips;
      EXPECT_TRUE(wave_tiles == plan->row_tiles ||
                  wave_tiles / 2 * plan->group_tiles >= std::min(plan->tiles, plan->pairs));
      const uint64_t waves = ceil_div(plan->strips, plan->wave_strips);
      uint64_t batches = 0;
      for (uint64_t wave = 0; wave < waves; ++wave) {
        const uint64_t strips = std::min<uint64_t>(plan->wave_strips, plan->strips - wave * plan->wave_strips);
        batches += ceil_div<uint64_t>(strips, kAheadBatch) * plan->records;
      }
      EXPECT_EQ(batches, ahead_batches(*plan));
    }
  });
  EXPECT_GT(planned, 20u);
}

// As the kernel walks them: a wave's last rows may be one batch alone, and rows may end anywhere.
TEST(PlanTest, AheadDecodesEveryRecordOnceAndMultipliesEveryTileOnce) {
  const std::pair<uint64_t, uint64_t> shapes[] = {{32064, 3072}, {8512, 256},  {64, 512},    {16, 256}, {1, 128},
                                                  {4104, 2048},  {12288, 384}, {17152, 256}, {8, 1024}};
  uint64_t alone = 0;
  for (const auto& [rows, cols] : shapes) {
    for (const uint32_t tokens : {257u, 3400u, 8192u}) {
      for (const DeviceLimits& limits : {kH200, kShare, kLeast}) {
        SCOPED_TRACE(testing::Message() << rows << " x " << cols << " by " << tokens);
        const auto plan = plan_ahead(header_of(rows, cols, 48), tokens, 1, limits);
        ASSERT_TRUE(plan);
        std::vector<uint8_t> decoded(uint64_t{plan->strips} * plan->records);
        BatchOrder order(*plan);
        for (uint32_t batch = 0; batch < ahead_batches(*plan); ++batch) {
          order.seek(batch);
          ASSERT_LT(order.strip, plan->strips);
          ASSERT_LT(order.record, plan->records);
          ASSERT_EQ(order.strip % kAheadBatch, 0u) << "a batch lies in one tile";
          for (uint32_t s = order.strip; s < std::min(plan->strips, order.strip + kAheadBatch); ++s)
            ASSERT_EQ(decoded[uint64_t{s} * plan->records + order.record]++, 0);
        }
        EXPECT_EQ(std::count(decoded.begin(), decoded.end(), 1), static_cast<ptrdiff_t>(decoded.size()));
        const uint32_t last_wave = (plan->strips - 1) % plan->wave_strips + 1;
        alone += last_wave <= kAheadBatch && plan->records > 1;

        std::vector<uint8_t> multiplied((plan->row_tiles + 1) / 2 * 2 * uint64_t{plan->token_tiles});
        for (uint32_t index = 0; index < plan->tiles; ++index) {
          for (const uint32_t block : {0u, 1u}) {
            const AheadTile tile = AheadTile::at(*plan, index, block);
            ASSERT_LT(tile.token_tile, plan->token_tiles);
            ASSERT_LT(tile.row_tile, (plan->row_tiles + 1) / 2 * 2);
            ASSERT_EQ(multiplied[uint64_t{tile.row_tile} * plan->token_tiles + tile.token_tile]++, 0);
          }
        }
        EXPECT_EQ(std::count(multiplied.begin(), multiplied.end(), 1), static_cast<ptrdiff_t>(multiplied.size()));
      }
    }
  }
  EXPECT_GT(alone, 5u) << "waves of one batch";
}

TEST(PlanTest, NothingForWhatCannotBeFused) {
  PackHeader header = header_of(64, 64, 48);
  EXPECT_TRUE(plan_wide(header, 17, 1, kH200));
  EXPECT_FALSE(plan_wide(header, 0, 1, kH200));
  EXPECT_FALSE(plan_wide(header, kMostFusedTokens + 1, 1, kH200));
  EXPECT_FALSE(plan_staged(header, kStagedTokens + 1, 1, kH200));
  EXPECT_FALSE(plan_linear(header, kMostNarrowTokens + 1, 1, kH200));
  EXPECT_FALSE(plan_staged(header, 17, 0, kH200));
  EXPECT_FALSE(plan_ahead(header, 300, 1, kH200)) << "half a record";
  EXPECT_TRUE(plan_ahead(header_of(64, 256, 48), 300, 1, kH200));
  EXPECT_FALSE(plan_ahead(header_of(64, 256, 48), 300, 2, kH200)) << "two splits";
  header.fusible = false;
  EXPECT_FALSE(plan_wide(header, 17, 1, kH200));
  EXPECT_FALSE(plan_staged(header, 17, 1, kH200));
  EXPECT_FALSE(plan_wide(header_of(64, 60, 48), 17, 1, kH200)) << "columns that do not divide by 8";
}

}  // namespace
}  // namespace glyd::cuda
