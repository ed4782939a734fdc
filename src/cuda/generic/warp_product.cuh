// warp_product.cuh - one warp multiplies a strip's records of one split by up to 16 tokens: planes from global memory
// straight to registers, patch slots and x through shared memory.
#pragma once

#include "arch/async_copy.cuh"
#include "arch/matrix.cuh"
#include "decode/fast_record.cuh"
#include "generic/generic_params.hpp"

namespace glyd::cuda {

// A lane's stored words of a chunk of `steps` steps, as the planes have them; what it lacks is zero.
__device__ __forceinline__ void load_stored(const uint8_t* chunk, uint32_t steps, uint32_t lane, ChunkWords& words) {
#pragma unroll
  for (uint32_t pair = 0; pair < 2; ++pair) {
    uint4 v = make_uint4(0, 0, 0, 0);
    if (2 * pair + 1 < steps) {
      v = __ldcs(reinterpret_cast<const uint4*>(chunk + pair * 512 + lane * 16));
    } else if (2 * pair < steps) {
      const uint2 lone = __ldcs(reinterpret_cast<const uint2*>(chunk + pair * 512 + lane * 8));
      v.x = lone.x, v.y = lone.y;
    }
    words.low[4 * pair] = v.x, words.low[4 * pair + 1] = v.y;
    words.low[4 * pair + 2] = v.z, words.low[4 * pair + 3] = v.w;
  }
  const uint32_t* const high = reinterpret_cast<const uint32_t*>(chunk + fast::low_plane_bytes(steps)) + lane;
#pragma unroll
  for (uint32_t i = 0; i < 3; ++i) words.high[i] = i < steps ? __ldcs(high + 32 * i) : 0;
}

// What a warp multiplies.
struct WarpTask {
  const uint8_t* planes;  // of the strip
  const uint8_t* slots;
  const uint16_t* x;                // of the first token
  uint32_t tokens;                  // at most 8 * kTiles
  uint32_t chunk_begin, chunk_end;  // of the split
};

template <uint32_t kTiles>
class WarpProduct {
 public:
  __device__ __forceinline__ WarpProduct(const GenericParams& params, uint32_t shared, uint32_t lane)
      : params_(params),
        plan_(params.plan),
        x_(shared + PatchScratch::kBytes),
        slots_(x_ + 2 * kXBytes),
        lane_(lane),
        scratch_(shared, lane) {}

  __device__ __forceinline__ void start() const { scratch_.fill(); }

  // sums += the split, in ascending k.
  __device__ __forceinline__ void multiply(const WarpTask& task, float (&sums)[kTiles][4]) {
    const uint32_t begin = task.chunk_begin / kRecordChunks;
    const uint32_t end = (task.chunk_end + kRecordChunks - 1) / kRecordChunks;
    ChunkWords words[2];
    fetch(task, begin, 0);
    load(task, begin, words);
    uint32_t buffer = 0;
#pragma unroll 1
    for (uint32_t record = begin; record < end; ++record, buffer ^= 1) {
      ChunkWords next[2];
      const uint32_t following = min(record + 1, end - 1);  // the last is fetched twice, and not used
      fetch(task, following, buffer ^ 1);
      load(task, following, next);
      arch::async_copy_wait<1>();
      __syncwarp();
      uint32_t a[2][16];
      decode(record, buffer, words, a);
#pragma unroll
      for (uint32_t c = 0; c < 2; ++c) {
        const uint32_t chunk = record * kRecordChunks + c;
        // A split may begin or end inside the record.
        if (chunk >= task.chunk_begin && chunk < task.chunk_end) multiply_chunk(buffer, c, a[c], sums);
      }
      __syncwarp();  // the buffer may be written again
      words[0] = next[0], words[1] = next[1];
    }
    arch::async_copy_wait<0>();
    __syncwarp();
  }

 private:
  static constexpr uint32_t kXBytes = generic_x_bytes(kTiles), kXChunkBytes = kXBytes / 2;

  __device__ __forceinline__ uint32_t steps_of(uint32_t record) const {
    return record + 1 == plan_.records ? plan_.tail_steps : fast::kRecordSteps;
  }

  // Starts the copies of a record's patch slot and of x: rows of 128 bytes a chunk, 16-byte pieces swizzled by row.
  // Rows without a token and columns past the last are zeros, since padding weights are finite.
  __device__ __forceinline__ void fetch(const WarpTask& task, uint32_t record, uint32_t buffer) const {
    const uint32_t slot_copy = record + 1 == plan_.records ? plan_.tail_slot_copy : plan_.slot_copy;
    if (lane_ * 16 < slot_copy) {
      arch::async_copy_16(slots_ + buffer * kGenericSlotRoom + lane_ * 16,
                          task.slots + static_cast<uint64_t>(record) * plan_.slot_stride + lane_ * 16, true);
    }
    const uint32_t piece = lane_ % 16, col = record * kRecordChunks * kChunkCols + piece * 8;
    const uint32_t to = x_ + buffer * kXBytes + piece / 8 * kXChunkBytes;
#pragma unroll
    for (uint32_t i = 0; i < 4 * kTiles; ++i) {
      const uint32_t token = 2 * i + lane_ / 16;
      const bool present = token < task.tokens && col < plan_.cols;
      const uint16_t* const from = present ? task.x + token * params_.x_stride + col : task.x;
      arch::async_copy_16(to + token * 128 + (((piece % 8) ^ (token % 8)) << 4), from, present);
    }
    arch::async_copy_commit();
  }

  __device__ __forceinline__ void load(const WarpTask& task, uint32_t record, ChunkWords (&words)[2]) const {
    const uint8_t* const at = task.planes + static_cast<uint64_t>(record) * fast::kRecordBytes;
    const uint32_t steps = steps_of(record);
#pragma unroll
    for (uint32_t c = 0; c < 2; ++c) {
      load_stored(at + c * fast::kChunkBytes, fast::chunk_steps(steps, c), lane_, words[c]);
    }
  }

  __device__ __forceinline__ void decode(uint32_t record, uint32_t buffer, const ChunkWords (&words)[2],
                                         uint32_t (&a)[2][16]) {
    const bool tail = record + 1 == plan_.records;
    scratch_.apply(slots_ + buffer * kGenericSlotRoom, tail ? plan_.tail_slot_copy : plan_.slot_copy,
                   plan_.slot_entries, Overflow{params_.overflow, params_.overflow_words});
    __syncwarp();
#pragma unroll
    for (uint32_t c = 0; c < 2; ++c) {
      uint32_t upper[8];
      scratch_.read(c, upper);
      decode_chunk(words[c].low, words[c].high, upper, a[c]);
    }
    __syncwarp();
    scratch_.undo();
  }

  __device__ __forceinline__ void multiply_chunk(uint32_t buffer, uint32_t chunk, const uint32_t (&a)[16],
                                                 float (&sums)[kTiles][4]) const {
    const uint32_t row = lane_ % 8, octet = lane_ / 8;
    const uint32_t at = x_ + buffer * kXBytes + chunk * kXChunkBytes + row * 128 + ((octet ^ row) << 4);
#pragma unroll
    for (uint32_t half = 0; half < 2; ++half) {
#pragma unroll
      for (uint32_t t = 0; t < kTiles; ++t) {
        uint32_t two_steps[4];
        arch::load_matrix_x4(two_steps, (at ^ (half * 64)) + t * 1024);
        arch::mma_m16n8k16(sums[t], &a[8 * half], &two_steps[0]);
        arch::mma_m16n8k16(sums[t], &a[8 * half + 4], &two_steps[2]);
      }
    }
  }

  const GenericParams& params_;
  const GenericPlan& plan_;
  uint32_t x_, slots_, lane_;
  PatchScratch scratch_;
};

}  // namespace glyd::cuda
