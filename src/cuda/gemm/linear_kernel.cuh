// linear_kernel.cuh - y = x W^T from the packed bytes of `fast`, for 1-64 tokens, summed in cuBLAS's order.
// docs/adr/0010-fused-product.md.
//
// Every warp but one fetches, decodes and multiplies records of its own (16 rows by 128 k): no weight passes through
// shared memory twice, and no warp waits for another's decoding. What passes from warp to warp, in ascending k, is the
// fp32 sums. One warp fetches x for all.
#pragma once

#include "decode/fast_record.cuh"
#include "gemm/epilogue.cuh"
#include "gemm/hand_over.cuh"
#include "gemm/record_loader.cuh"
#include "gemm/split_sum.cuh"
#include "gemm/x_loader.cuh"

namespace glyd::cuda {

// One record on its way from shared memory into the sums.
template <class T>
struct RecordProduct {
  uint32_t a[2][16];
  uint32_t b[T::kHoldX ? 2 : 1][T::kHoldX ? T::kTiles : 1][8];

  // Chunk `chunk` of a record, whose patches are in `scratch`.
  __device__ __forceinline__ void decode(uint32_t chunk, const ChunkWords& words, const PatchScratch& scratch) {
    uint32_t upper[8];
    scratch.read(chunk, upper);
    decode_chunk(words.low, words.high, upper, a[chunk]);
  }

  __device__ __forceinline__ void load_x(const XReader<T>& x) {
#pragma unroll
    for (uint32_t chunk = 0; chunk < 2; ++chunk) {
#pragma unroll
      for (uint32_t t = 0; t < T::kTiles; ++t) {
        x.load(chunk, t, 0, &b[chunk][t][0]);
        x.load(chunk, t, 1, &b[chunk][t][4]);
      }
    }
  }

  // In ascending k; x operands held, or read as they are needed.
  __device__ __forceinline__ void multiply(const XReader<T>& x, uint32_t chunk, float (&sums)[T::kTiles][4]) const {
    if constexpr (T::kHoldX) {
#pragma unroll
      for (uint32_t step = 0; step < 4; ++step) {
#pragma unroll
        for (uint32_t t = 0; t < T::kTiles; ++t) {
          arch::mma_m16n8k16(sums[t], &a[chunk][4 * step], &b[chunk][t][2 * step]);
        }
      }
    } else {
#pragma unroll
      for (uint32_t half = 0; half < 2; ++half) {
#pragma unroll
        for (uint32_t t = 0; t < T::kTiles; ++t) {
          uint32_t two_steps[4];
          x.load(chunk, t, half, two_steps);
          arch::mma_m16n8k16(sums[t], &a[chunk][8 * half], &two_steps[0]);
          arch::mma_m16n8k16(sums[t], &a[chunk][8 * half + 4], &two_steps[2]);
        }
      }
    }
  }
};

// What a warp does with its sums around a record.
enum SumsFlags : uint32_t { kWaitTurn = 1, kLoadSums = 2, kSendSums = 4, kPassTurn = 8, kSumsWhole = 16 };

// A warp that multiplies. Two steps, with the block's barrier between them.
template <class T>
class Worker {
 public:
  __device__ __forceinline__ Worker(const LinearParams& params, uint32_t shared, uint32_t worker, uint32_t lane)
      : params_(params),
        plan_(params.plan),
        units_(BlockUnits::of(params.plan, blockIdx.x)),
        shared_(shared),
        worker_(worker),
        lane_(lane),
        team_(worker * params.plan.warp_magic >> 8),
        member_(worker - team_ * params.plan.team_warps),
        full_(shared + params.plan.barriers_at + worker * params.plan.depth * 8),
        ring_(shared + params.plan.ring_at + worker * params.plan.depth * params.plan.ring_stride),
        loader_(params, units_, team_, member_),
        scratch_(shared + params.plan.scratch_at + worker * PatchScratch::kBytes, lane) {}

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
    const uint32_t next_worker = member_ + 1 == plan_.team_warps ? worker_ - member_ : worker_ + 1;
    const bool alone = plan_.team_warps == 1;
    const HandOver<T> hand_over(plan_, shared_, worker_, next_worker, lane_);
    const XRange x_range = XRange::of<T>(plan_, units_);
    const uint32_t x_barriers = shared_ + plan_.barriers_at + plan_.workers() * plan_.depth * 8;
    XReader<T> x(plan_, x_range, shared_, {x_barriers, x_barriers + plan_.x_pieces * 8}, lane_);
    const Overflow overflow{params_.overflow, params_.overflow_words};
    Turn turn{member_};
    uint32_t slot = 0, parity = 0, round = 0;
#pragma unroll 1
    for (uint32_t index = units_.begin + team_; index < units_.end; index += plan_.teams, ++round) {
      const Unit unit = unit_at<T>(plan_, index);
      const uint32_t tail_record = plan_.tail_steps < fast::kRecordSteps ? plan_.records - 1 - unit.record_begin : ~0u;
      const bool more = index + plan_.teams < units_.end;
      float sums[T::kTiles][4];
#pragma unroll
      for (uint32_t t = 0; t < T::kTiles; ++t) sums[t][0] = sums[t][1] = sums[t][2] = sums[t][3] = 0;
#pragma unroll 1
      for (uint32_t i = turn.first; i < unit.records; i += plan_.team_warps) {
        const uint32_t record = ring_ + slot * plan_.ring_stride, barrier = full_ + slot * 8;
        arch::mbarrier_wait(barrier, parity);
        __syncwarp();
        if (++slot == plan_.depth) slot = 0, parity ^= 1;

        const bool tail = i == tail_record;
        const uint32_t steps = tail ? plan_.tail_steps : fast::kRecordSteps;
        const uint32_t chunk = (unit.record_begin + i) * kRecordChunks;
        // A split may begin or end inside the record.
        uint32_t chunks = (chunk >= unit.chunk_begin ? 1 : 0) + (chunk + 1 < unit.chunk_end ? 2 : 0);
        const bool last = i + 1 == unit.records;
        uint32_t flags = last ? kSumsWhole : 0;
        if (!alone) {
          flags |= (i > 0       ? kWaitTurn | kLoadSums
                    : round > 0 ? kWaitTurn
                                : 0) |
                   (!last  ? kSendSums
                    : more ? kPassTurn
                           : 0);
        }
        RecordWords words;
        words.load(record, steps, lane_);
        scratch_.apply(record + fast::kRecordBytes, tail ? plan_.tail_slot_copy : plan_.slot_copy, plan_.slot_entries,
                       overflow);
        __syncwarp();
        RecordProduct<T> product;
        if constexpr (T::kHoldX) {
          product.decode(0, words.chunks[0], scratch_);
          product.decode(1, words.chunks[1], scratch_);
          __syncwarp();
          loader_.issue(record, barrier);  // all of the record is in registers
          scratch_.undo();
          // All of this before x or the sums are waited for: the compiler would sink it into the chain from warp to
          // warp.
#pragma unroll
          for (uint32_t r = 0; r < 16; ++r) arch::pin(product.a[0][r]), arch::pin(product.a[1][r]);
          arch::pin(chunks), arch::pin(flags);
          x.advance(chunk - x_range.chunk_begin, round);
          product.load_x(x);
          if (flags & kWaitTurn) hand_over.wait();
          if (flags & kLoadSums) hand_over.load(sums);
          if (__builtin_expect(chunks & 1, 1)) product.multiply(x, 0, sums);
          if (__builtin_expect(chunks & 2, 1)) product.multiply(x, 1, sums);
        } else {  // chunk by chunk: the sums leave no registers for more
          x.advance(chunk - x_range.chunk_begin, round);
          product.decode(0, words.chunks[0], scratch_);
          if (flags & kWaitTurn) hand_over.wait();
          if (flags & kLoadSums) hand_over.load(sums);
          if (chunks & 1) product.multiply(x, 0, sums);
          product.decode(1, words.chunks[1], scratch_);
          if (chunks & 2) product.multiply(x, 1, sums);
          __syncwarp();
          loader_.issue(record, barrier);
          scratch_.undo();
        }
        if (flags & kSendSums) hand_over.send(sums);
        if (__builtin_expect(flags & kSumsWhole, 0)) {
          if (flags & kPassTurn) hand_over.pass();
          finish(unit, sums);
        }
      }
      turn.advance(plan_, unit.records);
    }
    x.finish(x_range.total);
  }

 private:
  __device__ __forceinline__ void finish(const Unit& unit, float (&sums)[T::kTiles][4]) const {
    bool whole = true;
    if constexpr (T::kSplit) whole = sum_splits<T>(params_, unit, lane_, sums);
    if (whole) store_outputs<T>(params_, unit, lane_, sums);
  }

  const LinearParams& params_;
  const LinearPlan& plan_;
  BlockUnits units_;
  uint32_t shared_, worker_, lane_, team_, member_, full_, ring_;
  RecordLoader<T> loader_;
  PatchScratch scratch_;
};

// The warp that fetches x.
template <class T>
class XFetcher {
 public:
  __device__ __forceinline__ XFetcher(const LinearParams& params, const CUtensorMap* map, uint32_t shared)
      : params_(params), map_(map), shared_(shared) {
    const LinearPlan& plan = params.plan;
    barriers_.full = shared + plan.barriers_at + plan.workers() * plan.depth * 8;
    barriers_.empty = barriers_.full + plan.x_pieces * 8;
  }

  __device__ __forceinline__ void start() const {
    if (!arch::elect_one()) return;
#pragma unroll 1
    for (uint32_t i = 0; i < params_.plan.x_pieces; ++i) {
      arch::mbarrier_init(barriers_.full + i * 8, 1);
      arch::mbarrier_init(barriers_.empty + i * 8, params_.plan.workers());
    }
    arch::mbarrier_fence_init();
    if constexpr (T::kOneToken) {
      arch::store_shared_16(shared_, make_uint4(0, 0, 0, 0));
    } else {
      arch::prefetch_tensor_map(map_);
    }
  }

  __device__ __forceinline__ void run() const {
    if (!arch::elect_one()) return;
    const XRange range = XRange::of<T>(params_.plan, BlockUnits::of(params_.plan, blockIdx.x));
    arch::grid_dependency_wait();
    load_x<T>(params_, map_, range, shared_, barriers_);
  }

 private:
  const LinearParams& params_;
  const CUtensorMap* map_;
  uint32_t shared_;
  XBarriers barriers_;
};

template <class T>
__global__ void __launch_bounds__(T::kMostThreads, 1)
    linear_sm90(const __grid_constant__ LinearParams params, const __grid_constant__ CUtensorMap x_map) {
  extern __shared__ __align__(1024) uint8_t storage[];
  const uint32_t shared = arch::shared_address(storage);
  const uint32_t warp = __shfl_sync(~0u, threadIdx.x / 32, 0);
  const bool multiplies = warp < params.plan.workers();
  Worker<T> worker(params, shared, warp, threadIdx.x % 32);
  const XFetcher<T> fetcher(params, &x_map, shared);
  if (multiplies) {
    worker.start();
  } else {
    fetcher.start();
  }
  __syncthreads();
  if (multiplies) {
    worker.run();
  } else {
    fetcher.run();
  }
}

}  // namespace glyd::cuda
