// stages.cuh - tiles of a block, the stages of shared memory between its warps, and the copies into them.
#pragma once

#include "arch/bulk_copy.cuh"
#include "arch/mbarrier.cuh"
#include "arch/synchronize.cuh"
#include "decode/fast_chunk.hpp"
#include "staged/staged_params.hpp"

namespace glyd::cuda {

struct StagedTile {
  uint32_t first_strip, split;
  uint32_t chunk_begin, chunk_end;  // of its split
  uint32_t record_begin, records;   // that hold them: the first and last may reach into other splits

  __device__ __forceinline__ static StagedTile at(const StagedPlan& plan, uint32_t index) {
    StagedTile tile{index, 0, 0, plan.chunks, 0, plan.records};
    if (plan.splits > 1) {
      const uint32_t rows_index = index / plan.splits;
      tile.split = index - rows_index * plan.splits;
      tile.first_strip = rows_index;
      tile.chunk_begin = tile.split * plan.split_chunks;
      tile.chunk_end = min(plan.chunks, tile.chunk_begin + plan.split_chunks);
      tile.record_begin = tile.chunk_begin / kRecordChunks;
      tile.records = (tile.chunk_end + kRecordChunks - 1) / kRecordChunks - tile.record_begin;
    }
    tile.first_strip *= plan.tile_strips;
    return tile;
  }
};

// A place that goes round a ring.
struct RingPlace {
  uint32_t stages, index = 0, parity = 0;
  __device__ __forceinline__ void advance(uint32_t by) {
    index += by;
    while (index >= stages) index -= stages, parity ^= 1;
  }
};

// Barriers of the stages: weights there, x there, both free again. (Rings of their own for weights and x: tiles of 96
// rows 10% faster, of 48 and 32 rows 7-15% slower.)
struct StageBarriers {
  uint32_t weights, x, free;
  __device__ __forceinline__ StageBarriers(const StagedPlan& plan, uint32_t shared)
      : weights(shared + plan.barriers_at + plan.decoders * plan.depth * 8),
        x(weights + plan.stages * 8),
        free(x + plan.stages * 8) {}
};

// The records of one decoder, strips innermost: its number, and from there on every decoders-th, through all tiles.
struct DecoderRecords {
  uint32_t record, strip;  // of the tile at hand; behind its end they are the next one's

  __device__ __forceinline__ DecoderRecords(const StagedPlan& plan, uint32_t decoder)
      : record(decoder / plan.tile_strips), strip(decoder - record * plan.tile_strips) {}
  __device__ __forceinline__ void next(const StagedPlan& plan) {
    record += plan.step_records;
    strip += plan.step_strips;
    if (strip >= plan.tile_strips) strip -= plan.tile_strips, ++record;
  }
};

// Starts the copies of a decoder's records, ahead of their decoding.
class StagedLoader {
 public:
  __device__ __forceinline__ StagedLoader(const StagedParams& params, uint32_t decoder)
      : params_(params), index_(blockIdx.x), at_(params.plan, decoder) {
    if (index_ < params.plan.tiles) tile_ = StagedTile::at(params.plan, index_);
    enter_tile();
  }

  __device__ __forceinline__ void issue(uint32_t slot, uint32_t barrier) {
    const StagedPlan& plan = params_.plan;
    if (index_ >= plan.tiles) return;
    if (arch::elect_one()) {
      const uint64_t record = tile_.record_begin + at_.record;
      // Strips behind the last stand for it: their sums are dropped.
      const uint64_t strip = min(tile_.first_strip + at_.strip, plan.strips - 1);
      const bool tail = record + 1 == plan.records && plan.tail_steps < fast::kRecordSteps;
      const uint32_t plane_bytes = tail ? plan.tail_plane_bytes : fast::kRecordBytes;
      const uint32_t slot_bytes = tail ? plan.tail_slot_copy : plan.slot_copy;
      arch::mbarrier_arrive_expect(barrier, plane_bytes + slot_bytes);
      arch::bulk_copy_hinted(slot, params_.planes + strip * plan.strip_bytes + record * fast::kRecordBytes, plane_bytes,
                             barrier, arch::kEvictFirst);
      arch::bulk_copy(slot + fast::kRecordBytes,
                      params_.slots + strip * plan.strip_slot_bytes + record * plan.slot_stride, slot_bytes, barrier);
    }
    at_.next(plan);
    enter_tile();
  }

 private:
  // Goes on to the tile in which the next record lies.
  __device__ __forceinline__ void enter_tile() {
    while (index_ < params_.plan.tiles && at_.record >= tile_.records) {
      at_.record -= tile_.records;
      index_ += params_.plan.blocks;
      if (index_ < params_.plan.tiles) tile_ = StagedTile::at(params_.plan, index_);
    }
  }

  const StagedParams& params_;
  uint32_t index_;
  DecoderRecords at_;
  StagedTile tile_{};
};

// Fetches x for every record, in order; by one thread.
__device__ __forceinline__ void fetch_staged_x(const StagedPlan& plan, const CUtensorMap* map, uint32_t x_base,
                                               const StageBarriers& barriers) {
  const uint32_t chunk_bytes = staged_x_chunk_bytes(plan.x_rows);
  RingPlace place{plan.stages};
  uint32_t filled = 0;
#pragma unroll 1
  for (uint32_t index = blockIdx.x; index < plan.tiles; index += plan.blocks) {
    const StagedTile tile = StagedTile::at(plan, index);
#pragma unroll 1
    for (uint32_t i = 0; i < tile.records; ++i, ++filled) {
      const uint32_t barrier = barriers.x + place.index * 8, to = x_base + place.index * 2 * chunk_bytes;
      if (filled >= plan.stages) arch::mbarrier_wait(barriers.free + place.index * 8, place.parity ^ 1);
      arch::mbarrier_arrive_expect(barrier, 2 * chunk_bytes);
      const uint32_t col = (tile.record_begin + i) * kRecordCols;
      arch::tensor_copy_2d(to, map, col, 0, barrier);
      arch::tensor_copy_2d(to + chunk_bytes, map, col + kChunkCols, 0, barrier);
      place.advance(1);
    }
  }
}

}  // namespace glyd::cuda
