// ahead_kernel.cuh - y = x W^T from the packed bytes of `fast`, for hundreds of tokens and more, summed in cuBLAS's
// order. docs/adr/0015-decoding-ahead.md.
#pragma once

#include "ahead/ahead_decoder.cuh"
#include "ahead/ahead_epilogue.cuh"
#include "arch/bulk_copy.cuh"
#include "arch/mbarrier.cuh"
#include "arch/warpgroup.cuh"

namespace glyd::cuda {

// The stages of shared memory between the copying warp and those that multiply.
struct AheadStages {
  uint32_t shared, index = 0, parity = 0;

  __device__ __forceinline__ explicit AheadStages(uint32_t address) : shared(address) {}
  __device__ __forceinline__ uint32_t weights() const { return shared + index * kAheadChunkBytes; }
  __device__ __forceinline__ uint32_t x() const { return shared + AheadTraits::kXAt + index * AheadTraits::kXBytes; }
  __device__ __forceinline__ uint32_t full() const { return shared + AheadTraits::kBarriersAt + index * 8; }
  __device__ __forceinline__ uint32_t free() const { return full() + AheadTraits::kStages * 8; }
  __device__ __forceinline__ void next() {
    if (++index == AheadTraits::kStages) index = 0, parity ^= 1;
  }
  // By one thread, before the others may use them.
  __device__ __forceinline__ void initialise() const {
#pragma unroll 1
    for (uint32_t i = 0; i < AheadTraits::kStages; ++i) {
      arch::mbarrier_init(shared + AheadTraits::kBarriersAt + i * 8, 1);
      arch::mbarrier_init(shared + AheadTraits::kBarriersAt + (AheadTraits::kStages + i) * 8, 2 * kAheadMultipliers);
    }
    arch::mbarrier_fence_init();
  }
};

// The warp that copies decoded weights and x.
class AheadCopier {
 public:
  __device__ __forceinline__ AheadCopier(const AheadParams& params, uint32_t shared, uint32_t lane)
      : params_(params), plan_(params.plan), stages_(shared), lane_(lane) {}

  __device__ __forceinline__ void run() {
#pragma unroll 1
    for (uint32_t index = blockIdx.x / 2; index < plan_.tiles; index += plan_.pairs)
      copy(AheadTile::at(plan_, index, arch::block_in_cluster()));
  }

 private:
  __device__ __forceinline__ void copy(const AheadTile& tile) {
    // A block without rows reads the last ones, beside the block that has them: it feeds x to that one.
    const uint32_t row_tile = min(tile.row_tile, plan_.row_tiles - 1);
    uint32_t* const flags = params_.arrivals + row_tile * plan_.records;
    const uint32_t strips = min(kAheadTileStrips, plan_.strips - row_tile * kAheadTileStrips);
    const uint32_t batches = (strips + kAheadBatch - 1) / kAheadBatch;
    const uint32_t readers = row_tile == plan_.row_tiles - 1 && plan_.row_tiles % 2 == 1 ? 2 : 1;
    const uint8_t* const weights = params_.scratch + static_cast<uint64_t>(row_tile) * plan_.chunks * kAheadChunkBytes;
    const uint32_t part = arch::block_in_cluster() * (kAheadTokens / 2), token = tile.token_tile * kAheadTokens + part;
    uint32_t ready = 0;  // records of the tile
#pragma unroll 1
    for (uint32_t chunk = 0; chunk < plan_.chunks; ++chunk) {
      while (ready <= chunk / kRecordChunks) ready += more_ready(flags + ready, plan_.records - ready, batches);
      if (arch::elect_one()) {
        if (filled_ >= AheadTraits::kStages) arch::mbarrier_wait(stages_.free(), stages_.parity ^ 1);
        arch::mbarrier_arrive_expect(stages_.full(), kAheadChunkBytes + AheadTraits::kXBytes);
        arch::tensor_copy_2d_cluster(stages_.x() + part * 128, &params_.x_map, chunk * kChunkCols, token,
                                     stages_.full(), 3);
        arch::bulk_copy(stages_.weights(), weights + static_cast<uint64_t>(chunk) * kAheadChunkBytes, kAheadChunkBytes,
                        stages_.full());
      }
      __syncwarp();
      ++filled_;
      stages_.next();
    }
    leave(flags, batches + readers * plan_.token_tiles);
  }

  // How many of the next 32 records are decoded, without a gap.
  __device__ __forceinline__ uint32_t more_ready(const uint32_t* flags, uint32_t records, uint32_t batches) const {
    const bool done = lane_ < records && arch::load_acquire(flags + lane_) + 1 >= batches;  // from all ones on
    const uint32_t missing = ~__ballot_sync(~0u, done);
    __syncwarp();  // what any lane has acquired, the one that copies may read
    arch::global_copies_fence();
    return missing == 0 ? 32 : __ffs(missing) - 1;
  }

  // The last block that needs a row tile's flags leaves all ones.
  __device__ __forceinline__ void leave(uint32_t* flags, uint32_t all) const {
#pragma unroll 1
    for (uint32_t i = lane_; i < plan_.records; i += 32) {
      if (atomicAdd(flags + i, 1) + 2 == all) flags[i] = ~0u;
    }
  }

  const AheadParams& params_;
  const AheadPlan& plan_;
  AheadStages stages_;
  uint32_t lane_, filled_ = 0;
};

// A warp that multiplies: 16 of its warpgroup's 64 rows.
class AheadMultiplier {
 public:
  __device__ __forceinline__ AheadMultiplier(const AheadParams& params, uint32_t shared, uint32_t warp, uint32_t lane)
      : params_(params),
        plan_(params.plan),
        stages_(shared),
        outputs_(params, shared + AheadTraits::kOutAt + warp / 4 * 2 * kAheadOutBytes, warp, lane),
        warp_(warp),
        lane_(lane),
        free_(arch::mbarrier_in_block(stages_.free(), lane & 1)) {}

  __device__ __forceinline__ void run() {
#pragma unroll 1
    for (uint32_t index = blockIdx.x / 2; index < plan_.tiles; index += plan_.pairs) {
      const AheadTile tile = AheadTile::at(plan_, index, arch::block_in_cluster());
      float sums[AheadTraits::kTiles][4];
      multiply(sums);
      outputs_.store(tile, sums);
    }
    outputs_.finish();
  }

 private:
  __device__ __forceinline__ void multiply(float (&sums)[AheadTraits::kTiles][4]) {
    uint32_t before = 0;  // the stage before, which is given back
#pragma unroll 1
    for (uint32_t chunk = 0; chunk < plan_.chunks; ++chunk) {
      arch::mbarrier_wait(stages_.full(), stages_.parity);
      const uint64_t weights = arch::tile_descriptor(stages_.weights() + warp_ / 4 * (kAheadChunkBytes / 2));
      const uint64_t x = arch::tile_descriptor(stages_.x());
      arch::warpgroup_fence();
#pragma unroll
      for (uint32_t step = 0; step < 4; ++step) {
        arch::multiply_shared<kAheadTokens>(&sums[0][0], weights + 2 * step, x + 2 * step, step > 0 || chunk > 0);
      }
      arch::warpgroup_commit();
      arch::warpgroup_wait<1>();
      if (chunk > 0) give_back(before);
      before = stages_.index;
      stages_.next();
    }
    arch::warpgroup_wait<0>();
    give_back(before);
  }

  // Both blocks write to a stage, so both must know that it is free.
  __device__ __forceinline__ void give_back(uint32_t stage) const {
    if (lane_ < 2) arch::mbarrier_arrive_in_cluster(free_ + stage * 8);
  }

  const AheadParams& params_;
  const AheadPlan& plan_;
  AheadStages stages_;
  AheadOutputs outputs_;
  uint32_t warp_, lane_;
  uint32_t free_;  // the first stage's barrier, in the block that this lane tells
};

__global__ void __launch_bounds__(kAheadThreads, 1) ahead_sm90(const __grid_constant__ AheadParams params) {
  extern __shared__ __align__(1024) uint8_t storage[];
  const uint32_t shared = arch::shared_address(storage);
  const uint32_t warp = __shfl_sync(~0u, threadIdx.x / 32, 0), lane = threadIdx.x % 32;
  if (threadIdx.x == 0) {
    arch::prefetch_tensor_map(&params.x_map);
    AheadStages(shared).initialise();
  }
  if (params.early) arch::grid_dependency_launch();
  __syncwarp();
  arch::cluster_sync();
  arch::grid_dependency_wait();  // the scratch and its flags are the grid's before, too
  if (warp < kAheadMultipliers) {
    arch::take_registers<AheadTraits::kMultiplyRegisters>();
    AheadMultiplier(params, shared, warp, lane).run();
  } else {
    arch::give_registers<AheadTraits::kDecodeRegisters>();
    const uint32_t decoder = warp - kAheadMultipliers - 1;
    if (warp == kAheadMultipliers) {
      AheadCopier(params, shared, lane).run();
    } else {
      AheadDecoder(params, shared + AheadTraits::kDecodedAt + decoder * 2 * kAheadRecordBytes, lane).run();
    }
  }
  // Neither block may go while the other still writes to its shared memory.
  __syncwarp();
  arch::cluster_sync();
}

}  // namespace glyd::cuda
