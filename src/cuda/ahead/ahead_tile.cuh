// ahead_tile.cuh - the tiles of a block, in turn.
#pragma once

#include "ahead/ahead_params.hpp"
#include "arch/synchronize.cuh"

namespace glyd::cuda {

struct AheadTile {
  uint32_t row_tile, token_tile;  // row_tile: one more than there are where their number is odd

  // Token tiles of a group innermost, then pairs of row tiles, then groups.
  __device__ __forceinline__ static AheadTile at(const AheadPlan& plan, uint32_t index) {
    const uint32_t a_group = plan.group_tiles * ((plan.row_tiles + 1) / 2), group = index / a_group;
    const uint32_t first = group * plan.group_tiles, width = min(plan.group_tiles, plan.token_tiles - first);
    const uint32_t in_group = index - group * a_group, pair = in_group / width;
    return {2 * pair + arch::block_in_cluster(), first + (in_group - pair * width)};
  }
};

}  // namespace glyd::cuda
