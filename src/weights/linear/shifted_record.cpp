#include "weights/linear/shifted_record.hpp"

#include <algorithm>
#include <cstring>

#include "format/bf16.hpp"

namespace glyd {
namespace {

constexpr uint32_t kRecordWeights = fast::kRecordSteps * kStepWeights;
constexpr uint32_t kChunkWidth = fast::kChunkSteps * kFragmentStep;
constexpr uint32_t kUpperBit = 10;  // of a bf16 value: the lowest bit of its exponent's upper part
// Turns the window's upper part into the one that a class names.
constexpr uint16_t flip_of(uint32_t upper) { return static_cast<uint16_t>((fast::kWindowUpper ^ upper) << kUpperBit); }
constexpr uint16_t kFlipOfClass[4] = {flip_of(fast::upper_of_class(0)), flip_of(fast::upper_of_class(1)),
                                      flip_of(fast::upper_of_class(2)), flip_of(fast::upper_of_class(3))};
constexpr uint32_t kEntryBits = 12, kPlaceMask = 0x3ff;
constexpr uint32_t kSlotReadAhead = 4;  // an entry is read as 4 bytes

// A chunk of fewer than 4 steps as a full one: absent steps are zero.
void complete_chunk(const uint8_t* chunk, uint32_t steps, uint8_t* full) {
  std::memset(full, 0, fast::kChunkBytes);
  std::memcpy(full, chunk, 512 * (steps / 2));
  if (steps % 2 != 0) {
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      std::memcpy(full + fast::place_of(steps - 1, lane, 0), chunk + 256 * (steps - 1) + 8 * lane, 8);
    }
  }
  std::memcpy(full + fast::low_plane_bytes(fast::kChunkSteps), chunk + fast::low_plane_bytes(steps),
              fast::chunk_bytes(steps) - fast::low_plane_bytes(steps));
}

inline void patch_entry(uint32_t entry, uint16_t* tile) {
  tile[kPlaces[entry & kPlaceMask]] ^= kFlipOfClass[entry >> 10 & 3];
}

// Two entries are three bytes; an odd one begins in the middle of such a group.
void patch_entries(const uint8_t* entries, uint32_t begin, uint32_t end, uint16_t* tile) {
  const auto group = [&](uint32_t i) { return load_le<uint32_t>(entries + i / 2 * 3); };
  uint32_t i = begin;
  if (i % 2 != 0 && i < end) patch_entry(group(i++) >> kEntryBits, tile);
  for (; i + 2 <= end; i += 2) {
    const uint32_t both = group(i);
    patch_entry(both, tile);
    patch_entry(both >> kEntryBits, tile);
  }
  if (i < end) patch_entry(group(i), tile);
}

}  // namespace

bool scale_x(const uint16_t* x, uint64_t tokens, uint64_t x_stride, uint64_t cols, int shift, uint16_t* out) {
  const auto step = static_cast<uint16_t>(shift * 128);  // on the exponent's field, modulo 2^16
  for (uint64_t t = 0; t < tokens; ++t, x += x_stride) {
    bool exact = true;
    for (uint64_t c0 = 0; c0 < cols; c0 += kStepCols, out += kFragmentStep) {
      uint16_t scaled[kStepCols] = {};
      const auto count = static_cast<uint32_t>(std::min<uint64_t>(kStepCols, cols - c0));
      for (uint32_t c = 0; c < count; ++c) {
        const uint16_t value = x[c0 + c];
        const auto exponent = static_cast<int>(bf16_exponent(value));
        const bool as_it_is = (value & 0x7fff) == 0 || exponent == 255;
        exact &= as_it_is || (exponent > 0 && exponent + shift >= 1 && exponent + shift <= 254);
        scaled[c] = as_it_is ? value : static_cast<uint16_t>(value + step);
      }
      for (uint32_t q = 0; q < 4; ++q) {
        const auto lower = uint64_t{load_le<uint32_t>(scaled + 2 * q)},
                   upper = uint64_t{load_le<uint32_t>(scaled + 2 * q + 8)};
        store_le<uint64_t>(out + kLaneWeights * q, lower << 32 | lower);
        store_le<uint64_t>(out + kLaneWeights * q + 4, upper << 32 | upper);
      }
    }
    if (!exact) return false;
  }
  return true;
}

ShiftedRecords::ShiftedRecords(const OpenPack& pack, const LinearKernels& kernels)
    : kernels_(kernels),
      planes_(pack.array(fast::kPlanes)),
      patches_(pack.array(fast::kPatches)),
      overflow_(pack.array(fast::kOverflow)),
      steps_(pack.header.grid.steps()),
      strip_bytes_(fast::strip_bytes(steps_)),
      strip_slot_bytes_(fast::strip_slot_bytes(pack.header.slot_bytes, steps_)),
      slot_bytes_(pack.header.slot_bytes) {}

bool ShiftedRecords::decode(uint64_t strip, uint64_t record, uint16_t* tile) const {
  const uint32_t steps = fast::steps_of_record(steps_, record);
  const uint8_t* planes = planes_.data() + strip * strip_bytes_ + record * fast::kRecordBytes;
  if (steps == fast::kRecordSteps) {
    kernels_.decode_chunk(planes, tile);
    kernels_.decode_chunk(planes + fast::kChunkBytes, tile + kChunkWidth);
  } else {
    alignas(64) uint8_t full[fast::kChunkBytes];
    complete_chunk(planes, fast::chunk_steps(steps, 0), full);
    kernels_.decode_chunk(full, tile);
    if (steps > fast::kChunkSteps) {
      complete_chunk(planes + fast::kChunkBytes, fast::chunk_steps(steps, 1), full);
      kernels_.decode_chunk(full, tile + kChunkWidth);
    }
  }
  if (slot_bytes_ == 0) return true;
  const uint32_t slot_bytes = fast::slot_bytes_of(slot_bytes_, steps);
  const uint64_t slot_at = strip * strip_slot_bytes_ + record * slot_bytes_;
  if (slot_at + slot_bytes + kSlotReadAhead <= patches_.size())
    return patch(patches_.data() + slot_at, slot_bytes, tile);
  uint8_t last[fast::kMostSlotBytes + kSlotReadAhead] = {};
  std::memcpy(last, patches_.data() + slot_at, slot_bytes);
  return patch(last, slot_bytes, tile);
}

bool ShiftedRecords::patch(const uint8_t* slot, uint32_t slot_bytes, uint16_t* tile) const {
  const bool has_group = (slot[0] & 0x80) != 0;
  const uint32_t first = slot[0] & 0x7fu, all = first + slot[1];
  const uint32_t taken = fast::kSlotHeaderBytes + (has_group ? fast::kSlotOverflowBytes : 0);
  if (taken + (all * kEntryBits + 7) / 8 > slot_bytes) return false;
  patch_entries(slot + fast::kSlotHeaderBytes, 0, first, tile);
  patch_entries(slot + fast::kSlotHeaderBytes, first, all, tile + kChunkWidth);
  if (!has_group) return true;
  return patch_overflow(load_le<uint32_t>(slot + slot_bytes - fast::kSlotOverflowBytes), tile);
}

bool ShiftedRecords::patch_overflow(uint32_t word, uint16_t* tile) const {
  const uint64_t words = overflow_.size() / 4;
  if (word >= words) return false;
  const uint8_t* group = overflow_.data() + uint64_t{word} * 4;
  const uint32_t count = load_le<uint32_t>(group);
  if (count > words - word - 1 || count > kRecordWeights) return false;
  for (uint32_t i = 1; i <= count; ++i) {
    const uint32_t entry = load_le<uint32_t>(group + 4 * uint64_t{i});
    const uint32_t upper = entry >> 16 & 31;
    tile[kPlaces[entry & kPlaceMask] + (entry >> 10 & 1) * kChunkWidth] ^= flip_of(upper);
  }
  return true;
}

}  // namespace glyd
