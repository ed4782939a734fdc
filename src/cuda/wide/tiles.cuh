// tiles.cuh - which tiles a block has, and which records of them a warp.
#pragma once

#include "arch/bulk_copy.cuh"
#include "arch/mbarrier.cuh"
#include "arch/synchronize.cuh"
#include "decode/fast_chunk.hpp"
#include "wide/wide_params.hpp"

namespace glyd::cuda {

struct Tile {
  uint32_t rows_index, split, token_tile;
  uint32_t chunk_begin, chunk_end;  // of its split
  uint32_t record_begin, records;   // that hold them: the first and last may reach into other splits

  __device__ __forceinline__ static Tile at(const WidePlan& plan, uint32_t index) {
    Tile tile{index, 0, 0, 0, plan.chunks, 0, plan.records};
    if (plan.token_tiles > 1) {
      tile.rows_index = index / plan.token_tiles;
      tile.token_tile = index - tile.rows_index * plan.token_tiles;
    }
    if (plan.splits > 1) {
      const uint32_t rows_index = tile.rows_index / plan.splits;
      tile.split = tile.rows_index - rows_index * plan.splits;
      tile.rows_index = rows_index;
      tile.chunk_begin = tile.split * plan.split_chunks;
      tile.chunk_end = min(plan.chunks, tile.chunk_begin + plan.split_chunks);
      tile.record_begin = tile.chunk_begin / kRecordChunks;
      tile.records = (tile.chunk_end + kRecordChunks - 1) / kRecordChunks - tile.record_begin;
    }
    if (plan.cluster > 1) tile.rows_index = tile.rows_index * plan.cluster + arch::block_in_cluster();
    return tile;
  }

  // The tiles of this block's cluster: first(), first() + plan.clusters, ...
  __device__ __forceinline__ static uint32_t first(const WidePlan& plan) { return blockIdx.x / plan.cluster; }
};

// A warp's strip in a tile. Strips behind the last stand for it: their sums are dropped.
__device__ __forceinline__ uint32_t strip_of(const WidePlan& plan, const Tile& tile, uint32_t group, uint32_t warp) {
  return (tile.rows_index * plan.groups + group) * 4 + warp;
}

// Walks a warp's records in the order in which it multiplies them, and starts their copies.
class TileLoader {
 public:
  __device__ __forceinline__ TileLoader(const WideParams& params, uint32_t group, uint32_t warp)
      : params_(params), group_(group), warp_(warp), tile_(Tile::first(params.plan)) {
    enter_tile();
  }

  __device__ __forceinline__ void issue(uint32_t slot, uint32_t barrier) {
    const WidePlan& plan = params_.plan;
    if (tile_ >= plan.tiles) return;
    if (arch::elect_one()) {
      const bool tail = next_ == tail_;
      const uint32_t plane_bytes = tail ? plan.tail_plane_bytes : fast::kRecordBytes;
      const uint32_t slot_bytes = tail ? plan.tail_slot_copy : plan.slot_copy;
      arch::mbarrier_arrive_expect(barrier, plane_bytes + slot_bytes);
      if (plan.weights_once) {
        arch::bulk_copy_hinted(slot, planes_, plane_bytes, barrier, arch::kEvictFirst);
      } else {
        arch::bulk_copy(slot, planes_, plane_bytes, barrier);
      }
      arch::bulk_copy(slot + fast::kRecordBytes, slots_, slot_bytes, barrier);
    }
    planes_ += fast::kRecordBytes;
    slots_ += plan.slot_stride;
    ++next_;
    if (__builtin_expect(next_ >= records_, 0)) {
      tile_ += plan.clusters;
      enter_tile();
    }
  }

 private:
  __device__ __forceinline__ void enter_tile() {
    const WidePlan& plan = params_.plan;
    if (tile_ >= plan.tiles) return;
    const Tile tile = Tile::at(plan, tile_);
    next_ = 0;
    records_ = tile.records;
    tail_ = plan.tail_steps < fast::kRecordSteps ? plan.records - 1 - tile.record_begin : ~0u;
    const uint64_t record = tile.record_begin;
    const uint64_t strip = min(strip_of(plan, tile, group_, warp_), plan.strips - 1);
    planes_ = params_.planes + strip * plan.strip_bytes + record * fast::kRecordBytes;
    slots_ = params_.slots + strip * plan.strip_slot_bytes + record * plan.slot_stride;
  }

  const WideParams& params_;
  uint32_t group_, warp_, tile_;
  uint32_t next_ = 0, records_ = 0, tail_ = ~0u;  // records of the tile
  const uint8_t* planes_ = nullptr;
  const uint8_t* slots_ = nullptr;
};

// Chunks of x in shared memory: the n-th chunk that the block needs is in stage n % x_stages.
struct XStages {
  uint32_t base, full, empty, stages, shift;

  __device__ __forceinline__ XStages(const WidePlan& plan, uint32_t shared)
      : base(shared),
        full(shared + plan.barriers_at + plan.workers() * plan.depth * 8),
        empty(full + plan.x_stages * 8),
        stages(plan.x_stages),
        shift(plan.x_shift) {}

  __device__ __forceinline__ uint32_t stage(uint32_t n) const { return n & (stages - 1); }
  __device__ __forceinline__ uint32_t parity(uint32_t n) const { return n >> shift & 1; }
};

// Fetches every chunk of x that the block needs, in order; by one thread. In a cluster each block fetches its part of
// the tokens for all.
template <class T>
__device__ __forceinline__ void fetch_x(const WidePlan& plan, const CUtensorMap* map, const XStages& x) {
  const uint32_t rank = plan.cluster > 1 ? arch::block_in_cluster() : 0, part = T::kTokens / plan.cluster * rank;
  uint32_t n = 0;
#pragma unroll 1
  for (uint32_t index = Tile::first(plan); index < plan.tiles; index += plan.clusters) {
    const Tile tile = Tile::at(plan, index);
    const uint32_t token = tile.token_tile * T::kTokens + part;
#pragma unroll 1
    for (uint32_t chunk = tile.chunk_begin; chunk < tile.chunk_end; ++chunk, ++n) {
      if (n >= x.stages) arch::mbarrier_wait(x.empty + x.stage(n) * 8, x.parity(n) ^ 1);
      const uint32_t barrier = x.full + x.stage(n) * 8, to = x.base + x.stage(n) * T::kXStageBytes + part * 128;
      arch::mbarrier_arrive_expect(barrier, T::kXStageBytes);
      if (plan.cluster > 1) {
        arch::tensor_copy_2d_cluster(to, map, chunk * kChunkCols, token, barrier, (1u << plan.cluster) - 1);
      } else {
        arch::tensor_copy_2d(to, map, chunk * kChunkCols, token, barrier);
      }
    }
  }
}

}  // namespace glyd::cuda
