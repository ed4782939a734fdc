// params.hpp - what one launch of the fused product is told: by the host's plan, and by the call.
#pragma once

#include <cstdint>

#include "format/geometry.hpp"

namespace glyd::cuda {

inline constexpr uint32_t kChunkCols = 64, kRecordChunks = 2;
// Warps that multiply, beside the one that fetches x. More than 12 warps in all leave a thread 128 registers, which the
// sums of many tokens over several splits outgrow.
constexpr uint32_t most_workers(uint32_t tile, bool split) { return tile > 16 && split ? 11 : 15; }

// Chunks of 64 columns in a piece of x, which one copy brings: 16 KiB at most.
constexpr uint32_t x_piece_chunks(uint32_t tile) { return tile <= 16 ? 8 : tile <= 32 ? 4 : 2; }

// Where the records of a matrix lie, and how much of them is copied. A matrix has `strips` strips of 16 rows, a strip
// `records` records of two chunks of 64 columns.
struct RecordGeometry {
  uint32_t rows = 0, cols = 0;
  uint32_t strips = 0, chunks = 0, records = 0;   // a matrix; of a strip
  uint32_t tail_steps = 0, tail_plane_bytes = 0;  // of a strip's last record (1-8)
  uint32_t strip_bytes = 0, strip_slot_bytes = 0;
  // slot_stride: from record to record; the copies are of at least 16 bytes, of zeros where the pack has no slots.
  uint32_t slot_stride = 0, slot_copy = 0, tail_slot_copy = 0, slot_entries = 0;
  uint32_t ring_stride = 0;  // from record to record in shared memory
};

// How a product is cut, the same for every call of one shape; made by dispatch/plan.
//
// A unit is one strip of 16 rows by one split of k (the splits are cuBLAS's own). Units are numbered split by split; a
// block takes a contiguous range of them, in equal parts, so that where the splits divide the blocks none has two. A
// block has `teams` teams of `team_warps` warps. A team takes one unit at a time, its warps the unit's records in turn.
struct LinearPlan : RecordGeometry {
  uint32_t tokens = 0;
  uint32_t splits = 1, split_chunks = 0;           // split z: chunks [z, z + 1) * split_chunks
  uint32_t units = 0, blocks = 0, unit_magic = 0;  // ceil(2^32 / blocks)
  uint32_t teams = 0, team_warps = 0, depth = 0;   // depth: records in flight a warp
  uint32_t warp_magic = 0, turn_magic = 0;         // ceil(2^8 / team_warps), ceil(2^16 / team_warps)
  uint32_t x_pieces = 0;                           // pieces of x in shared memory
  uint32_t counted = 0;                            // sums over splits by count, not by waiting
  uint32_t x_by_chunk = 0;                         // x by a 2-D map: columns do not divide by 64
  // Places in shared memory.
  uint32_t sums_at = 0, scratch_at = 0, ring_at = 0, barriers_at = 0;
  uint32_t shared_bytes = 0;

  constexpr uint32_t workers() const { return teams * team_warps; }
};

// What every product is told by the call.
struct ProductParams {
  const uint8_t* planes = nullptr;
  const uint8_t* slots = nullptr;
  const uint32_t* overflow = nullptr;
  uint32_t overflow_words = 0;
  const uint16_t* x = nullptr;
  const uint16_t* bias = nullptr;
  uint16_t* y = nullptr;
  float* partials = nullptr;     // all ones between calls
  uint32_t* arrivals = nullptr;  // likewise
  uint32_t y_stride = 0;
  uint32_t early = 0;  // lets the next grid start early
  float scale = 1;     // 2^shift
};

struct LinearParams : ProductParams {
  LinearPlan plan;
};

}  // namespace glyd::cuda
