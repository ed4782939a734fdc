// fast_patch.hpp - patch slots and overflow groups of layout `fast`, bit by bit. Spec: docs/spec/weights.md 4.3, 4.4.
#pragma once

#include <cstdint>

#include "format/geometry.hpp"

namespace glyd::fast {

inline constexpr uint32_t kEntryBits = 12;
inline constexpr uint8_t kSlotCountMask = 0x7f, kSlotFlag = 0x80;
inline constexpr uint32_t kRecordWeights = kRecordSteps * kStepWeights;  // 2,048
inline constexpr uint32_t kChunkWeights = kChunkSteps * kStepWeights;    // 1,024

// Entries that a slot of `bytes` (0 or a multiple of 16) has room for, with and without an overflow group's place at
// its end.
GLYD_HD constexpr uint32_t slot_room(uint32_t bytes, bool group) {
  const uint32_t used = group ? kSlotHeaderBytes + kSlotOverflowBytes : kSlotHeaderBytes;
  return bytes < used ? 0 : (bytes - used) * 8 / kEntryBits;
}
static_assert(slot_room(64, false) == 41 && slot_room(64, true) == 38 && slot_room(384, false) == 254);

// How a record's patches are split between its slot and its group.
struct SlotSplit {
  uint32_t entries[2];  // in the slot, by chunk
  uint32_t left;        // in the group; 0: there is none
};
// `classed`: patches whose upper part has a class, by chunk; `unclassed`: the record's others.
GLYD_HD constexpr SlotSplit split_patches(uint32_t slot_bytes, const uint32_t (&classed)[2], uint32_t unclassed) {
  const bool all_fit = unclassed == 0 && classed[0] + classed[1] <= slot_room(slot_bytes, false) &&
                       classed[0] <= kMostSlotEntries && classed[1] <= kMostSlotEntries;
  if (all_fit) return {{classed[0], classed[1]}, 0};
  uint32_t room = slot_room(slot_bytes, true);
  SlotSplit split{{0, 0}, classed[0] + classed[1] + unclassed};
  for (uint32_t chunk = 0; chunk < 2; ++chunk) {
    uint32_t take = classed[chunk] < kMostSlotEntries ? classed[chunk] : kMostSlotEntries;
    if (take > room) take = room;
    split.entries[chunk] = take;
    split.left -= take;
    room -= take;
  }
  return split;
}
// 4-byte words of the record's group.
GLYD_HD constexpr uint32_t group_words(const SlotSplit& split) { return split.left == 0 ? 0 : 1 + split.left; }

// Entry i of a slot; touches the bytes of that entry alone.
GLYD_HD constexpr uint32_t read_slot_entry(const uint8_t* slot, uint32_t i) {
  const uint8_t* p = slot + kSlotHeaderBytes + i * kEntryBits / 8;
  return (static_cast<uint32_t>(p[0] | p[1] << 8) >> (i % 2 * 4)) & 0xfffu;
}
// Sets entry i, whose bits must be zero.
GLYD_HD constexpr void write_slot_entry(uint8_t* slot, uint32_t i, uint32_t entry) {
  uint8_t* p = slot + kSlotHeaderBytes + i * kEntryBits / 8;
  const uint32_t bits = entry << (i % 2 * 4);
  p[0] = static_cast<uint8_t>(p[0] | (bits & 0xff));
  p[1] = static_cast<uint8_t>(p[1] | bits >> 8);
}
GLYD_HD constexpr uint32_t make_slot_entry(uint32_t place, uint32_t patch_class) { return place | patch_class << 10; }
GLYD_HD constexpr uint32_t entry_place(uint32_t entry) { return entry & 0x3ffu; }
GLYD_HD constexpr uint32_t entry_class(uint32_t entry) { return entry >> 10; }

// A patch as a group holds it; also how encoders carry patches about.
GLYD_HD constexpr uint32_t make_patch(uint32_t chunk, uint32_t place, uint32_t upper) {
  return place | chunk << 10 | upper << 16;
}
GLYD_HD constexpr uint32_t patch_place(uint32_t patch) { return patch & 0x3ffu; }
GLYD_HD constexpr uint32_t patch_chunk(uint32_t patch) { return (patch >> 10) & 1u; }
GLYD_HD constexpr uint32_t patch_upper(uint32_t patch) { return (patch >> 16) & 31u; }
inline constexpr uint32_t kPatchZeroBits = 0xffe0f800u;
inline constexpr uint32_t kPatchOrderBits = 0x7ffu;  // chunk and place

// Row and column in the record of a place of a chunk.
GLYD_HD constexpr uint32_t place_row(uint32_t place) { return fragment_row(place_lane(place), place_index(place)); }
GLYD_HD constexpr uint32_t place_col(uint32_t chunk, uint32_t place) {
  return (chunk * kChunkSteps + place_step(place)) * kStepCols + fragment_col(place_lane(place), place_index(place));
}

// Whether a weight keeps the tensor from being multiplied in shifted form (spec 4.5).
GLYD_HD constexpr bool breaks_fusing(uint32_t exponent, uint32_t mantissa, uint32_t base) {
  if (exponent == 0) return mantissa != 0;
  if (exponent == 255) return false;
  const uint32_t shifted = exponent + 120 - base;  // below 1 wraps to a large number
  return shifted - 1 > 253;
}
static_assert(!breaks_fusing(113, 0, 113) && breaks_fusing(1, 0, 247) && breaks_fusing(254, 0, 1) &&
              breaks_fusing(0, 1, 113));
static_assert(!breaks_fusing(254, 0, 120) && breaks_fusing(254, 0, 119) && !breaks_fusing(1, 0, 120) &&
              breaks_fusing(1, 0, 121));

}  // namespace glyd::fast
