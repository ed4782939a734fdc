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

// Multiplies the chunks of a record that lie in the unit; `operands` are held x operands where T::kHoldX.
template <class T>
struct RecordProduct {
  uint32_t a[2][16];
  uint32_t b[T::kHoldX ? 2 : 1][T::kHoldX ? T::kTiles : 1][8];

  __device__ __forceinline__ void load_x(const XReader<T>& x) {
    if constexpr (T::kHoldX) {
#pragma unroll
      for (uint32_t chunk = 0; chunk < 2; ++chunk) {
#pragma unroll
        for (uint32_t t = 0; t < T::kTiles; ++t) {
          x.load(chunk, t, 0, &b[chunk][t][0]);
          x.load(chunk, t, 1, &b[chunk][t][4]);
        }
      }
    }
  }

  __device__ __forceinline__ void multiply_chunk(const XReader<T>& x, uint32_t chunk,
                                                 float (&sums)[T::kTiles][4]) const {
    if constexpr (T::kHoldX) {
#pragma unroll
      for (uint32_t step = 0; step < 4; ++step) {
#pragma unroll
        for (uint32_t t = 0; t < T::kTiles; ++t)
          arch::mma_m16n8k16(sums[t], &a[chunk][4 * step], &b[chunk][t][2 * step]);
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

template <class T>
__device__ __forceinline__ void multiply_units(const LinearParams& params, const BlockWork& work, uint32_t shared,
                                               uint32_t worker, uint32_t lane) {
  const LinearPlan& plan = params.plan;
  const uint32_t team = worker / plan.team_warps, member = worker - team * plan.team_warps;
  const uint32_t full = shared + plan.barriers_at + worker * plan.depth * 8;
  const uint32_t hand_barriers = shared + plan.barriers_at + plan.workers() * plan.depth * 8;
  const XBarriers x_barriers{hand_barriers + plan.workers() * 16,
                             hand_barriers + plan.workers() * 16 + plan.x_pieces * 8};
  const uint32_t ring = shared + plan.ring_at + worker * plan.depth * plan.ring_stride;

  RecordLoader loader(params, work, team, member);
  if (arch::elect_one()) {
#pragma unroll 1
    for (uint32_t i = 0; i < plan.depth; ++i) arch::mbarrier_init(full + i * 8, 1);
    arch::mbarrier_init(hand_barriers + worker * 16, 1);
    arch::mbarrier_init(hand_barriers + worker * 16 + 8, 1);
    arch::mbarrier_fence_init();
  }
  __syncwarp();
  // Weights do not depend on the grid before this one: they are on their way before its end is waited for.
#pragma unroll 1
  for (uint32_t i = 0; i < plan.depth; ++i) loader.issue(ring + i * plan.ring_stride, full + i * 8);
  if (params.early) arch::grid_dependency_launch();
  PatchScratch scratch(shared + plan.scratch_at + worker * PatchScratch::kBytes, lane);
  scratch.fill();
  __syncthreads();

  const uint32_t next_worker = member + 1 == plan.team_warps ? worker - member : worker + 1;
  HandOver<T> hand_over(plan, shared, hand_barriers, worker, next_worker, lane);
  XReader<T> x(plan, work, shared, x_barriers, lane);
  const Overflow overflow{params.overflow, params.overflow_words};
  uint32_t slot = 0, parity = 0, round = 0;
#pragma unroll 1
  for (uint32_t index = work.unit_begin + team; index < work.unit_end; index += plan.teams, ++round) {
    const Unit unit = unit_at(plan, index);
    float sums[T::kTiles][4];
#pragma unroll
    for (uint32_t t = 0; t < T::kTiles; ++t) sums[t][0] = sums[t][1] = sums[t][2] = sums[t][3] = 0;
#pragma unroll 1
    for (uint32_t i = member; i < unit.records; i += plan.team_warps) {
      const uint32_t record = ring + slot * plan.ring_stride, barrier = full + slot * 8;
      arch::mbarrier_wait(barrier, parity);
      if (++slot == plan.depth) slot = 0, parity ^= 1;

      const bool tail = unit.record_begin + i + 1 == plan.records && plan.tail_steps < fast::kRecordSteps;
      RecordWords words;
      if (__builtin_expect(tail, 0)) {
        words.load_tail(record, plan.tail_steps, lane);
      } else {
        words.load(record, lane);
      }
      scratch.apply(record + fast::kRecordBytes, tail ? plan.tail_slot_copy : plan.slot_copy, plan.slot_entries,
                    overflow);
      __syncwarp();
      uint32_t upper[2][8];
      scratch.read(0, upper[0]);
      scratch.read(1, upper[1]);
      loader.issue(record, barrier);  // all of the record is in registers
      RecordProduct<T> product;
      decode_chunk(words.low[0], words.high[0], upper[0], product.a[0]);
      decode_chunk(words.low[1], words.high[1], upper[1], product.a[1]);
      __syncwarp();
      scratch.undo();
      // Decoded before the sums are waited for: the compiler would sink the last instructions into the chain from warp
      // to warp.
#pragma unroll
      for (uint32_t r = 0; r < 16; ++r) arch::pin(product.a[0][r]), arch::pin(product.a[1][r]);

      const uint32_t chunk = (unit.record_begin + i) * kRecordChunks;
      x.advance(chunk - work.chunk_begin, round);
      product.load_x(x);
      if (plan.team_warps > 1 && i > 0) hand_over.receive(sums);
      if (chunk >= unit.chunk_begin && chunk + 2 <= unit.chunk_end) {
        product.multiply_chunk(x, 0, sums);
        product.multiply_chunk(x, 1, sums);
      } else {  // the split begins or ends inside the record
        if (chunk >= unit.chunk_begin) product.multiply_chunk(x, 0, sums);
        if (chunk + 1 < unit.chunk_end) product.multiply_chunk(x, 1, sums);
      }
      if (i + 1 == unit.records) {
        bool whole = true;
        if constexpr (T::kSplit) whole = sum_splits<T>(params, unit, lane, sums);
        if (whole) store_outputs<T>(params, unit, lane, sums);
      } else if (plan.team_warps > 1) {
        hand_over.send(sums);
      }
    }
  }
  x.finish(work.total_pieces);
}

template <class T>
__global__ void __launch_bounds__(T::kMostThreads, 1)
    linear_sm90(const __grid_constant__ LinearParams params, const __grid_constant__ CUtensorMap x_map) {
  extern __shared__ __align__(1024) uint8_t storage[];
  const LinearPlan& plan = params.plan;
  const uint32_t shared = arch::shared_address(storage);
  const uint32_t warp = __shfl_sync(~0u, threadIdx.x / 32, 0), lane = threadIdx.x % 32;
  const BlockWork work = BlockWork::of<T>(plan, blockIdx.x);
  if (warp < plan.workers()) {
    multiply_units<T>(params, work, shared, warp, lane);
    return;
  }
  const uint32_t x_full = shared + plan.barriers_at + plan.workers() * (plan.depth * 8 + 16);
  const XBarriers barriers{x_full, x_full + plan.x_pieces * 8};
  if (arch::elect_one()) {
#pragma unroll 1
    for (uint32_t i = 0; i < plan.x_pieces; ++i) {
      arch::mbarrier_init(barriers.full + i * 8, 1);
      arch::mbarrier_init(barriers.empty + i * 8, plan.workers());
    }
    arch::mbarrier_fence_init();
    if constexpr (T::kOneToken) {
      arch::store_shared_16(shared, make_uint4(0, 0, 0, 0));
    } else {
      arch::prefetch_tensor_map(&x_map);
    }
  }
  __syncthreads();
  if (arch::elect_one()) {
    arch::grid_dependency_wait();
    load_x<T>(params, &x_map, work, shared, barriers);
  }
}

}  // namespace glyd::cuda
