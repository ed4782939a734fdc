#include "dispatch/ahead_plan.hpp"

#include <algorithm>

namespace glyd::cuda {
namespace {

// Token tiles of a group: all blocks read their x again for every wave of rows, so it should stay in L2.
constexpr uint32_t kGroupTiles = 16;

// In clocks (docs/adr/0015-decoding-ahead.md): 64 columns of a tile by the tensor core, beside decoding; a tile's
// outputs; a record by one decoding warp; until the first tile's weights are there, and the launch.
constexpr double kChunkClocks = 1250, kTileClocks = 3000, kRecordClocks = 2300, kStartClocks = 20000;

}  // namespace

std::optional<AheadPlan> plan_ahead(const PackHeader& header, uint32_t tokens, uint32_t splits,
                                    const DeviceLimits& limits) {
  if (!may_fuse(header, tokens) || splits < 1 || limits.multiprocessors < 2 ||
      limits.shared_bytes < AheadTraits::kSharedBytes) {
    return std::nullopt;
  }
  AheadPlan plan;
  static_cast<RecordGeometry&>(plan) = record_geometry(header);
  if (plan.cols % (kRecordChunks * kChunkCols) != 0 || split_chunks(plan.cols, splits) < plan.chunks)
    return std::nullopt;
  plan.tokens = tokens;
  plan.row_tiles = (plan.rows + kAheadRows - 1) / kAheadRows;
  plan.token_tiles = (tokens + kAheadTokens - 1) / kAheadTokens;
  const uint64_t tiles = (uint64_t{plan.row_tiles} + 1) / 2 * plan.token_tiles;
  plan.pairs = limits.multiprocessors / 2;  // those without a tile decode
  plan.group_tiles = std::min(plan.token_tiles, kGroupTiles);
  const auto multiplying = static_cast<uint32_t>(std::min<uint64_t>(plan.pairs, tiles));
  const uint32_t wave_tiles = (multiplying + plan.group_tiles - 1) / plan.group_tiles * 2;
  plan.wave_strips = std::min(plan.row_tiles, wave_tiles) * kAheadTileStrips;
  // Numbers of tiles and batches are 32-bit, and so is what BatchOrder multiplies.
  const uint64_t wave_batches = plan.wave_strips / kAheadBatch;
  if (tiles >= uint64_t{1} << 31 || uint64_t{plan.strips} * plan.records >= uint64_t{1} << 31 ||
      wave_batches * wave_batches * plan.records >= uint64_t{1} << 32) {
    return std::nullopt;
  }
  plan.tiles = static_cast<uint32_t>(tiles);
  return plan;
}

double clocks_of(const AheadPlan& plan) {
  const double rounds = (plan.tiles + plan.pairs - 1) / plan.pairs;
  const double multiply = rounds * (plan.chunks * kChunkClocks + kTileClocks);
  const double decode = kRecordClocks * plan.strips * plan.records / (kAheadDecoders * plan.blocks());
  return kStartClocks + std::max(multiply, decode);
}

}  // namespace glyd::cuda
