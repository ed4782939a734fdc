// fast_source.cuh - records of `fast` from device memory to a tile, exponents true. Spec: docs/spec/weights.md 4.
#pragma once

#include "decode/fast_chunk.hpp"
#include "format/bf16.hpp"
#include "unpack/record_tile.cuh"

namespace glyd::cuda {

class FastSource {
 public:
  using Tile = RecordTile<fast::kRecordSteps * kStepCols>;
  struct Shared {};

  __device__ __forceinline__ FastSource(const PackArrays& pack, Shared&) : pack_(pack), steps_(pack.grid.steps()) {}

  __device__ __forceinline__ static uint64_t records(const PackArrays& pack) {
    return fast::records_a_strip(pack.grid.steps());
  }

  // By one warp, which is synchronised on return.
  __device__ __forceinline__ void decode(uint64_t strip, uint64_t record, uint32_t lane, Tile& tile) const {
    const uint32_t steps = fast::steps_of_record(steps_, record);
    const uint8_t* planes = pack_.arrays[0] + strip * fast::strip_bytes(steps_) + record * fast::kRecordBytes;
    if (steps == fast::kRecordSteps) {
      decode_chunk_words<true>(planes, 4, 0, lane, tile);
      decode_chunk_words<true>(planes + fast::kChunkBytes, 4, 1, lane, tile);
    } else {
      decode_chunk_words<false>(planes, fast::chunk_steps(steps, 0), 0, lane, tile);
      if (steps > fast::kChunkSteps) {
        decode_chunk_words<false>(planes + fast::kChunkBytes, fast::chunk_steps(steps, 1), 1, lane, tile);
      }
    }
    __syncwarp();
    patch(strip, record, steps, lane, tile);
    __syncwarp();
  }

 private:
  template <bool kFull>
  __device__ __forceinline__ void decode_chunk_words(const uint8_t* planes, uint32_t steps, uint32_t chunk,
                                                     uint32_t lane, Tile& tile) const {
    uint32_t low[8] = {}, high[3] = {};
#pragma unroll
    for (uint32_t pair = 0; pair < 2; ++pair) {
      if (kFull || 2 * pair + 1 < steps) {
        const uint4 v = __ldcs(reinterpret_cast<const uint4*>(planes + pair * 512 + lane * 16));
        low[4 * pair] = v.x, low[4 * pair + 1] = v.y, low[4 * pair + 2] = v.z, low[4 * pair + 3] = v.w;
      } else if (2 * pair < steps) {
        const uint2 v = __ldcs(reinterpret_cast<const uint2*>(planes + pair * 512 + lane * 8));
        low[4 * pair] = v.x, low[4 * pair + 1] = v.y;
      }
    }
    const uint32_t* const high_words = reinterpret_cast<const uint32_t*>(planes + fast::low_plane_bytes(steps)) + lane;
#pragma unroll
    for (uint32_t i = 0; i < 3; ++i) {
      if (kFull || i < steps) high[i] = __ldcs(high_words + 32 * i);
    }
    const uint32_t window[8] = {kWindowWord, kWindowWord, kWindowWord, kWindowWord,
                                kWindowWord, kWindowWord, kWindowWord, kWindowWord};
    uint32_t pairs[16];
    decode_chunk(low, high, window, pairs);
    // From 120-127 to the window's true exponents: no exponent leaves 1-254, so nothing is carried from half to half.
    const uint32_t shift = (pack_.base - 120) * 0x00800080u;
#pragma unroll
    for (uint32_t i = 0; i < 16; ++i) {
      if (kFull || i / 4 < steps) {
        const uint32_t j = 2 * (i % 4), col = (chunk * fast::kChunkSteps + i / 4) * kStepCols + fragment_col(lane, j);
        tile.pair(fragment_row(lane, j), col) = pairs[i] + shift;
      }
    }
  }

  // Gives a decoded weight its true exponent.
  __device__ __forceinline__ void patch_weight(uint32_t place, uint32_t upper, Tile& tile) const {
    uint16_t& value = tile.at(fast::place_row(place & 0x3ff), fast::place_col(place >> 10, place & 0x3ff));
    const uint32_t code = (bf16_exponent(value) - pack_.base) & 7;
    const uint32_t exponent = fast::unshift_exponent(upper * 8 + code, pack_.base);
    value = bf16_join(bf16_sign(value), exponent & 0xff, bf16_mantissa(value));
  }

  __device__ __forceinline__ void patch(uint64_t strip, uint64_t record, uint32_t steps, uint32_t lane,
                                        Tile& tile) const {
    const uint32_t bytes = fast::slot_bytes_of(pack_.slot_bytes, steps);
    if (bytes == 0) return;
    const uint8_t* const slot =
        pack_.arrays[1] + strip * fast::strip_slot_bytes(pack_.slot_bytes, steps_) + record * pack_.slot_bytes;
    const SlotHeader header = slot_header(*reinterpret_cast<const uint16_t*>(slot));
    const uint32_t entries = min(header.entries(), fast::slot_room(bytes, false));
    for (uint32_t i = lane; i < entries; i += 32) {
      const Patch patch = slot_patch(fast::read_slot_entry(slot, i), i >= header.first);
      patch_weight(patch.place, (patch.byte & 0xff) >> 2, tile);
    }
    if (header.overflow == 0) return;
    const uint32_t* const words = reinterpret_cast<const uint32_t*>(pack_.arrays[2]);
    const uint64_t count = pack_.bytes[2] / 4;
    const uint64_t group = *reinterpret_cast<const uint32_t*>(slot + bytes - 4);
    if (group >= count) return;
    const uint64_t patches = min(uint64_t{words[group]}, count - 1 - group);
    for (uint64_t i = lane; i < min(patches, uint64_t{fast::kRecordWeights}); i += 32) {
      const Patch patch = overflow_patch(words[group + 1 + i]);
      patch_weight(patch.place, (patch.byte & 0xff) >> 2, tile);
    }
  }

  const PackArrays& pack_;
  uint64_t steps_;
};

}  // namespace glyd::cuda
