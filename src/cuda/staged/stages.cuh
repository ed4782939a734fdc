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

// Barriers of the stages: weights and x there, both free again. (Rings of their own for weights and x: tiles of 96
// rows 10% faster, of 48 and 32 rows 7-15% slower.)
struct StageBarriers {
  uint32_t full, free;
  __device__ __forceinline__ StageBarriers(const StagedPlan& plan, uint32_t shared)
      : full(shared + plan.barriers_at + plan.decoders * plan.depth * 8), free(full + plan.stages * 8) {}

  // By one warp, before the others may use them.
  __device__ __forceinline__ void initialise(const StagedPlan& plan, uint32_t strips, uint32_t multipliers,
                                             uint32_t lane) const {
    for (uint32_t i = lane; i < plan.stages; i += 32) {
      arch::mbarrier_init(full + i * 8, strips + 1);
      arch::mbarrier_init(free + i * 8, multipliers);
    }
    arch::mbarrier_fence_init();
  }
};

// Walks the records of one decoder, strips innermost: its number, and from there on every decoders-th, through all
// tiles.
struct DecoderRecords {
  uint32_t record, strip;   // of the tile at hand
  uint32_t index;           // of the tile; behind the last when there is no more
  uint32_t tile_first = 0;  // records of the tiles before
  StagedTile tile{};

  __device__ __forceinline__ DecoderRecords(const StagedPlan& plan, uint32_t decoder)
      : record(decoder / plan.tile_strips), strip(decoder - record * plan.tile_strips), index(blockIdx.x) {
    enter_tile(plan);
  }
  __device__ __forceinline__ bool more(const StagedPlan& plan) const { return index < plan.tiles; }
  // Whether it went on to another tile.
  __device__ __forceinline__ bool next(const StagedPlan& plan) {
    record += plan.step_records;
    strip += plan.step_strips;
    if (strip >= plan.tile_strips) strip -= plan.tile_strips, ++record;
    if (__builtin_expect(record < tile.records, 1)) return false;
    leave_tile(plan);
    enter_tile(plan);
    return true;
  }

 private:
  __device__ __forceinline__ void leave_tile(const StagedPlan& plan) {
    record -= tile.records;
    tile_first += tile.records;
    index += plan.blocks;
  }
  __device__ __forceinline__ void enter_tile(const StagedPlan& plan) {
    while (index < plan.tiles) {
      tile = StagedTile::at(plan, index);
      if (record < tile.records) return;
      leave_tile(plan);
    }
  }
};

// Starts the copies of a decoder's records, ahead of their decoding. (One thread for all decoders: 300 clocks a record,
// which the decoders wait for.)
class StagedLoader {
 public:
  __device__ __forceinline__ StagedLoader(const StagedParams& params, uint32_t decoder)
      : params_(params), at_(params.plan, decoder) {
    enter_tile();
  }

  __device__ __forceinline__ void issue(uint32_t slot, uint32_t barrier) {
    const StagedPlan& plan = params_.plan;
    if (!at_.more(plan)) return;
    // Strips behind the last stand for it: their sums are dropped.
    const uint32_t strip = min(at_.strip, last_strip_);
    const uint8_t* const planes = planes_ + (strip * plan.strip_bytes + at_.record * fast::kRecordBytes);
    const uint8_t* const slots = slots_ + (strip * plan.strip_slot_bytes + at_.record * plan.slot_stride);
    const bool tail = at_.record == tail_;
    const uint32_t plane_bytes = tail ? plan.tail_plane_bytes : fast::kRecordBytes;
    const uint32_t slot_bytes = tail ? plan.tail_slot_copy : plan.slot_copy;
    if (arch::elect_one()) {
      arch::mbarrier_arrive_expect(barrier, plane_bytes + slot_bytes);
      arch::bulk_copy_hinted(slot, planes, plane_bytes, barrier, arch::kEvictFirst);
      arch::bulk_copy(slot + fast::kRecordBytes, slots, slot_bytes, barrier);
    }
    if (at_.next(plan)) enter_tile();
  }

 private:
  __device__ __forceinline__ void enter_tile() {
    const StagedPlan& plan = params_.plan;
    if (!at_.more(plan)) return;
    const StagedTile& tile = at_.tile;
    last_strip_ = min(plan.tile_strips, plan.strips - tile.first_strip) - 1;
    tail_ = plan.tail_steps < fast::kRecordSteps ? plan.records - 1 - tile.record_begin : ~0u;
    const uint64_t first = tile.first_strip, skipped = tile.record_begin;
    planes_ = params_.planes + first * plan.strip_bytes + skipped * fast::kRecordBytes;
    slots_ = params_.slots + first * plan.strip_slot_bytes + skipped * plan.slot_stride;
  }

  const StagedParams& params_;
  DecoderRecords at_;
  uint32_t last_strip_ = 0, tail_ = ~0u;  // of the tile
  const uint8_t* planes_ = nullptr;       // of its first strip and record
  const uint8_t* slots_ = nullptr;
};

// Fetches x for every record, in order; by one thread. (By pairs of blocks for each other: 6% slower. By warps that
// copy 16 bytes a lane: three times slower.)
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
      const uint32_t barrier = barriers.full + place.index * 8, to = x_base + place.index * 2 * chunk_bytes;
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
