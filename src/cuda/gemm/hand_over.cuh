// hand_over.cuh - fp32 sums on their way through a team, from record to record in ascending k.
#pragma once

#include "arch/mbarrier.cuh"
#include "arch/shared_memory.cuh"
#include "arch/synchronize.cuh"
#include "gemm/traits.hpp"

namespace glyd::cuda {

// A warp has two places where sums for it arrive, used in turn, each with a barrier. In a single round of units at most
// one is ever under way to a warp, and named barriers, which are quicker, do.
template <class T>
class HandOver {
 public:
  __device__ __forceinline__ HandOver(const LinearPlan& plan, uint32_t shared, uint32_t barriers, uint32_t worker,
                                      uint32_t next, uint32_t lane)
      : named_(plan.single_round), lane_(lane), worker_(worker), next_(next) {
    const uint32_t at = shared + plan.tokens_at + lane * 16;
    in_ = at + worker * 2 * T::kSumBytes;
    out_ = at + next * 2 * T::kSumBytes;
    in_barrier_ = barriers + worker * 16;
    out_barrier_ = barriers + next * 16;
    // Computed once: a constant reloaded here costs 40 clocks in the chain from record to record.
    arch::pin(in_), arch::pin(out_), arch::pin(in_barrier_), arch::pin(out_barrier_);
  }

  __device__ __forceinline__ void receive(float (&sums)[T::kTiles][4]) {
    const uint32_t turn = received_ & 1, parity = received_ >> 1 & 1;
    ++received_;
    if (named_) {
      arch::barrier_sync_pair(1 + worker_);
    } else {
      arch::mbarrier_wait(in_barrier_ + turn * 8, parity);
    }
#pragma unroll
    for (uint32_t t = 0; t < T::kTiles; ++t) {
      const uint4 v = arch::load_shared_16(in_ + turn * T::kSumBytes + t * 512);
      sums[t][0] = __uint_as_float(v.x), sums[t][1] = __uint_as_float(v.y);
      sums[t][2] = __uint_as_float(v.z), sums[t][3] = __uint_as_float(v.w);
    }
  }

  __device__ __forceinline__ void send(const float (&sums)[T::kTiles][4]) {
    const uint32_t turn = sent_ & 1;
    ++sent_;
#pragma unroll
    for (uint32_t t = 0; t < T::kTiles; ++t) {
      arch::store_shared_16(out_ + turn * T::kSumBytes + t * 512,
                            make_uint4(__float_as_uint(sums[t][0]), __float_as_uint(sums[t][1]),
                                       __float_as_uint(sums[t][2]), __float_as_uint(sums[t][3])));
    }
    if (named_) {
      arch::barrier_arrive_pair(1 + next_);
    } else {
      __syncwarp();
      if (lane_ == 0) arch::mbarrier_arrive(out_barrier_ + turn * 8);
    }
  }

 private:
  uint32_t named_, lane_, worker_, next_;
  uint32_t in_, out_, in_barrier_, out_barrier_;
  uint32_t received_ = 0, sent_ = 0;
};

}  // namespace glyd::cuda
