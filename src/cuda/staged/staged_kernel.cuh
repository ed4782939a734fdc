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
        barriers_(barriers),
        lane_(lane),
        full_(barriers.free + params.plan.stages * 8 + decoder * kDecoderDepth * 8),
        ring_(shared + params.plan.ring_at + decoder * kDecoderDepth * params.plan.ring_stride),
        strip_at_(shared + decoder % T::kStrips * 2048),
        place_{decoder / T::kStrips},
        loader_(params, decoder) {
    arch::pin(window_);
#pragma unroll
    for (uint32_t step = 0; step < 4; ++step) store_at_[step] = swizzled_strip::row_of(lane, step);
  }

  // Weights do not depend on the grid before this one: they are on their way before its end is waited for. One record
  // each, so that x does not queue behind them all.
  __device__ __forceinline__ void start() {
    if (arch::elect_one()) {
#pragma unroll
      for (uint32_t i = 0; i < kDecoderDepth; ++i) arch::mbarrier_init(full_ + i * 8, 1);
      arch::mbarrier_fence_init();
    }
    __syncwarp();
    ask(0);
  }

  __device__ __forceinline__ void run() {
#pragma unroll
    for (uint32_t i = 1; i < kDecoderDepth; ++i) ask(i);
    uint32_t slot = 0, parity = 0;
#pragma unroll 1
    while (in_flight_ > 0) {
      arch::mbarrier_wait(full_ + slot * 8, parity);
      --in_flight_;
      decode(slot);
      place_.advance(params_.plan.turn, params_.plan.stages);
      if (++slot == kDecoderDepth) slot = 0, parity ^= 1;
    }
  }

 private:
  // The next record, if there is one, to the ring's place `slot`.
  __device__ __forceinline__ void ask(uint32_t slot) {
    if (!loader_.more()) return;
    if (__builtin_expect(params_.plan.tail_steps < fast::kRecordSteps, 0)) {
      tails_ = (tails_ & ~(1u << slot)) | (loader_.tail() ? 1u << slot : 0);
    }
    loader_.issue(ring_ + slot * params_.plan.ring_stride, full_ + slot * 8);
    ++in_flight_;
  }

  // The record in `slot` to its place in a stage, once that is free.
  __device__ __forceinline__ void decode(uint32_t slot) {
    const StagedPlan& plan = params_.plan;
    const uint32_t record = ring_ + slot * plan.ring_stride;
    const bool tail = (tails_ >> slot & 1) != 0;
    RecordWords words;
    PatchList patches;
    patches.load(record + fast::kRecordBytes, lane_);
    words.load(record, tail ? plan.tail_steps : fast::kRecordSteps, lane_);
    uint32_t a[2][16];
    decode_unpatched(words.chunks, window_, a);
    const bool crowded = patches.crowded();  // then more is to be read from the record
    if (__builtin_expect(!crowded, 1)) give_back(slot);
    arch::mbarrier_wait(barriers_.free + place_.index * 8, place_.parity ^ 1);  // at first all are free
    const uint32_t base = strip_at_ + place_.index * stage_weight_bytes(T::kStrips);
    store(base, a);
    __syncwarp();
    patches.each(lane_, record + fast::kRecordBytes, tail ? plan.tail_slot_copy : plan.slot_copy, plan.slot_entries,
                 Overflow{params_.overflow, params_.overflow_words},
                 [&](const Patch& patch) { patch_stage(base, patch); });
    if (__builtin_expect(crowded, 0)) give_back(slot);
    arch::shared_stores_fence();
    __syncwarp();
    if (arch::elect_one()) arch::mbarrier_arrive(barriers_.full + place_.index * 8);
  }

  // The record's place is free for another.
  __device__ __forceinline__ void give_back(uint32_t slot) {
    __syncwarp();
    ask(slot);
  }

  __device__ __forceinline__ void store(uint32_t base, const uint32_t (&a)[2][16]) const {
#pragma unroll
    for (uint32_t step = 0; step < 4; ++step) {
      const uint32_t at = base + store_at_[step];
      arch::store_matrix_x4(at, &a[0][4 * step]);
      arch::store_matrix_x4(at + T::kChunkBytes, &a[1][4 * step]);
    }
  }

  // Of the strip whose rows begin at `base`.
  __device__ __forceinline__ static void patch_stage(uint32_t base, const Patch& patch) {
    swizzled_strip::patch(base + (patch.place / fast::kChunkWeights != 0 ? T::kChunkBytes : 0), patch);
  }

  const StagedParams& params_;
  const StageBarriers& barriers_;
  uint32_t lane_, full_, ring_, strip_at_;
  uint32_t window_ = kWindowWord;  // in a register, so that masks can be immediate operands
  uint32_t store_at_[4];
  uint32_t in_flight_ = 0, tails_ = 0;  // records; a bit for each that is a strip's short last one
  StagePlace place_;                    // of the record to be decoded next
  StagedLoader<T> loader_;
};

// A multiplying warp: 16 tokens. Its instructions bound a step of few rows (480 clocks of 80 instructions with nothing
// else to run, 600 among decoders), so the next stage is asked about while this one is multiplied.
template <class T>
class Multiplier {
 public:
  __device__ __forceinline__ Multiplier(const StagedPlan& plan, const StageBarriers& barriers, uint32_t shared,
                                        uint32_t warp)
      : first_{arch::tile_descriptor_low(shared + plan.x_at + warp / 4 * kGroupTokens * 128),
               arch::tile_descriptor_low(shared), barriers.full},
        at_(first_),
        x_chunk_(staged_x_chunk_bytes(plan.x_rows) >> 4),
        to_free_(plan.stages * 8) {}

  __device__ __forceinline__ void multiply(const StagedTile& tile, float (&sums)[T::kGroups][4]) {
    // A split may begin or end inside a record.
    const bool late = tile.chunk_begin % kRecordChunks != 0, early = tile.chunk_end % kRecordChunks != 0;
    uint32_t left = tile.records, add = 0;
    if (late) {
      step<false, true>(sums, add);
      add = 1, --left;
    }
    const bool part = early && left > 0;
    if (part) --left;
#pragma unroll 1
    for (; left > 0; --left) {
      step<true, true>(sums, add);
      add = 1;
    }
    if (part) step<true, false>(sums, add);
    arch::warpgroup_wait<0>();
    if (arch::elect_one()) arch::mbarrier_arrive(before_);
    before_ = 0;
  }

 private:
  // As descriptors count.
  static constexpr uint32_t kStageWeights = stage_weight_bytes(T::kStrips) >> 4, kChunkWeights = T::kChunkBytes >> 4;

  // A stage: the low words of its descriptors, and the barrier of its being full.
  struct Stage {
    uint32_t x, w, full;
  };

  // The next stage's chunks. Products and their commit stand in one straight piece of code: behind branches the
  // compiler was seen to close the batch twice, and then the wait for the stage before may be one for this one.
  template <bool kFirst, bool kSecond>
  __device__ __forceinline__ void step(float (&sums)[T::kGroups][4], uint32_t add) {
    if (!ready_) arch::mbarrier_wait(at_.full, parity_);
    arch::warpgroup_fence();
    if constexpr (kFirst) multiply_chunk(sums, at_.x, at_.w, add);
    if constexpr (kSecond) multiply_chunk(sums, at_.x + x_chunk_, at_.w + kChunkWeights, kFirst ? 1 : add);
    arch::warpgroup_commit();
    const uint32_t free = at_.full + to_free_;
    at_.x += 2 * x_chunk_, at_.w += kStageWeights, at_.full += 8;
    if (at_.full == first_.full + to_free_) at_ = first_, parity_ ^= 1;
    ready_ = arch::mbarrier_test(at_.full, parity_);
    // The stage before is given back. (To wait for this one too was 30% slower in an earlier form.)
    arch::warpgroup_wait<1>();
    if (before_ != 0 && arch::elect_one()) arch::mbarrier_arrive(before_);
    before_ = free;
  }

  __device__ __forceinline__ static void multiply_chunk(float (&sums)[T::kGroups][4], uint32_t x, uint32_t w,
                                                        uint32_t add) {
#pragma unroll
    for (uint32_t step = 0; step < 4; ++step) {
      arch::multiply_staged<T::kRows>(&sums[0][0], x + 2 * step, w + 2 * step, step > 0 ? 1 : add);
    }
  }

  const Stage first_;
  Stage at_;
  uint32_t x_chunk_;  // as descriptors count
  uint32_t to_free_;  // from the barrier of a stage's being full to that of its being free
  uint32_t parity_ = 0;
  uint32_t before_ = 0;  // the barrier by which the stage before is given back
  bool ready_ = false;   // the stage at hand, as was seen
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
