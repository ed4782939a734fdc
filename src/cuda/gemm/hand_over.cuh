// hand_over.cuh - fp32 sums on their way through a team, from record to record in ascending k.
#pragma once

#include "arch/shared_memory.cuh"
#include "arch/synchronize.cuh"
#include "gemm/traits.hpp"

namespace glyd::cuda {

// The warps of a team take its records in turn, unit after unit, and one token goes round with them: who has it may add
// to the sums. It comes with the sums but at a unit's start. Each warp has a place in shared memory where sums for it
// arrive, and a named barrier that it shares with the warp before it.
template <class T>
class HandOver {
 public:
  __device__ __forceinline__ HandOver(const LinearPlan& plan, uint32_t shared, uint32_t worker, uint32_t next,
                                      uint32_t lane)
      : in_id_(1 + worker), out_id_(1 + next) {
    const uint32_t at = shared + plan.sums_at + lane * 16;
    in_ = at + worker * T::kSumBytes;
    out_ = at + next * T::kSumBytes;
    if constexpr (T::kHoldX || T::kSplit) arch::pin(in_), arch::pin(out_), arch::pin(in_id_), arch::pin(out_id_);
  }

  __device__ __forceinline__ void wait() const { arch::barrier_sync_pair(in_id_); }
  __device__ __forceinline__ void load(float (&sums)[T::kTiles][4]) const {
#pragma unroll
    for (uint32_t t = 0; t < T::kTiles; ++t) {
      const uint4 v = arch::load_shared_16(in_ + t * 512);
      sums[t][0] = __uint_as_float(v.x), sums[t][1] = __uint_as_float(v.y);
      sums[t][2] = __uint_as_float(v.z), sums[t][3] = __uint_as_float(v.w);
    }
  }

  __device__ __forceinline__ void send(const float (&sums)[T::kTiles][4]) const {
#pragma unroll
    for (uint32_t t = 0; t < T::kTiles; ++t) {
      arch::store_shared_16(out_ + t * 512, make_uint4(__float_as_uint(sums[t][0]), __float_as_uint(sums[t][1]),
                                                       __float_as_uint(sums[t][2]), __float_as_uint(sums[t][3])));
    }
    pass();
  }
  // The token without sums.
  __device__ __forceinline__ void pass() const { arch::barrier_arrive_pair(out_id_); }

 private:
  uint32_t in_id_, out_id_;
  uint32_t in_, out_;
};

}  // namespace glyd::cuda
