// staged_kernel.cuh - y = x W^T from the packed bytes of `fast`, for 17 to 128 tokens, summed in cuBLAS's order.
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
  __device__ __forceinline__ Decoder(const StagedParams& params, const StageBarriers& barriers, uint32_t shared,
                                     uint32_t decoder, uint32_t lane)
      : params_(params),
        plan_(params.plan),
        barriers_(barriers),
        lane_(lane),
        full_(shared + params.plan.barriers_at + decoder * params.plan.depth * 8),
        ring_(shared + params.plan.ring_at + decoder * params.plan.depth * params.plan.ring_stride),
        stages_(shared),
        loader_(params, decoder),
        at_(params.plan, decoder) {
    // A strip's 16 rows of a stage: a step of 16 columns is two 16-byte pieces of each row. Matrix m = lane / 8 of a
    // step is rows 8 * (m % 2) ..., columns 8 * (m / 2) ...
    const uint32_t row = lane % 16, half = lane / 16;
#pragma unroll
    for (uint32_t step = 0; step < 4; ++step) store_at_[step] = row * 128 + (((2 * step + half) ^ (row & 7)) << 4);
  }

  // Weights do not depend on the grid before this one: they are on their way before its end is waited for. One record
  // each, so that x does not queue behind them all.
  __device__ __forceinline__ void start() {
    if (arch::elect_one()) {
#pragma unroll 1
      for (uint32_t i = 0; i < plan_.depth; ++i) arch::mbarrier_init(full_ + i * 8, 1);
      arch::mbarrier_fence_init();
    }
    __syncwarp();
    ask(0, 1);
  }

  __device__ __forceinline__ void run() {
    ask(1, plan_.depth);
    RingPlace place{plan_.stages};
    uint32_t before = 0, slot = 0, parity = 0;  // before: the record of `place`
#pragma unroll 1
    for (; at_.more(plan_); at_.next(plan_)) {
      arch::mbarrier_wait(full_ + slot * 8, parity);
      const uint32_t number = at_.tile_first + at_.record;
      place.advance(number - before);
      before = number;
      decode(slot, place, number >= plan_.stages);
      if (++slot == plan_.depth) slot = 0, parity ^= 1;
    }
  }

 private:
  __device__ __forceinline__ void ask(uint32_t begin, uint32_t end) {
#pragma unroll 1
    for (uint32_t i = begin; i < end; ++i) loader_.issue(ring_ + i * plan_.ring_stride, full_ + i * 8);
  }

  // The record of `at_` to its place in a stage, once that is free.
  __device__ __forceinline__ void decode(uint32_t slot, const RingPlace& place, bool used) {
    const uint32_t record = ring_ + slot * plan_.ring_stride;
    const bool tail = at_.tile.record_begin + at_.record + 1 == plan_.records && plan_.tail_steps < fast::kRecordSteps;
    RecordWords words;
    PatchList patches;
    patches.load(record + fast::kRecordBytes, lane_);
    words.load(record, tail ? plan_.tail_steps : fast::kRecordSteps, lane_);
    uint32_t a[2][16];
#pragma unroll
    for (uint32_t c = 0; c < 2; ++c) {
      decode_unpatched(words.chunks[c], a[c]);
#pragma unroll
      for (uint32_t r = 0; r < 16; ++r) arch::pin(a[c][r]);
    }
    const bool crowded = patches.crowded();  // then more is to be read from the record
    if (__builtin_expect(!crowded, 1)) give_back(slot);
    if (used) arch::mbarrier_wait(barriers_.free + place.index * 8, place.parity ^ 1);
    const uint32_t base = stages_ + place.index * stage_weight_bytes(T::kStrips) + at_.strip * 2048;
    store(base, a);
    __syncwarp();
    patches.each(lane_, record + fast::kRecordBytes, tail ? plan_.tail_slot_copy : plan_.slot_copy, plan_.slot_entries,
                 Overflow{params_.overflow, params_.overflow_words},
                 [&](const Patch& patch) { patch_stage(base, patch); });
    if (__builtin_expect(crowded, 0)) give_back(slot);
    arch::shared_stores_fence();
    __syncwarp();
    if (arch::elect_one()) arch::mbarrier_arrive(barriers_.full + place.index * 8);
  }

  // The record's place is free for another.
  __device__ __forceinline__ void give_back(uint32_t slot) {
    __syncwarp();
    loader_.issue(ring_ + slot * plan_.ring_stride, full_ + slot * 8);
  }

  __device__ __forceinline__ void store(uint32_t base, const uint32_t (&a)[2][16]) const {
#pragma unroll
    for (uint32_t c = 0; c < 2; ++c) {
#pragma unroll
      for (uint32_t step = 0; step < 4; ++step) {
        arch::store_matrix_x4(base + c * T::kChunkBytes + store_at_[step], &a[c][4 * step]);
      }
    }
  }

  // The upper exponent bits of one weight of the strip whose rows begin at `base`: in the high byte of its bf16.
  __device__ __forceinline__ static void patch_stage(uint32_t base, const Patch& patch) {
    const uint32_t place = patch.place % fast::kChunkWeights, chunk = patch.place / fast::kChunkWeights;
    const uint32_t row = fast::place_row(place), col = fast::place_col(0, place);
    const uint32_t at = base + chunk * T::kChunkBytes + row * 128 + (((col / 8) ^ (row & 7)) << 4) + col % 8 * 2 + 1;
    arch::store_shared_1(at, (arch::load_shared_1(at) & 0x83) | patch.byte);
  }

  const StagedParams& params_;
  const StagedPlan& plan_;
  const StageBarriers& barriers_;
  uint32_t lane_, full_, ring_, stages_;
  uint32_t store_at_[4];
  StagedLoader loader_;
  DecoderRecords at_;
};

// A multiplying warp: 16 tokens. Its instructions bound a step of few rows (480 clocks of 80 instructions with nothing
// else to run, 600 among decoders), so the next stage is asked about while this one is multiplied.
template <class T>
class Multiplier {
 public:
  __device__ __forceinline__ Multiplier(const StagedPlan& plan, const StageBarriers& barriers, uint32_t shared,
                                        uint32_t warp)
      : barriers_(barriers),
        x_(arch::tile_descriptor_low(shared + plan.x_at + warp / 4 * kGroupTokens * 128)),
        w_(arch::tile_descriptor_low(shared)),
        x_chunk_(staged_x_chunk_bytes(plan.x_rows) >> 4),
        stages_(plan.stages) {}

  __device__ __forceinline__ void multiply(const StagedTile& tile, float (&sums)[T::kGroups][4]) {
    // A split may begin or end inside a record.
    const uint32_t whole_begin = tile.chunk_begin % kRecordChunks;
    const uint32_t whole = tile.records - whole_begin - tile.chunk_end % kRecordChunks;
    uint32_t before = 0;  // the barrier by which the stage before is given back
#pragma unroll 1
    for (uint32_t i = 0; i < tile.records; ++i) {
      const uint32_t free = barriers_.free + index_ * 8;
      if (!ready_) arch::mbarrier_wait(barriers_.full + index_ * 8, parity_);
      const uint32_t x = x_ + index_ * (2 * x_chunk_), w = w_ + index_ * kStageWeights;
      arch::warpgroup_fence();
      if (__builtin_expect(i - whole_begin < whole, 1)) {
        multiply_chunk(sums, x, w, i > 0);
        multiply_chunk(sums, x + x_chunk_, w + kChunkWeights, true);
      } else if (i < whole_begin) {
        multiply_chunk(sums, x + x_chunk_, w + kChunkWeights, false);
      } else {
        multiply_chunk(sums, x, w, i > 0);
      }
      arch::warpgroup_commit();
      if (++index_ == stages_) index_ = 0, parity_ ^= 1;
      ready_ = arch::mbarrier_test(barriers_.full + index_ * 8, parity_);
      // The stage before is given back. (To wait for this one too, so that it goes back at once: 30% slower.)
      arch::warpgroup_wait<1>();
      if (i > 0 && arch::elect_one()) arch::mbarrier_arrive(before);
      before = free;
    }
    arch::warpgroup_wait<0>();
    if (arch::elect_one()) arch::mbarrier_arrive(before);
  }

 private:
  // As descriptors count.
  static constexpr uint32_t kStageWeights = stage_weight_bytes(T::kStrips) >> 4, kChunkWeights = T::kChunkBytes >> 4;

  __device__ __forceinline__ static void multiply_chunk(float (&sums)[T::kGroups][4], uint32_t x, uint32_t w,
                                                        bool add) {
#pragma unroll
    for (uint32_t step = 0; step < 4; ++step) {
      arch::multiply_staged<T::kRows>(&sums[0][0], x + 2 * step, w + 2 * step, step > 0 || add);
    }
  }

  const StageBarriers& barriers_;
  uint32_t x_, w_;    // of the first stage
  uint32_t x_chunk_;  // as descriptors count
  uint32_t stages_, index_ = 0, parity_ = 0;
  bool ready_ = false;  // the stage at hand, as was seen
};

template <class T>
__device__ __forceinline__ void multiply_stages(const StagedParams& params, const StageBarriers& barriers,
                                                uint32_t shared, uint32_t warp, uint32_t lane) {
  const StagedPlan& plan = params.plan;
  Multiplier<T> multiplier(plan, barriers, shared, warp);
#pragma unroll 1
  for (uint32_t index = blockIdx.x; index < plan.tiles; index += plan.blocks) {
    const StagedTile tile = StagedTile::at(plan, index);
    float sums[T::kGroups][4];
    multiplier.multiply(tile, sums);
    finish_staged<T>(params, tile, warp, lane, sums);
  }
}

template <class T>
__global__ void __launch_bounds__(T::kThreads, 1)
    staged_sm90(const __grid_constant__ StagedParams params, const __grid_constant__ CUtensorMap x_map) {
  extern __shared__ __align__(1024) uint8_t storage[];
  const StagedPlan& plan = params.plan;
  const uint32_t shared = arch::shared_address(storage);
  const uint32_t warp = __shfl_sync(~0u, threadIdx.x / 32, 0), lane = threadIdx.x % 32;
  const StageBarriers barriers(plan, shared);
  constexpr uint32_t kFirstDecoder = T::kMultipliers + 1;
  const bool multiplies = warp < T::kMultipliers, decodes = warp >= kFirstDecoder;
  if (warp == 1 && arch::elect_one()) arch::prefetch_tensor_map(&x_map);
  Decoder<T> decoder(params, barriers, shared, decodes ? warp - kFirstDecoder : 0, lane);
  if (decodes) decoder.start();
  if (warp == 0) barriers.initialise(plan, T::kStrips, T::kMultipliers, lane);
  if (params.early) arch::grid_dependency_launch();
  __syncwarp();
  __syncthreads();
  if (decodes) {
    decoder.run();
  } else if (multiplies) {
    multiply_stages<T>(params, barriers, shared, warp, lane);
  } else if (arch::elect_one()) {
    arch::grid_dependency_wait();
    fetch_staged_x(plan, &x_map, shared + plan.x_at, barriers);
  }
}

}  // namespace glyd::cuda
