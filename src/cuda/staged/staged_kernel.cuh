// staged_kernel.cuh - y = x W^T from the packed bytes of `fast`, for 17 to 64 tokens, summed in cuBLAS's order.
// docs/adr/0011-many-tokens.md.
#pragma once

#include "arch/matrix.cuh"
#include "arch/warpgroup.cuh"
#include "decode/fast_record.cuh"
#include "staged/staged_epilogue.cuh"

namespace glyd::cuda {

// A warp that decodes.
template <class T>
class Decoder {
 public:
  __device__ __forceinline__ Decoder(const StagedParams& params, uint32_t shared, uint32_t decoder, uint32_t lane)
      : params_(params),
        plan_(params.plan),
        shared_(shared),
        decoder_(decoder),
        lane_(lane),
        full_(shared + params.plan.barriers_at + decoder * params.plan.depth * 8),
        ring_(shared + params.plan.ring_at + decoder * params.plan.depth * params.plan.ring_stride),
        loader_(params, decoder),
        scratch_(shared + params.plan.scratch_at + decoder * PatchScratch::kBytes, lane),
        barriers_(params.plan, shared) {}

  // Weights do not depend on the grid before this one: they are on their way before its end is waited for.
  __device__ __forceinline__ void start() {
    if (arch::elect_one()) {
#pragma unroll 1
      for (uint32_t i = 0; i < plan_.depth; ++i) arch::mbarrier_init(full_ + i * 8, 1);
      arch::mbarrier_fence_init();
    }
    __syncwarp();
#pragma unroll 1
    for (uint32_t i = 0; i < plan_.depth; ++i) loader_.issue(ring_ + i * plan_.ring_stride, full_ + i * 8);
    if (params_.early) arch::grid_dependency_launch();
    scratch_.fill();
  }

  __device__ __forceinline__ void run() {
    RingPlace place{plan_.stages};
    DecoderRecords mine(plan_, decoder_);
    uint32_t tile_first = 0, at = 0;  // records of all tiles before; the one of `place`
    uint32_t slot = 0, parity = 0;
#pragma unroll 1
    for (uint32_t index = blockIdx.x; index < plan_.tiles; index += plan_.blocks) {
      const StagedTile tile = StagedTile::at(plan_, index);
#pragma unroll 1
      for (; mine.record < tile.records; mine.next(plan_)) {
        const uint32_t record = ring_ + slot * plan_.ring_stride, barrier = full_ + slot * 8;
        arch::mbarrier_wait(barrier, parity);
        __syncwarp();
        if (++slot == plan_.depth) slot = 0, parity ^= 1;
        uint32_t a[2][16];
        decode(tile.record_begin + mine.record, record, a);
        __syncwarp();
        loader_.issue(record, barrier);
        scratch_.undo();

        place.advance(tile_first + mine.record - at);
        at = tile_first + mine.record;
        if (at >= plan_.stages) {
          arch::mbarrier_wait(barriers_.free + place.index * 8, place.parity ^ 1);
        }
        store(place.index, mine.strip, a);
        arch::shared_stores_fence();
        __syncwarp();
        if (arch::elect_one()) arch::mbarrier_arrive(barriers_.weights + place.index * 8);
      }
      mine.record -= tile.records;
      tile_first += tile.records;
    }
  }

 private:
  __device__ __forceinline__ void decode(uint32_t number, uint32_t record, uint32_t (&a)[2][16]) {
    const bool tail = number + 1 == plan_.records && plan_.tail_steps < fast::kRecordSteps;
    const uint32_t steps = tail ? plan_.tail_steps : fast::kRecordSteps;
    RecordWords words;
    words.load(record, steps, lane_);
    scratch_.apply(record + fast::kRecordBytes, tail ? plan_.tail_slot_copy : plan_.slot_copy, plan_.slot_entries,
                   Overflow{params_.overflow, params_.overflow_words});
    __syncwarp();
#pragma unroll
    for (uint32_t c = 0; c < 2; ++c) {
      uint32_t upper[8];
      scratch_.read(c, upper);
      decode_chunk(words.chunks[c].low, words.chunks[c].high, upper, a[c]);
    }
  }

  // A strip's 16 rows of a stage: a step of 16 columns is two 16-byte pieces of each row. Matrix m = lane / 8 of a step
  // is rows 8 * (m % 2) ..., columns 8 * (m / 2) ...
  __device__ __forceinline__ void store(uint32_t stage, uint32_t strip, const uint32_t (&a)[2][16]) const {
    const uint32_t row = strip * 16 + lane_ % 16, half = lane_ / 16;
    const uint32_t base = shared_ + stage * stage_weight_bytes(T::kStrips) + row * 128;
#pragma unroll
    for (uint32_t c = 0; c < 2; ++c) {
#pragma unroll
      for (uint32_t step = 0; step < 4; ++step) {
        arch::store_matrix_x4(base + c * T::kChunkBytes + (((2 * step + half) ^ (row & 7)) << 4), &a[c][4 * step]);
      }
    }
  }

  const StagedParams& params_;
  const StagedPlan& plan_;
  uint32_t shared_, decoder_, lane_, full_, ring_;
  StagedLoader loader_;
  PatchScratch scratch_;
  StageBarriers barriers_;
};

// A warp of the four that multiply: 16 tokens.
template <class T>
__device__ __forceinline__ void multiply_stages(const StagedParams& params, uint32_t shared, uint32_t warp,
                                                uint32_t lane) {
  const StagedPlan& plan = params.plan;
  const StageBarriers barriers(plan, shared);
  const uint32_t x_chunk_bytes = staged_x_chunk_bytes(plan.x_rows);
  RingPlace place{plan.stages};
  uint32_t before = 0;  // the barrier by which the stage before is given back
#pragma unroll 1
  for (uint32_t index = blockIdx.x; index < plan.tiles; index += plan.blocks) {
    const StagedTile tile = StagedTile::at(plan, index);
    float sums[T::kGroups][4];
#pragma unroll 1
    for (uint32_t i = 0; i < tile.records; ++i) {
      const uint32_t chunk = (tile.record_begin + i) * kRecordChunks;
      const uint32_t w_at = shared + place.index * stage_weight_bytes(T::kStrips);
      const uint32_t x_at = shared + plan.x_at + place.index * 2 * x_chunk_bytes;
      arch::mbarrier_wait(barriers.x + place.index * 8, place.parity);
      arch::mbarrier_wait(barriers.weights + place.index * 8, place.parity);
      arch::warpgroup_fence();
#pragma unroll
      for (uint32_t c = 0; c < 2; ++c) {
        // A split may begin or end inside the record.
        if (chunk + c < tile.chunk_begin || chunk + c >= tile.chunk_end) continue;
        const uint64_t x_tile = arch::tile_descriptor(x_at + c * x_chunk_bytes);
        const uint64_t w_tile = arch::tile_descriptor(w_at + c * T::kChunkBytes);
        const bool first = chunk + c == tile.chunk_begin;
#pragma unroll
        for (uint32_t step = 0; step < 4; ++step) {
          arch::multiply_staged<T::kRows>(&sums[0][0], x_tile + 2 * step, w_tile + 2 * step, step > 0 || !first);
        }
      }
      arch::warpgroup_commit();
      // The stage before is given back. (To wait for this one too, so that it goes back at once: 30% slower.)
      arch::warpgroup_wait<1>();
      if (i > 0 && arch::elect_one()) arch::mbarrier_arrive(before);
      before = barriers.free + place.index * 8;
      place.advance(1);
    }
    arch::warpgroup_wait<0>();
    if (arch::elect_one()) arch::mbarrier_arrive(before);
    finish_staged<T>(params, tile, warp, lane, sums);
  }
}

template <class T>
__global__ void __launch_bounds__(kStagedThreads, 1)
    staged_sm90(const __grid_constant__ StagedParams params, const __grid_constant__ CUtensorMap x_map) {
  extern __shared__ __align__(1024) uint8_t storage[];
  const StagedPlan& plan = params.plan;
  const uint32_t shared = arch::shared_address(storage);
  const uint32_t warp = __shfl_sync(~0u, threadIdx.x / 32, 0), lane = threadIdx.x % 32;
  const StageBarriers barriers(plan, shared);
  const bool fetches = warp == kMultipliers + plan.decoders;
  const bool decodes = warp >= kMultipliers && !fetches;
  Decoder<T> decoder(params, shared, decodes ? warp - kMultipliers : 0, lane);
  if (decodes) decoder.start();
  if (fetches && arch::elect_one()) {
#pragma unroll 1
    for (uint32_t i = 0; i < plan.stages; ++i) {
      arch::mbarrier_init(barriers.weights + i * 8, T::kStrips);
      arch::mbarrier_init(barriers.x + i * 8, 1);
      arch::mbarrier_init(barriers.free + i * 8, kMultipliers);
    }
    arch::mbarrier_fence_init();
    arch::prefetch_tensor_map(&x_map);
  }
  __syncwarp();
  __syncthreads();
  if (decodes) {
    decoder.run();
  } else if (!fetches) {
    multiply_stages<T>(params, shared, warp, lane);
  } else if (arch::elect_one()) {
    arch::grid_dependency_wait();
    fetch_staged_x(plan, &x_map, shared + plan.x_at, barriers);
  }
}

}  // namespace glyd::cuda
