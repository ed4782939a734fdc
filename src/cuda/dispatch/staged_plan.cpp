#include "dispatch/staged_plan.hpp"

#include <algorithm>

namespace glyd::cuda {
namespace {

// Sets the places in shared memory; whether all fits.
bool place_shared(StagedPlan& plan, uint32_t shared_bytes) {
  plan.x_at = plan.stages * stage_weight_bytes(plan.tile_strips);
  plan.ring_at = plan.x_at + plan.stages * 2 * staged_x_chunk_bytes(plan.x_rows);
  plan.barriers_at = plan.ring_at + plan.decoders() * kDecoderDepth * plan.ring_stride;
  plan.shared_bytes = plan.barriers_at + (plan.decoders() * kDecoderDepth + 2 * plan.stages) * 8;
  return plan.shared_bytes <= shared_bytes;
}

bool cut(StagedPlan& plan, const DeviceLimits& limits, uint32_t tile_strips) {
  plan.tile_strips = tile_strips;
  const uint64_t tiles = ceil_div(uint64_t{plan.strips}, uint64_t{tile_strips}) * plan.splits;
  if (tiles * plan.splits >= uint64_t{1} << 31) return false;
  plan.tiles = static_cast<uint32_t>(tiles);
  plan.blocks = std::min(plan.tiles, limits.multiprocessors);
  // As many decoders as stages can keep apart, then a stage or two more than they need.
  for (plan.turn = kMostDecoders / tile_strips; plan.turn >= 1; --plan.turn) {
    plan.turn_plane_bytes = plan.turn * fast::kRecordBytes;
    plan.turn_slot_bytes = plan.turn * plan.slot_stride;
    const uint32_t least = std::max(2u, plan.turn);
    for (plan.stages = least + 2; plan.stages >= least; --plan.stages) {
      if (place_shared(plan, limits.shared_bytes)) return true;
    }
  }
  return false;
}

}  // namespace

std::optional<StagedPlan> plan_staged(const PackHeader& header, uint32_t tokens, uint32_t splits,
                                      const DeviceLimits& limits, uint32_t tile_strips) {
  if (!may_fuse(header, tokens) || tokens > kStagedTokens || splits < 1) return std::nullopt;
  StagedPlan plan;
  static_cast<RecordGeometry&>(plan) = record_geometry(header);
  plan.tokens = tokens;
  plan.x_rows = round_up(tokens, 32u);
  plan.split_chunks = split_chunks(header.grid.cols, splits);
  plan.splits = static_cast<uint32_t>(ceil_div(plan.chunks, plan.split_chunks));  // empty splits add zeros
  plan.split_magic = static_cast<uint32_t>(((uint64_t{1} << 32) + plan.splits - 1) / plan.splits);
  std::optional<StagedPlan> best;
  double best_cost = 0;
  for (const uint32_t strips : {2u, 3u, 4u, 6u, 8u}) {
    if (tile_strips != 0 && tile_strips != strips) continue;
    if (!cut(plan, limits, strips)) continue;
    const double cost = clocks_of(plan);
    if (!best || cost < best_cost) best = plan, best_cost = cost;
  }
  return best;
}

double clocks_of(const StagedPlan& plan) {
  const uint32_t rounds = (plan.tiles + plan.blocks - 1) / plan.blocks;
  const double records = plan.split_chunks / 2.0;
  const double record =
      plan.warpgroups() == 1 ? 350 + 140.0 * plan.tile_strips : 330 + 250.0 * plan.tile_strips;  // of all strips
  return 6000 + rounds * (records * record + 1500) + (plan.splits > 1 ? 3000 : 0);
}

uint64_t partial_sum_bytes(const StagedPlan& plan) {
  if (plan.splits == 1) return 0;
  const uint64_t tiles = plan.tiles;  // of every split
  return tiles * token_groups(plan.tokens) * (plan.tile_strips * 2) * 512;
}

uint64_t arrival_bytes(const StagedPlan& plan) {
  return plan.splits == 1 ? 0 : uint64_t{plan.tiles} / plan.splits * token_groups(plan.tokens) * 4;
}

}  // namespace glyd::cuda
