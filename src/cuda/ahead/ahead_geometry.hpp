// ahead_geometry.hpp - the product of many tokens whose weights are decoded ahead of it by the same launch: how it is
// cut, and its compile-time choices. For the host, too, without CUDA's headers.
#pragma once

#include "gemm/params.hpp"

namespace glyd::cuda {

// How such a product is cut; made by dispatch/ahead_plan.
//
// A tile is 128 rows by 256 tokens by all of k. Pairs of blocks have tiles of neighbouring rows and share the
// reading of x; they take tiles in turn, a group of token tiles after another and in it the rows, tokens innermost. In
// each block two warpgroups multiply, one warp copies, and the others decode records into the scratch, whichever are
// next: in waves of as many rows as all blocks multiply at a time, in ascending k, so that every block finds its
// weights decoded. A record is decoded once, whatever the number of tokens.
struct AheadPlan : RecordGeometry {
  uint32_t tokens = 0;
  uint32_t splits = 1;  // of k: always one
  uint32_t row_tiles = 0, token_tiles = 0;
  uint32_t tiles = 0, pairs = 0;  // tiles: of two row tiles; pairs: of blocks
  uint32_t group_tiles = 0;       // token tiles of a group
  uint32_t wave_strips = 0;       // of 16 rows

  constexpr uint32_t blocks() const { return 2 * pairs; }
};

inline constexpr uint32_t kAheadTokens = 256, kAheadRows = 128, kAheadTileStrips = kAheadRows / 16;
inline constexpr uint32_t kAheadChunkBytes = kAheadRows * kChunkCols * 2;  // of decoded weights: a tile's 64 columns
inline constexpr uint32_t kAheadStripBytes = 16 * kChunkCols * 2, kAheadRecordBytes = kRecordChunks * kAheadStripBytes;
inline constexpr uint32_t kAheadMultipliers = 8, kAheadDecoders = 3;  // warps; one more copies
inline constexpr uint32_t kAheadThreads = (kAheadMultipliers + 1 + kAheadDecoders) * 32;

constexpr uint64_t ahead_scratch_bytes(const AheadPlan& plan) {
  return uint64_t{plan.row_tiles} * plan.chunks * kAheadChunkBytes;
}
// Batches of records that are decoded together: of four strips.
inline constexpr uint32_t kAheadBatch = 4;
constexpr uint32_t ahead_batches(const AheadPlan& plan) {
  return (plan.strips + kAheadBatch - 1) / kAheadBatch * plan.records;
}
// Words that are all ones between calls: how many batches of a tile's record are decoded, and the next of all batches.
constexpr uint64_t ahead_flag_words(const AheadPlan& plan) { return uint64_t{plan.row_tiles} * plan.records + 1; }

// Outputs of a warpgroup that leave together: 64 rows by 16 tokens.
inline constexpr uint32_t kAheadOutTokens = 16, kAheadOutBytes = kAheadOutTokens * 128;

struct AheadTraits {
  static constexpr uint32_t kTiles = kAheadTokens / 8;  // of 8 tokens, as the tensor core's registers have them
  static constexpr uint32_t kXBytes = kAheadTokens * kChunkCols * 2;
  static constexpr uint32_t kStages = 4;
  // In all no more than the block was given: 168 a thread of three warpgroups.
  static constexpr uint32_t kMultiplyRegisters = 192, kDecodeRegisters = 120;
  // Places in shared memory.
  static constexpr uint32_t kXAt = kStages * kAheadChunkBytes;
  static constexpr uint32_t kOutAt = kXAt + kStages * kXBytes;         // two places a warpgroup
  static constexpr uint32_t kDecodedAt = kOutAt + 4 * kAheadOutBytes;  // two records a decoder
  static constexpr uint32_t kBarriersAt = kDecodedAt + kAheadDecoders * 2 * kAheadRecordBytes;
  static constexpr uint32_t kSharedBytes = kBarriersAt + 2 * kStages * 8;
};

}  // namespace glyd::cuda
