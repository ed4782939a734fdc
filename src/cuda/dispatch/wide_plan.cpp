#include "dispatch/wide_plan.hpp"

#include <algorithm>

namespace glyd::cuda {
namespace {

// Sets the places in shared memory; whether all fits.
bool place_shared(WidePlan& plan, uint32_t shared_bytes) {
  uint32_t at = plan.x_stages * x_stage_bytes(plan.tile_tokens);
  plan.scratch_at = at;
  at += plan.workers() * 2048;
  plan.ring_at = at;
  at += plan.workers() * plan.depth * plan.ring_stride;
  plan.barriers_at = at;
  plan.shared_bytes = at + plan.workers() * plan.depth * 8 + plan.x_stages * 16;
  return plan.shared_bytes <= shared_bytes;
}

// The most records in flight, then the most of x, that fit. Fewer than 4 chunks of x would stall the tensor core.
bool fill_shared(WidePlan& plan, uint32_t shared_bytes) {
  const uint32_t most_depth = plan.workers() <= 4 ? 6 : plan.workers() <= 8 ? 4 : 3;
  for (const uint32_t stages : {8u, 4u}) {
    for (plan.depth = most_depth; plan.depth >= 2; --plan.depth) {
      plan.x_stages = stages;
      plan.x_shift = stages == 8 ? 3 : 2;
      if (place_shared(plan, shared_bytes)) return true;
    }
  }
  return false;
}

// Sets what follows from the tile; whether the kernel can serve it.
bool cut(WidePlan& plan, const DeviceLimits& limits, uint32_t tile_tokens, uint32_t groups, uint32_t cluster) {
  if (groups < 1 || groups > most_warpgroups(tile_tokens)) return false;
  plan.tile_tokens = tile_tokens;
  plan.groups = groups;
  plan.cluster = cluster;
  plan.token_tiles = (plan.tokens + tile_tokens - 1) / tile_tokens;
  const uint64_t tiles =
      ceil_div(uint64_t{plan.strips}, uint64_t{4 * groups * cluster}) * plan.splits * plan.token_tiles;
  if (tiles >= uint64_t{1} << 31) return false;
  plan.tiles = static_cast<uint32_t>(tiles);
  plan.clusters = std::min(plan.tiles, limits.multiprocessors / cluster);
  plan.weights_once = plan.token_tiles == 1;
  return fill_shared(plan, limits.shared_bytes);
}

}  // namespace

std::optional<WidePlan> plan_wide(const PackHeader& header, uint32_t tokens, uint32_t splits,
                                  const DeviceLimits& limits, const WideChoice& choice) {
  if (!may_fuse(header, tokens) || splits < 1) return std::nullopt;
  WidePlan plan;
  static_cast<RecordGeometry&>(plan) = record_geometry(header);
  plan.tokens = tokens;
  plan.split_chunks = split_chunks(header.grid.cols, splits);
  plan.splits = static_cast<uint32_t>(ceil_div(plan.chunks, plan.split_chunks));  // empty splits add zeros
  std::optional<WidePlan> best;
  double best_cost = 0;
  for (const uint32_t tile_tokens : {32u, 64u, 128u, 256u}) {
    if (choice.tile_tokens != 0 && choice.tile_tokens != tile_tokens) continue;
    // Larger tiles than needed waste products, smaller ones read the weights again and again.
    if (choice.tile_tokens == 0 && (tile_tokens / 2 >= tokens && tile_tokens > 32)) continue;
    if (choice.tile_tokens == 0 && tile_tokens < 128 && tile_tokens < tokens) continue;
    for (uint32_t groups = 1; groups <= 3; ++groups) {
      if (choice.groups != 0 && choice.groups != groups) continue;
      for (uint32_t cluster = 1; cluster <= 2; ++cluster) {
        if (choice.cluster != 0 && choice.cluster != cluster) continue;
        if (!cut(plan, limits, tile_tokens, groups, cluster)) continue;
        const double cost = clocks_of(plan);
        if (!best || cost < best_cost) best = plan, best_cost = cost;
      }
    }
  }
  return best;
}

double clocks_of(const WidePlan& plan) {
  const uint32_t rounds = (plan.tiles + plan.clusters - 1) / plan.clusters;
  const double records = plan.split_chunks / 2.0, groups = plan.groups;
  double record = plan.tile_tokens <= 64    ? 1130 + 380 * groups
                  : plan.tile_tokens == 128 ? 1180 + 480 * groups
                                            : 1300 + 800 * groups;
  if (plan.cluster > 1) record *= 1.02;  // shares the reading of x, but waits for two
  return 6000 + rounds * (records * record + 2000) + (plan.splits > 1 ? 3000 : 0);
}

uint64_t partial_sum_bytes(const WidePlan& plan) {
  if (plan.splits == 1) return 0;
  return uint64_t{plan.strips} * plan.token_tiles * plan.splits * (plan.tile_tokens / 8) * 512;
}

uint64_t arrival_bytes(const WidePlan& plan) {
  return plan.splits == 1 ? 0 : uint64_t{plan.strips} * plan.token_tiles * 4;
}

}  // namespace glyd::cuda
