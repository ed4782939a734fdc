// generic_product.cu - y = x W^T from the packed bytes of `fast` on any GPU from sm_80 on, and for experts whose tokens
// are counted on the device. Summed in the order of docs/adr/0010-fused-product.md;
// docs/adr/0012-generic-and-experts.md.
#include <cuda_bf16.h>

#include "generic/generic_instances.hpp"
#include "generic/warp_product.cuh"

namespace glyd::cuda {
namespace {

// Tokens of x that one matrix multiplies.
struct TokenGroup {
  uint32_t matrix, first, tokens;
};

// The wanted one (from 0) of the experts that have tokens; none (0 tokens) past the last. Every lane has the answer.
// `ends` is read without trust: whatever it says, rows stay below `tokens`.
__device__ __forceinline__ TokenGroup busy_expert(const GenericParams& params, uint32_t wanted, uint32_t lane) {
  const auto end_of = [&](uint32_t expert) {
    return static_cast<uint32_t>(min(max(params.ends[expert], 0), static_cast<int32_t>(params.plan.tokens)));
  };
#pragma unroll 1
  for (uint32_t base = 0; base < params.experts; base += 32) {
    const uint32_t expert = base + lane;
    uint32_t begin = 0, end = 0;
    if (expert < params.experts) {
      end = end_of(expert);
      begin = expert == 0 ? 0 : end_of(expert - 1);
    }
    uint32_t busy = __ballot_sync(~0u, begin < end);
    const uint32_t count = __popc(busy);
    if (wanted < count) {
#pragma unroll 1
      for (; wanted > 0; --wanted) busy &= busy - 1;
      const uint32_t chosen = __ffs(busy) - 1;
      begin = __shfl_sync(~0u, begin, chosen);
      return {base + chosen, begin, __shfl_sync(~0u, end, chosen) - begin};
    }
    wanted -= count;
  }
  return {0, 0, 0};
}

template <uint32_t kTiles>
__device__ __forceinline__ void store_outputs(const GenericParams& params, const TokenGroup& group, uint32_t strip,
                                              uint32_t first, uint32_t lane, const float (&sums)[kTiles][4]) {
  const uint64_t rows = params.plan.rows;
#pragma unroll
  for (uint32_t half = 0; half < 2; ++half) {
    const uint32_t row = strip * kStripRows + lane / 4 + half * 8;
    if (row >= rows) continue;
    float bias = 0;
    if (params.bias != nullptr)
      bias = __uint_as_float(static_cast<uint32_t>(params.bias[group.matrix * rows + row]) << 16);
#pragma unroll
    for (uint32_t i = 0; i < 2 * kTiles; ++i) {
      const uint32_t token = first + i / 2 * 8 + 2 * (lane & 3) + i % 2;
      float value = sums[i / 2][2 * half + i % 2] * params.scale;
      if (params.bias != nullptr) value = __fadd_rn(value, bias);
      if (token < group.tokens) {
        params.y[static_cast<uint64_t>(group.first + token) * params.y_stride + row] =
            __bfloat16_as_ushort(__float2bfloat16_rn(value));
      }
    }
  }
}

// How k is split for a group.
struct Splits {
  uint32_t count, chunks;
};
__device__ __forceinline__ Splits splits_of(const GenericParams& params, uint32_t tokens) {
  const GenericPlan& plan = params.plan;
  if (params.ends == nullptr) return {plan.splits, plan.split_chunks};
  const uint32_t asked = max(1u, uint32_t{params.splits_of[min(tokens, kMostGenericTokens)]});
  const uint32_t chunks = ((plan.cols + asked - 1) / asked + kChunkCols - 1) / kChunkCols;
  return {(plan.chunks + chunks - 1) / chunks, chunks};
}

// Sums of up to 8 * kTiles tokens over all splits, whole in the team's first warp: its warps take a split each, and
// after each round the first adds them in ascending order.
template <uint32_t kTiles>
__device__ __forceinline__ void sum_splits(const GenericParams& params, WarpProduct<kTiles>& product, WarpTask task,
                                           const Splits& splits, uint32_t member, bool works, uint32_t exchange,
                                           uint32_t warp_bytes, uint32_t lane, float (&total)[kTiles][4]) {
  const uint32_t team = params.plan.team;
#pragma unroll 1
  for (uint32_t round = 0; round < splits.count; round += team) {
    const uint32_t split = round + member;
    float sums[kTiles][4] = {};
    if (works && split < splits.count) {
      task.chunk_begin = split * splits.chunks;
      task.chunk_end = min(params.plan.chunks, task.chunk_begin + splits.chunks);
      product.multiply(task, sums);
    }
    if (team > 1) {
      if (member > 0) {
#pragma unroll
        for (uint32_t t = 0; t < kTiles; ++t) {
          arch::store_shared_16(exchange + t * 512 + lane * 16,
                                make_uint4(__float_as_uint(sums[t][0]), __float_as_uint(sums[t][1]),
                                           __float_as_uint(sums[t][2]), __float_as_uint(sums[t][3])));
        }
      }
      __syncthreads();
    }
    if (member == 0) {
#pragma unroll
      for (uint32_t t = 0; t < kTiles; ++t) {
#pragma unroll
        for (uint32_t i = 0; i < 4; ++i) total[t][i] = round == 0 ? sums[t][i] : total[t][i] + sums[t][i];
#pragma unroll 1
        for (uint32_t other = 1; other < team && round + other < splits.count; ++other) {
          const uint4 v = arch::load_shared_16(exchange + other * warp_bytes + t * 512 + lane * 16);
          total[t][0] += __uint_as_float(v.x), total[t][1] += __uint_as_float(v.y);
          total[t][2] += __uint_as_float(v.z), total[t][3] += __uint_as_float(v.w);
        }
      }
    }
    if (team > 1) __syncthreads();
  }
}

// Three blocks a multiprocessor: registers for four would spill on some architectures.
template <uint32_t kTiles>
__global__ void __launch_bounds__(kGenericWarps * 32, 3) product_generic(const __grid_constant__ GenericParams params) {
  extern __shared__ __align__(128) uint8_t storage[];
  const GenericPlan& plan = params.plan;
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  constexpr uint32_t kTokens = 8 * kTiles, kWarpBytes = generic_warp_bytes(kTiles);
  const TokenGroup group = params.ends != nullptr
                               ? busy_expert(params, blockIdx.y, lane)
                               : TokenGroup{0, blockIdx.y * kTokens, min(kTokens, plan.tokens - blockIdx.y * kTokens)};
  if (group.tokens == 0) return;  // the whole block
  const uint32_t member = warp % plan.team, strip = blockIdx.x * plan.block_strips + warp / plan.team;
  const bool works = strip < plan.strips;  // the others only keep the barriers
  const uint64_t place = static_cast<uint64_t>(group.matrix) * plan.strips + strip;
  const uint32_t shared = arch::shared_address(storage) + warp * kWarpBytes;
  WarpProduct<kTiles> product(params, shared, lane);
  product.start();
  const Splits splits = splits_of(params, group.tokens);
#pragma unroll 1
  for (uint32_t first = 0; first < group.tokens; first += kTokens) {
    const WarpTask task{params.planes + place * plan.strip_bytes,
                        params.slots + place * plan.strip_slot_bytes,
                        params.x + (static_cast<uint64_t>(group.first) + first) * params.x_stride,
                        min(kTokens, group.tokens - first),
                        0,
                        0};
    float total[kTiles][4] = {};
    // Sums change hands where x was.
    sum_splits<kTiles>(params, product, task, splits, member, works, shared + PatchScratch::kBytes, kWarpBytes, lane,
                       total);
    if (works && member == 0) store_outputs<kTiles>(params, group, strip, first, lane, total);
  }
}

}  // namespace

const void* generic_kernel(uint32_t tiles) {
  return tiles == 1 ? reinterpret_cast<const void*>(&product_generic<1>)
                    : reinterpret_cast<const void*>(&product_generic<2>);
}

}  // namespace glyd::cuda
