// staged_params.hpp - the fused product by way of shared memory, for some tens of tokens: what a launch is told, and
// its compile-time choices.
#pragma once

#include "gemm/params.hpp"

namespace glyd::cuda {

inline constexpr uint32_t kGroupTokens = 64;  // of four warps: rows of the tensor core's first operand
inline constexpr uint32_t kStagedTokens = 2 * kGroupTokens;
inline constexpr uint32_t kMostDecoders = 12;  // warps; one more fetches x
inline constexpr uint32_t kDecoderDepth = 2;   // records in flight a decoder
constexpr uint32_t staged_threads(uint32_t warpgroups, uint32_t decoders) {
  return (4 * warpgroups + 1 + decoders) * 32;
}
inline constexpr uint32_t kRecordCols = kRecordChunks * kChunkCols;

// How such a product is cut; made by dispatch/staged_plan.
//
// A tile is `tile_strips` strips of 16 rows by one split of k by all tokens; blocks take tiles in turn. One warp
// fetches x, up to twelve decode records into stages (a stage: the tile's rows by 128 columns, bf16), and four warps
// for each 64 tokens multiply the stages in ascending order. A decoder has one strip of a tile and every turn-th record
// of it. x is the tensor core's first operand, so that a tile can have as few rows as it takes to give every
// multiprocessor one.
struct StagedPlan : RecordGeometry {
  uint32_t tokens = 0;
  uint32_t splits = 1, split_chunks = 0;  // split z: chunks [z, z + 1) * split_chunks
  uint32_t tile_strips = 0, tiles = 0, blocks = 0;
  uint32_t split_magic = 0;  // ceil(2^32 / splits)
  // Decoders of a strip. No more than stages: none is to be a whole round of them ahead of another.
  uint32_t turn = 0;
  uint32_t turn_plane_bytes = 0, turn_slot_bytes = 0;  // from a decoder's record to its next
  uint32_t stages = 0;                                 // of weights and x
  uint32_t x_rows = 0;                                 // of x in a stage: a multiple of 32
  // Places in shared memory.
  uint32_t x_at = 0, ring_at = 0, barriers_at = 0, shared_bytes = 0;

  constexpr uint32_t decoders() const { return turn * tile_strips; }
  constexpr uint32_t warpgroups() const { return (tokens + kGroupTokens - 1) / kGroupTokens; }  // that multiply
  constexpr uint32_t threads() const { return staged_threads(warpgroups(), decoders()); }
};

struct StagedParams : ProductParams {
  StagedPlan plan;
};

// Multiplying warps that have tokens, 16 each.
constexpr uint32_t token_groups(uint32_t tokens) { return (tokens + 15) / 16; }
constexpr uint32_t stage_weight_bytes(uint32_t tile_strips) { return tile_strips * 16 * kRecordCols * 2; }
// 64 columns of x. The tensor core reads kGroupTokens rows a warpgroup, whatever lies behind the last: what it makes of
// them is dropped.
constexpr uint32_t staged_x_chunk_bytes(uint32_t x_rows) { return x_rows * 128; }

// kStrips: 2, 3, 4, 6 or 8; kWarpgroups: 1 or 2.
template <uint32_t kStrips_, uint32_t kWarpgroups_>
struct StagedTraits {
  static constexpr uint32_t kStrips = kStrips_;
  static constexpr uint32_t kRows = kStrips * 16;
  static constexpr uint32_t kGroups = kRows / 8;        // of 8 rows, as the tensor core's registers have them
  static constexpr uint32_t kChunkBytes = kRows * 128;  // of a stage: 64 columns
  static constexpr uint32_t kMultipliers = kWarpgroups_ * 4;
  static constexpr uint32_t kThreads = staged_threads(kWarpgroups_, kMostDecoders / kStrips_ * kStrips_);
};

}  // namespace glyd::cuda
