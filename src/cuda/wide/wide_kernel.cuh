// wide_kernel.cuh - y = x W^T from the packed bytes of `fast`, for 17 tokens and more, summed in cuBLAS's order.
// docs/adr/0011-wide-product.md.
//
// A warp fetches and decodes the records of a strip of 16 rows, and its registers are at once the tensor core's
// operand: four warps multiply 64 rows together, by all tokens of the tile, whose x lies in shared memory for the whole
// block. The tensor core works on one chunk of 64 columns while the warps decode the next.
#pragma once

#include "arch/warpgroup.cuh"
#include "decode/fast_record.cuh"
#include "wide/wide_epilogue.cuh"

namespace glyd::cuda {

// A warp that multiplies, one of four of a warpgroup. Two steps, with the block's barrier between them.
template <class T>
class WideWorker {
 public:
  __device__ __forceinline__ WideWorker(const WideParams& params, uint32_t shared, uint32_t worker, uint32_t lane)
      : params_(params),
        plan_(params.plan),
        group_(worker / 4),
        warp_(worker % 4),
        lane_(lane),
        full_(shared + params.plan.barriers_at + worker * params.plan.depth * 8),
        ring_(shared + params.plan.ring_at + worker * params.plan.depth * params.plan.ring_stride),
        scratch_at_(shared + params.plan.scratch_at + worker * PatchScratch::kBytes),
        loader_(params, group_, warp_),
        scratch_(scratch_at_, lane),
        x_(params.plan, shared),
        cluster_(params.plan.cluster),
        x_empty_(arch::mbarrier_in_block(x_.empty, lane < params.plan.cluster ? lane : 0)) {
    arch::pin(x_empty_);
  }

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
    uint32_t x_before = 0;  // chunks of x of the tiles before
#pragma unroll 1
    for (uint32_t index = Tile::first(plan_); index < plan_.tiles; index += plan_.clusters) {
      const Tile tile = Tile::at(plan_, index);
      float sums[T::kTiles][4];
      multiply_tile(tile, x_before, sums);
      finish(tile, sums);
      x_before += tile.chunk_end - tile.chunk_begin;
    }
  }

 private:
  // Waits for the next record and applies its patches.
  __device__ __forceinline__ void begin_record(const Tile& tile, uint32_t i) {
    record_ = ring_ + slot_ * plan_.ring_stride;
    barrier_ = full_ + slot_ * 8;
    arch::mbarrier_wait(barrier_, parity_);
    __syncwarp();
    if (++slot_ == plan_.depth) slot_ = 0, parity_ ^= 1;
    const bool tail = tile.record_begin + i + 1 == plan_.records && plan_.tail_steps < fast::kRecordSteps;
    words_.load(record_, tail ? plan_.tail_steps : fast::kRecordSteps, lane_);
    scratch_.apply(record_ + fast::kRecordBytes, tail ? plan_.tail_slot_copy : plan_.slot_copy, plan_.slot_entries,
                   Overflow{params_.overflow, params_.overflow_words});
    __syncwarp();
  }

  // All of the record is in registers: its place is free for another.
  __device__ __forceinline__ void end_record() {
    __syncwarp();
    loader_.issue(record_, barrier_);
    scratch_.undo();
  }

  template <uint32_t kStep>
  __device__ __forceinline__ void multiply_step(float (&sums)[T::kTiles][4], const ChunkWords& words,
                                                const uint32_t (&upper)[8], uint32_t (&a)[16], uint64_t x,
                                                uint32_t add) const {
    decode_step<kStep>(words.low, words.high, upper, a + 4 * kStep);
#pragma unroll
    for (uint32_t r = 0; r < 4; ++r) arch::pin(a[4 * kStep + r]);
    arch::warpgroup_fence();
    arch::multiply_async<T::kTokens>(&sums[0][0], a + 4 * kStep, x + 2 * kStep, add);
  }

  // Decodes a chunk of the record and multiplies it by the n-th chunk of x, step by step: the tensor core works on one
  // step of 16 columns while the next are decoded. In flight when it returns.
  __device__ __forceinline__ void multiply(float (&sums)[T::kTiles][4], uint32_t chunk, uint32_t (&a)[16], uint32_t n,
                                           uint32_t add) const {
    const uint32_t stage = x_.stage(n);
    const uint64_t x = arch::tile_descriptor(x_.base + stage * T::kXStageBytes);
    uint32_t upper[8];
    scratch_.read(chunk, upper);
    arch::mbarrier_wait(x_.full + stage * 8, x_.parity(n));
    const ChunkWords& words = words_.chunks[chunk];
    multiply_step<0>(sums, words, upper, a, x, add);
    multiply_step<1>(sums, words, upper, a, x, 1);
    multiply_step<2>(sums, words, upper, a, x, 1);
    multiply_step<3>(sums, words, upper, a, x, 1);
    arch::warpgroup_commit();
  }

  // Every block of the cluster writes to this block's stages of x, so every one must know that one is free.
  __device__ __forceinline__ void release_x(uint32_t n) const {
    if (lane_ < cluster_) arch::mbarrier_arrive_in_cluster(x_empty_ + x_.stage(n) * 8);
  }

  // The tensor core is a chunk behind the decoding, and the next record's words are on their way while it works.
  __device__ __forceinline__ void multiply_tile(const Tile& tile, uint32_t x_before, float (&sums)[T::kTiles][4]) {
    uint32_t a[2][16];
    uint32_t n = x_before;
    const uint32_t skipped = tile.chunk_begin & 1;  // the split begins inside a record
    if (tile.records > 0) begin_record(tile, 0);
#pragma unroll 1
    for (uint32_t i = 0; i < tile.records; ++i) {
      const bool two = (i > 0 || skipped == 0), whole = (tile.record_begin + i) * kRecordChunks + 1 < tile.chunk_end;
      if (__builtin_expect(two, 1)) {
        multiply(sums, 0, a[0], n, n != x_before);
        arch::warpgroup_wait<1>();
        if (n != x_before) release_x(n - 1);
        ++n;
      }
      if (__builtin_expect(whole, 1)) multiply(sums, 1, a[1], n, n != x_before);
      end_record();
      if (i + 1 < tile.records) begin_record(tile, i + 1);
      if (__builtin_expect(whole, 1)) {
        arch::warpgroup_wait<1>();
        if (n != x_before) release_x(n - 1);
        ++n;
      }
    }
    arch::warpgroup_wait<0>();
    if (n != x_before) release_x(n - 1);
  }

  __device__ __forceinline__ void finish(const Tile& tile, float (&sums)[T::kTiles][4]) const {
    const uint32_t strip = strip_of(plan_, tile, group_, warp_);
    if (strip >= plan_.strips) return;
    if (plan_.splits > 1 && !sum_wide_splits<T>(params_, tile, strip, lane_, sums)) return;
    store_wide_outputs<T>(params_, tile, strip, lane_, scratch_at_, sums);
    scratch_.fill();
    __syncwarp();
  }

  const WideParams& params_;
  const WidePlan& plan_;
  uint32_t group_, warp_, lane_, full_, ring_, scratch_at_;
  TileLoader loader_;
  PatchScratch scratch_;
  XStages x_;
  uint32_t cluster_, x_empty_;  // x_empty_: in the block of the cluster that this lane tells
  uint32_t slot_ = 0, parity_ = 0;
  uint32_t record_ = 0, barrier_ = 0;  // the record at hand
  RecordWords words_;
};

__device__ __forceinline__ void sync_blocks(const WidePlan& plan) {
  if (plan.cluster > 1) {
    arch::cluster_sync();
  } else {
    __syncthreads();
  }
}

template <class T>
__global__ void __launch_bounds__(T::kMostThreads, 1)
    wide_sm90(const __grid_constant__ WideParams params, const __grid_constant__ CUtensorMap x_map) {
  extern __shared__ __align__(1024) uint8_t storage[];
  const WidePlan& plan = params.plan;
  const uint32_t shared = arch::shared_address(storage);
  const uint32_t warp = __shfl_sync(~0u, threadIdx.x / 32, 0);
  const bool works = warp < plan.workers(), fetches = warp == plan.workers();
  WideWorker<T> worker(params, shared, works ? warp : 0, threadIdx.x % 32);
  const XStages x(plan, shared);
  if (works) {
    worker.start();
  } else if (fetches && arch::elect_one()) {
#pragma unroll 1
    for (uint32_t i = 0; i < plan.x_stages; ++i) {
      arch::mbarrier_init(x.full + i * 8, 1);
      arch::mbarrier_init(x.empty + i * 8, plan.groups * 4 * plan.cluster);
    }
    arch::mbarrier_fence_init();
    arch::prefetch_tensor_map(&x_map);
  }
  __syncwarp();
  sync_blocks(plan);
  if (works) {
    if constexpr (T::kShareRegisters) arch::take_registers<T::kWorkRegisters>();
    worker.run();
  } else {
    if constexpr (T::kShareRegisters) arch::give_registers<T::kFetchRegisters>();
    if (fetches && arch::elect_one()) {
      arch::grid_dependency_wait();
      fetch_x<T>(plan, &x_map, x);
    }
  }
  // No block may go while others still write to its shared memory.
  __syncwarp();
  if (plan.cluster > 1) arch::cluster_sync();
}

}  // namespace glyd::cuda
