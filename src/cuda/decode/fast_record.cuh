// fast_record.cuh - the decode stage: a record of `fast` in shared memory to tensor core operands, by one warp.
#pragma once

#include "arch/shared_memory.cuh"
#include "arch/synchronize.cuh"
#include "decode/fast_chunk.hpp"

namespace glyd::cuda {

// A lane's stored words of a chunk.
struct ChunkWords {
  uint32_t low[8];
  uint32_t high[3];

  __device__ __forceinline__ void load(uint32_t chunk, uint32_t lane) {
    set_low(0, arch::load_shared_16(chunk + lane * 16));
    set_low(1, arch::load_shared_16(chunk + 512 + lane * 16));
#pragma unroll
    for (uint32_t i = 0; i < 3; ++i) high[i] = arch::load_shared_4(chunk + 1024 + 128 * i + lane * 4);
  }

  // A chunk of `steps` steps (0-4) of a strip's last record; what it lacks is zero.
  __device__ __forceinline__ void load_short(uint32_t chunk, uint32_t steps, uint32_t lane) {
#pragma unroll
    for (uint32_t pair = 0; pair < 2; ++pair) {
      uint4 words = make_uint4(0, 0, 0, 0);
      if (2 * pair + 1 < steps) {
        words = arch::load_shared_16(chunk + pair * 512 + lane * 16);
      } else if (2 * pair < steps) {
        const uint2 lone = arch::load_shared_8(chunk + pair * 512 + lane * 8);
        words.x = lone.x;
        words.y = lone.y;
      }
      set_low(pair, words);
    }
    const uint32_t high_at = chunk + fast::low_plane_bytes(steps) + lane * 4;
#pragma unroll
    for (uint32_t i = 0; i < 3; ++i) high[i] = i < steps ? arch::load_shared_4(high_at + 128 * i) : 0;
  }

 private:
  __device__ __forceinline__ void set_low(uint32_t pair, uint4 words) {
    low[4 * pair] = words.x;
    low[4 * pair + 1] = words.y;
    low[4 * pair + 2] = words.z;
    low[4 * pair + 3] = words.w;
  }
};

// A lane's stored words of a record: all asked for at once, so that the answers come while its patches are applied.
struct RecordWords {
  ChunkWords chunks[2];

  __device__ __forceinline__ void load(uint32_t record, uint32_t steps, uint32_t lane) {
    if (__builtin_expect(steps < fast::kRecordSteps, 0)) {
#pragma unroll
      for (uint32_t c = 0; c < 2; ++c)
        chunks[c].load_short(record + c * fast::kChunkBytes, fast::chunk_steps(steps, c), lane);
    } else {
#pragma unroll
      for (uint32_t c = 0; c < 2; ++c) chunks[c].load(record + c * fast::kChunkBytes, lane);
    }
  }
};

// All four steps of a chunk with no weight patched; `window`: kWindowWord.
__device__ __forceinline__ void decode_unpatched(const ChunkWords& words, uint32_t window, uint32_t (&out)[16]) {
  const uint32_t upper[8] = {window, window, window, window, window, window, window, window};
  decode_chunk(words.low, words.high, upper, out);
}

// Both chunks of a record, pinned: `pin` keeps them from being decoded behind a wait.
__device__ __forceinline__ void decode_unpatched(const ChunkWords (&chunks)[2], uint32_t window,
                                                 uint32_t (&out)[2][16]) {
#pragma unroll
  for (uint32_t c = 0; c < 2; ++c) {
    decode_unpatched(chunks[c], window, out[c]);
#pragma unroll
    for (uint32_t r = 0; r < 16; ++r) arch::pin(out[c][r]);
  }
}

// A strip's 16 rows of a chunk as bf16 in shared memory: rows of 128 bytes, swizzled as the tensor core reads them.
namespace swizzled_strip {
// The row that the lane stores of a step by store_matrix_x4: a step of 16 columns is two 16-byte pieces of each row.
// Matrix m = lane / 8 is rows 8 * (m % 2) ..., columns 8 * (m / 2) ...
__device__ __forceinline__ uint32_t row_of(uint32_t lane, uint32_t step) {
  const uint32_t row = lane % 16, half = lane / 16;
  return row * 128 + (((2 * step + half) ^ (row & 7)) << 4);
}
// The upper exponent bits of one weight of the chunk at `chunk`: in the high byte of its bf16.
__device__ __forceinline__ void patch(uint32_t chunk, const Patch& patch) {
  const uint32_t at = chunk + swizzled_place(patch.place) + 1;
  arch::store_shared_1(at, (arch::load_shared_1(at) & 0x83) | patch.byte);
}
}  // namespace swizzled_strip

// The overflow array of a pack; reads stay inside whatever the pack says.
struct Overflow {
  const uint32_t* words;
  uint32_t count;
};

// A lane's patches of a record, from its slot in shared memory: the lane's entry, and for the few records with more
// than 32 the rest. Each patch is handed to `apply(Patch)`.
class PatchList {
 public:
  // Reads the header and this lane's entry.
  __device__ __forceinline__ void load(uint32_t slot, uint32_t lane) {
    const uint32_t words = slot + entry_word(lane) * 4;
    header_ = arch::load_shared_4(slot);
    first_ = arch::load_shared_4(words);
    second_ = arch::load_shared_4(words + 4);
  }
  // Whether the slot must still be there when the patches are applied.
  __device__ __forceinline__ bool crowded() const { return slot_header(header_).crowded(); }
  template <class Apply>
  __device__ __forceinline__ void each(uint32_t lane, uint32_t slot, uint32_t slot_bytes, uint32_t most,
                                       const Overflow& overflow, const Apply& apply) const {
    const SlotHeader header = slot_header(header_);
    if (lane < header.entries()) {
      apply(slot_patch(__funnelshift_r(first_, second_, entry_shift(lane)), lane >= header.first));
    }
    if (__builtin_expect(crowded(), 0)) each_of_rest(lane, slot, header, slot_bytes, most, overflow, apply);
  }

 private:
  // Entries past the 32nd, and the overflow group; reads stay inside whatever the pack says.
  template <class Apply>
  __device__ __forceinline__ void each_of_rest(uint32_t lane, uint32_t slot, const SlotHeader& header,
                                               uint32_t slot_bytes, uint32_t most, const Overflow& overflow,
                                               const Apply& apply) const {
    const uint32_t entries = min(header.entries(), most);
#pragma unroll 1
    for (uint32_t i = 32 + lane; i < entries; i += 32) {
      const uint32_t words = slot + entry_word(i) * 4;
      const uint32_t bits = __funnelshift_r(arch::load_shared_4(words), arch::load_shared_4(words + 4), entry_shift(i));
      apply(slot_patch(bits, i >= header.first));
    }
    if (header.overflow == 0) return;
    const uint32_t group = arch::load_shared_4(slot + slot_bytes - 4);
    if (group >= overflow.count) return;
    const uint32_t count = min(overflow.words[group], overflow.count - 1 - group);
#pragma unroll 1
    for (uint32_t i = lane; i < count; i += 32) apply(overflow_patch(overflow.words[group + 1 + i]));
  }

  uint32_t header_ = 0, first_ = 0, second_ = 0;
};

// A warp's 2 KiB of upper exponent bytes for the weights of a record, at their places. Between records every byte is
// the window's; patches overwrite single bytes and take them back, so that decoding reads them as the OR operand that
// it needs anyway.
class PatchScratch {
 public:
  static constexpr uint32_t kBytes = 2048;

  __device__ __forceinline__ PatchScratch(uint32_t address, uint32_t lane)
      : address_(address), lane_(lane), entry_word_(entry_word(lane) * 4), entry_shift_(entry_shift(lane)) {}

  __device__ __forceinline__ void fill() const {
    const uint4 window = make_uint4(kWindowWord, kWindowWord, kWindowWord, kWindowWord);
#pragma unroll 1
    for (uint32_t at = lane_ * 16; at < kBytes; at += 512) arch::store_shared_16(address_ + at, window);
  }

  // Applies the patches of the slot at `slot` (of `slot_bytes` bytes, room for `most` entries). Synchronise the warp
  // before reading.
  __device__ __forceinline__ void apply(uint32_t slot, uint32_t slot_bytes, uint32_t most, const Overflow& overflow) {
    const SlotHeader header = slot_header(arch::load_shared_4(slot));
    const uint32_t words = slot + entry_word_;
    const uint32_t bits = __funnelshift_r(arch::load_shared_4(words), arch::load_shared_4(words + 4), entry_shift_);
    const Patch patch = slot_patch(bits, lane_ >= header.first);
    mine_ = lane_ < header.entries();
    place_ = address_ + patch.place;
    if (mine_) arch::store_shared_1(place_, patch.byte);
    crowded_ = header.crowded();
    if (__builtin_expect(crowded_, 0)) apply_rest(slot, header, slot_bytes, most, overflow);
  }

  // The upper bytes of this lane's weights of a chunk.
  __device__ __forceinline__ void read(uint32_t chunk, uint32_t (&upper)[8]) const {
    const uint4 a = arch::load_shared_16(address_ + chunk * 1024 + lane_ * 16);
    const uint4 b = arch::load_shared_16(address_ + chunk * 1024 + 512 + lane_ * 16);
    upper[0] = a.x, upper[1] = a.y, upper[2] = a.z, upper[3] = a.w;
    upper[4] = b.x, upper[5] = b.y, upper[6] = b.z, upper[7] = b.w;
  }

  // Takes the patches back. Synchronise the warp after reading, before this.
  __device__ __forceinline__ void undo() const {
    if (mine_) arch::store_shared_1(place_, kWindowByte);
    if (__builtin_expect(crowded_, 0)) fill();
  }

 private:
  // Entries past the 32nd, and the overflow group.
  __device__ __forceinline__ void apply_rest(uint32_t slot, const SlotHeader& header, uint32_t slot_bytes,
                                             uint32_t most, const Overflow& overflow) const {
    const uint32_t entries = min(header.entries(), most);
#pragma unroll 1
    for (uint32_t i = 32 + lane_; i < entries; i += 32) {
      const uint32_t words = slot + entry_word(i) * 4;
      const uint32_t bits = __funnelshift_r(arch::load_shared_4(words), arch::load_shared_4(words + 4), entry_shift(i));
      const Patch patch = slot_patch(bits, i >= header.first);
      arch::store_shared_1(address_ + patch.place, patch.byte);
    }
    if (header.overflow == 0) return;
    const uint32_t group = arch::load_shared_4(slot + slot_bytes - 4);
    if (group >= overflow.count) return;
    const uint32_t count = min(overflow.words[group], overflow.count - 1 - group);
#pragma unroll 1
    for (uint32_t i = lane_; i < count; i += 32) {
      const Patch patch = overflow_patch(overflow.words[group + 1 + i]);
      arch::store_shared_1(address_ + patch.place, patch.byte);
    }
  }

  uint32_t address_, lane_, entry_word_, entry_shift_;
  uint32_t place_ = 0;
  bool mine_ = false, crowded_ = false;
};

}  // namespace glyd::cuda
