#include "dispatch/generic_plan.hpp"

#include <algorithm>

namespace glyd::cuda {
namespace {

// `groups`: blocks that the grid has for each part of the strips.
std::optional<GenericPlan> cut(const PackHeader& header, uint32_t tokens, uint32_t splits, uint32_t tiles,
                               uint32_t groups, const DeviceLimits& limits) {
  GenericPlan plan;
  static_cast<RecordGeometry&>(plan) = record_geometry(header);
  plan.tokens = tokens;
  plan.split_chunks = split_chunks(header.grid.cols, splits);
  plan.splits = static_cast<uint32_t>(ceil_div(plan.chunks, plan.split_chunks));
  plan.tiles = tiles;
  plan.team = plan.splits == 1 ? 1 : plan.splits < 4 ? 2 : kGenericWarps;
  plan.token_blocks = groups;
  // Several strips a block only where every multiprocessor has blocks enough without.
  const uint64_t enough = 4 * uint64_t{limits.multiprocessors};
  plan.block_strips = kGenericWarps / plan.team;
  while (plan.block_strips > 1 && uint64_t{groups} * ceil_div(plan.strips, plan.block_strips) < enough)
    plan.block_strips /= 2;
  plan.blocks = ceil_div(plan.strips, plan.block_strips);
  return shared_bytes(plan) <= limits.shared_bytes ? std::optional(plan) : std::nullopt;
}

}  // namespace

std::optional<GenericPlan> plan_generic(const PackHeader& header, uint32_t tokens, uint32_t splits,
                                        const DeviceLimits& limits) {
  if (!may_fuse(header, tokens) || tokens > kMostGenericTokens || splits < 1) return std::nullopt;
  const uint32_t tiles = tokens <= 8 ? 1 : 2;
  return cut(header, tokens, splits, tiles, ceil_div(tokens, tiles * 8), limits);
}

std::optional<GenericPlan> plan_experts(const PackHeader& header, uint64_t tokens, uint32_t most_splits,
                                        const DeviceLimits& limits) {
  constexpr uint64_t kMostBlocksY = 65535;  // of a grid
  if (!may_fuse(header, 1) || tokens < 1 || tokens > 0x7fffffff || most_splits < 1) return std::nullopt;
  const uint64_t groups = std::min(tokens, header.grid.stack);
  if (groups > kMostBlocksY) return std::nullopt;
  return cut(header, static_cast<uint32_t>(tokens), most_splits, 2, static_cast<uint32_t>(groups), limits);
}

}  // namespace glyd::cuda
