// small_source.cuh - records of `small` from device memory to a tile. Spec: docs/spec/weights.md 5.
#pragma once

#include "decode/small_reader.hpp"
#include "unpack/record_tile.cuh"

namespace glyd::cuda {

class SmallSource {
 public:
  using Tile = RecordTile<small::kRecordSteps * kStepCols>;
  struct Shared {
    uint32_t entries[kCodeEntries];
    uint32_t counts[16];
    uint8_t table[small::kTableBytes];
  };

  // By the whole block, which is synchronised on return.
  __device__ __forceinline__ SmallSource(const PackArrays& pack, Shared& shared)
      : pack_(pack), shared_(shared), steps_(pack.grid.steps()) {
    for (uint32_t i = threadIdx.x; i < kCodeEntries; i += blockDim.x) shared.entries[i] = 0;
    for (uint32_t i = threadIdx.x; i < 16; i += blockDim.x) shared.counts[i] = 0;
    for (uint32_t i = threadIdx.x; i < small::kTableBytes; i += blockDim.x) shared.table[i] = pack.arrays[3][i];
    __syncthreads();
    for (uint32_t p = threadIdx.x; p < small::kPairs; p += blockDim.x)
      atomicAdd(&shared.counts[pair_length(shared.table, p)], 1);
    __syncthreads();
    for (uint32_t p = threadIdx.x; p < small::kPairs; p += blockDim.x) {
      const uint32_t length = pair_length(shared.table, p);
      uint32_t before = 0;
      for (uint32_t other = 0; other < p; ++other) before += pair_length(shared.table, other) == length;
      fill_code(shared.table, p, shared.counts, before, shared.entries);
    }
    __syncthreads();
  }

  __device__ __forceinline__ static uint64_t records(const PackArrays& pack) {
    return small::records_a_strip(pack.grid.steps());
  }

  // By one warp, which is synchronised on return.
  __device__ __forceinline__ void decode(uint64_t strip, uint64_t record, uint32_t lane, Tile& tile) const {
    const uint32_t steps = small::steps_of_record(steps_, record), streams = small::streams_of_record(steps);
    const uint64_t strips = pack_.grid.strips();
    const uint64_t strip_at = reinterpret_cast<const uint64_t*>(pack_.arrays[2])[strip];
    const uint32_t entry = reinterpret_cast<const uint32_t*>(
        pack_.arrays[2] + small::offsets_table_start(strips))[strip * records(pack_) + record];
    const uint32_t* const words = reinterpret_cast<const uint32_t*>(pack_.arrays[1]);
    const uint64_t count = pack_.bytes[1] / 4, most = uint64_t{1} << 40;
    const uint64_t start = (strip_at < most ? strip_at : most) + (entry & 0xffffff);

    // Bits of regions before each: lane l has region l % 16 of stream l / 16.
    const uint32_t stream = lane / small::kRegions;
    uint32_t bits = 0;
    if (stream < streams) {
      const uint64_t word = start + lane / 4;
      const uint32_t lengths = word < count ? words[word] : 0;
      bits = small::least_region_bits(pack_.min_bits, small::stream_steps(steps, stream)) +
             (lengths >> (lane % 4 * 8) & 0xff);
    }
    uint32_t end = bits;
#pragma unroll
    for (uint32_t step = 1; step < 32; step *= 2) {
      const uint32_t other = __shfl_up_sync(~0u, end, step);
      if (lane >= step) end += other;
    }
    const int64_t first_bit = static_cast<int64_t>((start + streams * 4) * 32);
    for (uint32_t s = 0; s < streams; ++s) {
      const uint32_t region = s * small::kRegions + lane / 2;
      const uint32_t region_end = __shfl_sync(~0u, end, region), region_bits = __shfl_sync(~0u, bits, region);
      const bool down = lane % 2 != 0;
      CodeReader reader{words, count, first_bit + (down ? region_end : region_end - region_bits), down};
      decode_stream(strip, record, s, small::stream_steps(steps, s), reader, lane, tile);
    }
    const uint32_t total = __shfl_sync(~0u, end, 31);
    __syncwarp();
    const uint64_t patches_at = start + streams * 4 + (total + 31) / 32;
    for (uint32_t i = lane; i < entry >> 24; i += 32) {
      if (patches_at + i < count) patch_pair(words[patches_at + i], tile);
    }
    __syncwarp();
  }

 private:
  __device__ __forceinline__ void decode_stream(uint64_t strip, uint64_t record, uint32_t stream, uint32_t steps,
                                                CodeReader& reader, uint32_t lane, Tile& tile) const {
    const uint64_t first_step = record * small::kRecordSteps + stream * small::kStreamSteps;
    const uint8_t* plane = pack_.arrays[0] + (strip * steps_ + first_step) * small::kStepPlaneBytes + lane * 8;
    for (uint32_t step = 0; step < steps; ++step, plane += small::kStepPlaneBytes) {
      const uint2 signs = *reinterpret_cast<const uint2*>(plane);
#pragma unroll
      for (uint32_t pair = 0; pair < 4; ++pair) {
        const uint32_t value =
            pair_signs(pair < 2 ? signs.x : signs.y, pair) | code_exponents(reader.next(shared_.entries));
        tile.pair(fragment_row(lane, 2 * pair),
                  (stream * small::kStreamSteps + step) * kStepCols + fragment_col(lane, 2 * pair)) = value;
      }
    }
  }

  __device__ __forceinline__ void patch_pair(uint32_t patch, Tile& tile) const {
    const uint32_t lane = patch & 31, j = 2 * (patch >> 5 & 3), stream = patch >> 7 & 1, step = patch >> 8 & 7;
    uint32_t& value =
        tile.pair(fragment_row(lane, j), (stream * small::kStreamSteps + step) * kStepCols + fragment_col(lane, j));
    value = (value & small::kPairMask) | (patch >> 16 & 0xff) << 7 | (patch >> 24) << 23;
  }

  const PackArrays& pack_;
  Shared& shared_;
  uint64_t steps_;
};

}  // namespace glyd::cuda
