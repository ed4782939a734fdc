#include "weights/linear/shifted_record.hpp"

#include <algorithm>
#include <cstring>
#include <span>

#include "format/bf16.hpp"
#include "format/fast_patch.hpp"

namespace glyd {
namespace {

constexpr uint32_t kChunkWidth = fast::kChunkSteps * kFragmentStep;
constexpr uint32_t kUpperBit = 10;  // of a bf16 value: the lowest bit of its exponent's upper part
constexpr uint8_t kUpperOfClass[4] = {fast::upper_of_class(0), fast::upper_of_class(1), fast::upper_of_class(2),
                                      fast::upper_of_class(3)};

constexpr size_t kSlotsAhead = 512;  // bytes

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

// A record's two chunks as they stand, or, where it has fewer steps, completed in `scratch`.
inline const uint8_t* whole_chunks(const uint8_t* planes, uint32_t steps, uint8_t (&scratch)[fast::kRecordBytes]) {
  if (steps == fast::kRecordSteps) [[likely]]
    return planes;
  complete_chunk(planes, fast::chunk_steps(steps, 0), scratch);
  complete_chunk(planes + fast::kChunkBytes, fast::chunk_steps(steps, 1), scratch + fast::kChunkBytes);
  return scratch;
}

// patch(place, upper) for entries begin .. end. Two entries are three bytes; an odd one begins in the middle of such a
// group.
template <typename Patch>
inline void for_entries(const uint8_t* entries, uint32_t begin, uint32_t end, Patch patch) {
  const auto group = [&](uint32_t i) { return load_le<uint32_t>(entries + i / 2 * 3); };
  const auto one = [&](uint32_t entry) {
    patch(fast::entry_place(entry), kUpperOfClass[fast::entry_class(entry) & 3]);
  };
  uint32_t i = begin;
  if (i % 2 != 0 && i < end) one(group(i++) >> fast::kEntryBits);
  for (; i + 2 <= end; i += 2) {
    const uint32_t both = group(i);
    one(both);
    one(both >> fast::kEntryBits);
  }
  if (i < end) one(group(i));
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
      slot_bytes_(pack.header.slot_bytes),
      unit_offset_(static_cast<uint16_t>((pack.header.base - fast::kWindowUpper * 8) << kExponentBit)) {
  const uint32_t base = pack.header.base;
  for (uint32_t upper = 0; upper < 32; ++upper) {
    for (uint32_t code = 0; code < 8; ++code) {
      const uint32_t exponent = fast::unshift_exponent(upper * 8 + code, base);
      unit_patches_[upper * 8 + (base + code) % 8] = static_cast<uint16_t>((exponent - base - code) << kExponentBit);
    }
  }
  class_patches_.by_class = true;
  for (size_t i = 0; i < 4; ++i) {
    const std::span<const uint16_t, 8> of_code(&unit_patches_[kUpperOfClass[i] * 8], 8);
    std::ranges::copy(of_code, &class_patches_.of_code[i * 8]);
    class_patches_.of_class[i] = of_code[0];
    const bool same = std::ranges::all_of(of_code, [&](uint16_t addition) { return addition == of_code[0]; });
    class_patches_.by_class &= same || i == kZeroClass;
  }
}

Error broken_patches(uint64_t strip, uint64_t record) {
  return corrupt("pack: fast: strip {}, record {}: patches do not fit their slot or the overflow array", strip, record);
}

const uint8_t* ShiftedRecords::planes(uint64_t strip, uint64_t record, uint8_t (&scratch)[fast::kRecordBytes]) const {
  return whole_chunks(place_of(strip, record).planes, fast::steps_of_record(steps_, record), scratch);
}

bool ShiftedRecords::decode(uint64_t strip, uint64_t record, uint16_t* tile) const {
  alignas(64) uint8_t scratch[fast::kRecordBytes];
  const uint8_t* chunks = planes(strip, record, scratch);
  kernels_.decode_chunk(chunks, tile);
  if (fast::steps_of_record(steps_, record) > fast::kChunkSteps) {
    kernels_.decode_chunk(chunks + fast::kChunkBytes, tile + kChunkWidth);
  }
  return for_patches(strip, record, [tile](uint32_t chunk, uint32_t place, uint32_t upper) {
    tile[kPlaces[place] + chunk * kChunkWidth] ^= static_cast<uint16_t>((fast::kWindowUpper ^ upper) << kUpperBit);
  });
}

bool ShiftedRecords::decode(const Place& place, uint64_t record, const MatrixKernels& unit, const Fetch& fetch,
                            MultiplyArgs meanwhile, uint16_t* tile) const {
  const uint32_t steps = fast::steps_of_record(steps_, record);
  alignas(64) uint8_t scratch[fast::kRecordBytes];
  const uint8_t* chunks = whole_chunks(place.planes, steps, scratch);
  const uint8_t* soon = fetch.soon == nullptr ? chunks : fetch.soon;
  const uint8_t* ahead = fetch.ahead == nullptr ? chunks : fetch.ahead;
  for (uint32_t chunk = 0; chunk < 2 && fast::chunk_steps(steps, chunk) > 0; ++chunk) {
    const size_t at = chunk * fast::kChunkBytes;
    const MultiplyArgs part = take_steps(meanwhile, kStepsOfChunk);
    unit.decode_chunk({.chunk = chunks + at,
                       .soon = soon + at,
                       .ahead = ahead + at,
                       .offset = unit_offset_,
                       .tile = tile + chunk * kUnitChunkCols},
                      part);
  }
  unit.multiply(meanwhile);
  if (slot_bytes_ == 0) return true;
  const auto entries = read_slot({place.slot, fast::slot_bytes_of(slot_bytes_, steps)});
  if (!entries) return false;
  unit.patch(entries->bytes, entries->first, entries->all, class_patches_, tile);
  return !entries->has_group || for_overflow(entries->group, [&](uint32_t chunk, uint32_t at, uint32_t upper) {
    uint16_t& value = tile[place_in_unit_tile(at) + chunk * kUnitChunkCols];
    value = static_cast<uint16_t>(value + unit_patches_[upper * 8 + (value >> kExponentBit & 7u)]);
  });
}

bool ShiftedRecords::set_upper(uint64_t strip, uint64_t record, uint8_t* upper) const {
  if (slot_bytes_ == 0) return true;
  uint8_t scratch[fast::kMostSlotBytes + kSlotReadAhead];
  const auto entries = read_slot(slot(strip, record, scratch));
  if (!entries) return false;
  kernels_.set_upper(entries->bytes, entries->first, entries->all, upper);
  return !entries->has_group || for_overflow(entries->group, [upper](uint32_t chunk, uint32_t place, uint32_t part) {
    upper[chunk * fast::kChunkWeights + place] = upper_byte(part);
  });
}

ShiftedRecords::Slot ShiftedRecords::slot(uint64_t strip, uint64_t record,
                                          uint8_t (&scratch)[fast::kMostSlotBytes + kSlotReadAhead]) const {
  const uint32_t bytes = fast::slot_bytes_of(slot_bytes_, fast::steps_of_record(steps_, record));
  const uint64_t at = strip * strip_slot_bytes_ + record * slot_bytes_;
  __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(patches_.data()) + at + kSlotsAhead));
  if (at + bytes + kSlotReadAhead <= patches_.size()) return {patches_.data() + at, bytes};
  std::memcpy(scratch, patches_.data() + at, bytes);
  return {scratch, bytes};
}

std::optional<ShiftedRecords::Entries> ShiftedRecords::read_slot(const Slot& slot) const {
  const bool has_group = (slot.bytes[0] & fast::kSlotFlag) != 0;
  const uint32_t first = slot.bytes[0] & fast::kSlotCountMask, all = first + slot.bytes[1];
  if (all > fast::slot_room(slot.size, has_group)) return std::nullopt;
  const uint32_t group = has_group ? load_le<uint32_t>(slot.bytes + slot.size - fast::kSlotOverflowBytes) : 0;
  return Entries{slot.bytes + fast::kSlotHeaderBytes, first, all, has_group, group};
}

template <typename Patch>
bool ShiftedRecords::for_patches(uint64_t strip, uint64_t record, Patch patch) const {
  if (slot_bytes_ == 0) return true;
  uint8_t scratch[fast::kMostSlotBytes + kSlotReadAhead];
  const auto entries = read_slot(slot(strip, record, scratch));
  if (!entries) return false;
  for_entries(entries->bytes, 0, entries->first, [&](uint32_t place, uint32_t upper) { patch(0, place, upper); });
  for_entries(entries->bytes, entries->first, entries->all,
              [&](uint32_t place, uint32_t upper) { patch(1, place, upper); });
  return !entries->has_group || for_overflow(entries->group, patch);
}

template <typename Patch>
bool ShiftedRecords::for_overflow(uint32_t word, Patch patch) const {
  const uint64_t words = overflow_.size() / 4;
  if (word >= words) return false;
  const uint8_t* group = overflow_.data() + uint64_t{word} * 4;
  const uint32_t count = load_le<uint32_t>(group);
  if (count > words - word - 1 || count > fast::kRecordWeights) return false;
  for (uint32_t i = 1; i <= count; ++i) {
    const uint32_t entry = load_le<uint32_t>(group + 4 * uint64_t{i});
    patch(fast::patch_chunk(entry), fast::patch_place(entry), fast::patch_upper(entry));
  }
  return true;
}

}  // namespace glyd
