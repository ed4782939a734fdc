// generic_params.hpp - the fused product of any GPU from sm_80 on, also of experts: what a launch is told.
// docs/adr/0012-generic-and-experts.md.
#pragma once

#include "gemm/params.hpp"

namespace glyd::cuda {

inline constexpr uint32_t kGenericWarps = 4;  // the most of a block
// The most tokens of an expert (or of a call) whose splits are looked up.
inline constexpr uint32_t kMostGenericTokens = 64;

// How such a product is cut. A strip of 16 rows has a team of warps, one a split of k at a time; a block has the teams
// of some strips. A warp walks through its records alone.
struct GenericPlan : RecordGeometry {
  uint32_t tokens = 0;
  uint32_t splits = 1, split_chunks = 0;  // split z: chunks [z, z + 1) * split_chunks
  uint32_t tiles = 1;                     // of 8 tokens, held at once: 1 or 2
  uint32_t team = 1, block_strips = 1;    // warps a strip, strips a block
  uint32_t blocks = 0, token_blocks = 0;  // the grid's x and y

  constexpr uint32_t threads() const { return team * block_strips * 32; }
};

struct GenericParams : ProductParams {
  uint64_t x_stride = 0;
  GenericPlan plan;
  // Experts, or null: matrix e has the rows ends[e - 1] (0 for the first) to ends[e] of x and y. `planes`, `slots` and
  // `bias` are then of matrix 0.
  const int32_t* ends = nullptr;
  uint32_t experts = 0;
  uint8_t splits_of[kMostGenericTokens + 1] = {};  // by an expert's number of tokens; more than that: the last
};

// Shared memory of a warp: patch scratch, then two records of x, then two patch slots.
inline constexpr uint32_t kGenericSlotRoom = 448;  // reading a slot's first 32 entries may go past its end
constexpr uint32_t generic_x_bytes(uint32_t tiles) { return tiles * 8 * kRecordChunks * kChunkCols * 2; }
constexpr uint32_t generic_warp_bytes(uint32_t tiles) {
  return 2048 + 2 * generic_x_bytes(tiles) + 2 * kGenericSlotRoom;
}

}  // namespace glyd::cuda
