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
      const uint32_t rows_index = __umulhi(index, plan.split_magic);
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

// A place that goes round the stages.
struct StagePlace {
  uint32_t index, parity = 0;
  // `by`: at most a round.
  __device__ __forceinline__ void advance(uint32_t by, uint32_t stages) {
    index += by;
    if (index >= stages) index -= stages, parity ^= 1;
  }
};

// Barriers of the stages: weights and x there, both free again. (Rings of their own for weights and x: tiles of 96
// rows 10% faster, of 48 and 32 rows 7-15% slower.)
struct StageBarriers {
  uint32_t full, free;
  __device__ __forceinline__ StageBarriers(const StagedPlan& plan, uint32_t shared)
      : full(shared + plan.barriers_at), free(full + plan.stages * 8) {}

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

// Walks a decoder's records and starts their copies, ahead of their decoding: of one strip of every tile of the block,
// each turn-th. Records are counted on from tile to tile. (One thread for all decoders: 300 clocks a record, which the
// decoders wait for.)
template <class T>
class StagedLoader {
 public:
  __device__ __forceinline__ StagedLoader(const StagedParams& params, uint32_t decoder)
      : params_(params), strip_(decoder % T::kStrips), record_(decoder / T::kStrips), index_(blockIdx.x) {
    enter_tile();
  }

  __device__ __forceinline__ bool more() const { return index_ < params_.plan.tiles; }
  // Whether the next record is a strip's last and has fewer steps.
  __device__ __forceinline__ bool tail() const { return record_ == tail_; }

  // Starts the copy of the next record, of which there must be one, to `to`; it completes on `barrier`.
  __device__ __forceinline__ void issue(uint32_t to, uint32_t barrier) {
    const StagedPlan& plan = params_.plan;
    uint32_t plane_bytes = fast::kRecordBytes, slot_bytes = plan.slot_copy;
    if (__builtin_expect(tail(), 0)) plane_bytes = plan.tail_plane_bytes, slot_bytes = plan.tail_slot_copy;
    if (arch::elect_one()) {
      arch::mbarrier_arrive_expect(barrier, plane_bytes + slot_bytes);
      arch::bulk_copy_hinted(to, planes_, plane_bytes, barrier, arch::kEvictFirst);
      arch::bulk_copy(to + fast::kRecordBytes, slots_, slot_bytes, barrier);
    }
    record_ += plan.turn;
    planes_ += plan.turn_plane_bytes;
    slots_ += plan.turn_slot_bytes;
    if (__builtin_expect(record_ >= records_, 0)) {
      record_ -= records_;
      index_ += plan.blocks;
      enter_tile();
    }
  }

 private:
  __device__ __forceinline__ void enter_tile() {
    const StagedPlan& plan = params_.plan;
    for (; more(); index_ += plan.blocks) {
      const StagedTile tile = StagedTile::at(plan, index_);
      records_ = tile.records;
      if (__builtin_expect(record_ >= records_, 0)) {  // fewer records than decoders
        record_ -= records_;
        continue;
      }
      tail_ = plan.tail_steps < fast::kRecordSteps ? plan.records - 1 - tile.record_begin : ~0u;
      // Strips behind the last stand for it: their sums are dropped.
      const uint64_t strip = min(tile.first_strip + strip_, plan.strips - 1), record = tile.record_begin + record_;
      planes_ = params_.planes + strip * plan.strip_bytes + record * fast::kRecordBytes;
      slots_ = params_.slots + strip * plan.strip_slot_bytes + record * plan.slot_stride;
      return;
    }
  }

  const StagedParams& params_;
  uint32_t strip_, record_, index_;    // of a tile; of the tile; the tile: behind the last when there is no more
  uint32_t records_ = 0, tail_ = ~0u;  // of the tile
  const uint8_t* planes_ = nullptr;    // of the next record
  const uint8_t* slots_ = nullptr;
};

// Fetches x for every record, in order; by one thread. (By pairs of blocks for each other: 6% slower. By warps that
// copy 16 bytes a lane: three times slower.)
__device__ __forceinline__ void fetch_staged_x(const StagedPlan& plan, const CUtensorMap* map, uint32_t x_base,
                                               const StageBarriers& barriers) {
  const uint32_t chunk_bytes = staged_x_chunk_bytes(plan.x_rows);
  StagePlace place{0};
#pragma unroll 1
  for (uint32_t index = blockIdx.x; index < plan.tiles; index += plan.blocks) {
    const StagedTile tile = StagedTile::at(plan, index);
    uint32_t col = tile.record_begin * kRecordCols;
#pragma unroll 1
    for (uint32_t left = tile.records; left > 0; --left, col += kRecordCols) {
      const uint32_t barrier = barriers.full + place.index * 8, to = x_base + place.index * 2 * chunk_bytes;
      arch::mbarrier_wait(barriers.free + place.index * 8, place.parity ^ 1);  // at first all are free
      arch::mbarrier_arrive_expect(barrier, 2 * chunk_bytes);
      arch::tensor_copy_2d(to, map, col, 0, barrier);
      arch::tensor_copy_2d(to + chunk_bytes, map, col + kChunkCols, 0, barrier);
      place.advance(1, plan.stages);
    }
  }
}

}  // namespace glyd::cuda
