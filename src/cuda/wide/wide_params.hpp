// wide_params.hpp - the fused product of many tokens: what a launch is told, and its compile-time choices.
#pragma once

#include "gemm/params.hpp"

namespace glyd::cuda {

// How a product of many tokens is cut; made by dispatch/wide_plan.
//
// A tile is `groups` times 64 rows by one split of k by `tile_tokens` tokens; clusters of blocks take tiles in turn,
// tokens innermost, so that a matrix's rows are read by neighbours at the same time. The `cluster` blocks of a cluster
// have tiles of neighbouring rows and share the reading of x. A block has a warpgroup of 4 warps for
// each group.
struct WidePlan : RecordGeometry {
  uint32_t tokens = 0;
  uint32_t splits = 1, split_chunks = 0;  // split z: chunks [z, z + 1) * split_chunks
  uint32_t tile_tokens = 0, groups = 0;
  uint32_t cluster = 1;
  uint32_t token_tiles = 0, tiles = 0, clusters = 0;  // tiles: of a cluster
  uint32_t depth = 0;                                 // records in flight a warp
  uint32_t x_stages = 0, x_shift = 0;                 // chunks of x in shared memory, a power of two: 1 << x_shift
  uint32_t weights_once = 0;                          // no other block reads the same weights
  // Places in shared memory.
  uint32_t scratch_at = 0, ring_at = 0, barriers_at = 0, shared_bytes = 0;

  constexpr uint32_t blocks() const { return clusters * cluster; }
  constexpr uint32_t workers() const { return groups * 4; }
  constexpr uint32_t threads() const;
};

struct WideParams : ProductParams {
  WidePlan plan;
};

// The most warpgroups of a block: what the sums leave of the registers.
constexpr uint32_t most_warpgroups(uint32_t tile_tokens) { return tile_tokens <= 128 ? 3 : 2; }
// One warp fetches x; where the sums are large it has a warpgroup to itself, whose registers the others take over.
constexpr uint32_t fetching_threads(uint32_t tile_tokens) { return tile_tokens <= 32 ? 32 : 128; }
constexpr uint32_t WidePlan::threads() const { return workers() * 32 + fetching_threads(tile_tokens); }
// Shared memory of a chunk of x.
constexpr uint32_t x_stage_bytes(uint32_t tile_tokens) { return tile_tokens * 2 * kChunkCols; }

// kTokens: 32, 64, 128 or 256.
template <uint32_t kTokens_>
struct WideTraits {
  static constexpr uint32_t kTokens = kTokens_;
  static constexpr uint32_t kTiles = kTokens / 8;  // of 8 tokens, as the tensor core's registers have them
  static constexpr uint32_t kMostThreads = most_warpgroups(kTokens) * 128 + fetching_threads(kTokens);
  // Registers of the fetching warps and the others, where they share them out anew: in all what the block was given.
  static constexpr bool kShareRegisters = fetching_threads(kTokens) == 128;
  static constexpr uint32_t kFetchRegisters = kTokens <= 128 ? 32 : 24;
  static constexpr uint32_t kWorkRegisters = kTokens <= 128 ? 160 : 240;
  static constexpr uint32_t kXStageBytes = x_stage_bytes(kTokens);
};

}  // namespace glyd::cuda
