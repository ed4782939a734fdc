// fast_decode.cpp - opens a pack of layout `fast` and decodes its records, trusting or checking every rule.
#include <algorithm>
#include <atomic>

#include "format/bf16.hpp"
#include "format/fast_patch.hpp"
#include "weights/fast/fast.hpp"
#include "weights/fast/fast_kernels.hpp"

namespace glyd::fast {

namespace {

// A record's slot and group, bounds checked: every byte they name lies in the pack.
struct Patches {
  const uint8_t* slot = nullptr;
  uint32_t slot_bytes = 0;
  uint32_t entries[2] = {0, 0};
  const uint8_t* group = nullptr;  // its entries, or null
  uint32_t group_count = 0;
};

class Decoder final : public RecordDecoder {
 public:
  Decoder(const OpenPack& pack, Check check) : pack_(pack), check_(check), steps_(pack.header.grid.steps()) {
    for (uint32_t shifted = 0; shifted < 256; ++shifted) {
      exponents_[shifted] = static_cast<uint8_t>(unshift_exponent(shifted, pack.header.base));
    }
    planes_ = pack.array(kPlanes).data();
    slots_ = pack.array(kPatches).data();
    overflow_ = pack.array(kOverflow);
  }

  Result<void> decode(uint64_t strip, uint64_t record, uint16_t* out) const override;
  Result<void> finish() const override;
  // That groups follow each other without gaps, in the records' order.
  Result<void> check_groups() const;

 private:
  Result<Patches> find_patches(uint64_t strip, uint64_t record) const;
  void apply(uint32_t chunk, uint32_t place, uint32_t upper, uint16_t* tile) const;
  Result<void> check_planes(uint64_t strip, uint64_t record, const uint8_t* planes, const uint16_t* tile) const;
  Result<void> check_patches(uint64_t strip, uint64_t record, const Patches& patches) const;
  bool exists(uint64_t strip, uint64_t record, uint32_t chunk, uint32_t place) const;
  void note_fusing(const Patches& patches, const uint16_t* tile) const;

  const OpenPack pack_;
  const Check check_;
  const uint64_t steps_;
  const uint8_t* planes_;
  const uint8_t* slots_;
  ByteSpan overflow_;
  uint8_t exponents_[256];  // e of e'
  mutable std::atomic<bool> fusible_{true};
};

template <typename... Args>
Error record_error(uint64_t strip, uint64_t record, fmt::format_string<Args...> format, Args&&... args) {
  return corrupt("pack: fast: strip {}, record {}: {}", strip, record,
                 fmt::format(format, std::forward<Args>(args)...));
}

Result<Patches> Decoder::find_patches(uint64_t strip, uint64_t record) const {
  Patches patches;
  const uint32_t slot_bytes = pack_.header.slot_bytes;
  if (slot_bytes == 0) return patches;
  patches.slot = slots_ + strip * strip_slot_bytes(slot_bytes, steps_) + record * slot_bytes;
  patches.slot_bytes = slot_bytes_of(slot_bytes, steps_of_record(steps_, record));
  for (uint32_t chunk = 0; chunk < 2; ++chunk) patches.entries[chunk] = patches.slot[chunk] & kSlotCountMask;
  const bool has_group = (patches.slot[0] & kSlotFlag) != 0;
  if (patches.entries[0] + patches.entries[1] > slot_room(patches.slot_bytes, has_group)) {
    return record_error(strip, record, "{} entries in a slot of {} bytes", patches.entries[0] + patches.entries[1],
                        patches.slot_bytes);
  }
  if (!has_group) return patches;
  const uint64_t words = overflow_.size() / 4;
  const auto place = load_le<uint32_t>(patches.slot + patches.slot_bytes - kSlotOverflowBytes);
  if (place >= words) return record_error(strip, record, "its overflow group at word {} of {}", place, words);
  patches.group_count = load_le<uint32_t>(overflow_.data() + 4 * uint64_t{place});
  if (patches.group_count == 0 || patches.group_count > kRecordWeights || patches.group_count > words - place - 1) {
    return record_error(strip, record, "an overflow group of {} entries", patches.group_count);
  }
  patches.group = overflow_.data() + 4 * (uint64_t{place} + 1);
  return patches;
}

void Decoder::apply(uint32_t chunk, uint32_t place, uint32_t upper, uint16_t* tile) const {
  uint16_t& value = tile[place_row(place) * kTileStride + place_col(chunk, place)];
  const uint32_t code = (bf16_exponent(value) - pack_.header.base) & 7;
  value = static_cast<uint16_t>((value & 0x807f) | exponents_[upper * 8 + code] << 7);
}

Result<void> Decoder::decode(uint64_t strip, uint64_t record, uint16_t* out) const {
  const uint8_t* planes = planes_ + strip * strip_bytes(steps_) + record * kRecordBytes;
  kernels().decode_planes(planes, steps_of_record(steps_, record), pack_.header.base, out);
  GLYD_TRY(const Patches patches, find_patches(strip, record));
  if (check_ == Check::kEveryRule) {
    GLYD_CHECK(check_planes(strip, record, planes, out));
    GLYD_CHECK(check_patches(strip, record, patches));
  }
  uint32_t i = 0;
  for (uint32_t chunk = 0; chunk < 2; ++chunk) {
    for (uint32_t n = 0; n < patches.entries[chunk]; ++n, ++i) {
      const uint32_t entry = read_slot_entry(patches.slot, i);
      apply(chunk, entry_place(entry), upper_of_class(entry_class(entry)), out);
    }
  }
  for (uint32_t n = 0; n < patches.group_count; ++n) {
    const auto patch = load_le<uint32_t>(patches.group + 4 * n);
    apply(patch_chunk(patch), patch_place(patch), patch_upper(patch), out);
  }
  if (check_ == Check::kEveryRule) note_fusing(patches, out);
  return Ok{};
}

bool Decoder::exists(uint64_t strip, uint64_t record, uint32_t chunk, uint32_t place) const {
  const Grid& grid = pack_.header.grid;
  const uint64_t row = strip % grid.strips_a_matrix() * kStripRows + place_row(place);
  const uint64_t col = record * kRecordSteps * kStepCols + place_col(chunk, place);
  return row < grid.rows && col < grid.cols;
}

// Padding weights and absent steps are zero.
Result<void> Decoder::check_planes(uint64_t strip, uint64_t record, const uint8_t* planes, const uint16_t* tile) const {
  const Grid& grid = pack_.header.grid;
  const uint32_t steps = steps_of_record(steps_, record);
  for (uint32_t chunk = 0; chunk < 2; ++chunk) {
    const uint32_t t = chunk_steps(steps, chunk);
    if (t > 0 && t < kChunkSteps) {
      const uint8_t* high = planes + low_plane_bytes(t);
      for (uint32_t i = 0; i < 128 * t; ++i) {
        if ((high[i] & 0x60) != 0) return record_error(strip, record, "bits of a step that is not there are set");
      }
    }
    planes += chunk_bytes(t);
  }
  const uint64_t row = strip % grid.strips_a_matrix() * kStripRows, col = record * kRecordSteps * kStepCols;
  const uint64_t rows = std::min<uint64_t>(kStripRows, grid.rows - row);
  const uint64_t cols = std::min<uint64_t>(steps * kStepCols, grid.cols - col);
  const uint16_t zero = bf16_join(0, pack_.header.base, 0);
  for (uint64_t r = 0; r < kStripRows; ++r) {
    for (uint64_t c = r < rows ? cols : 0; c < steps * kStepCols; ++c) {
      if (tile[r * kTileStride + c] != zero) return record_error(strip, record, "a padding weight is not zero");
    }
  }
  return Ok{};
}

// Order, places, and the one split between slot and group that the spec allows.
Result<void> Decoder::check_patches(uint64_t strip, uint64_t record, const Patches& patches) const {
  if (patches.slot == nullptr) return Ok{};
  if ((patches.slot[1] & kSlotFlag) != 0) return record_error(strip, record, "bit 7 of the slot's second byte is set");
  uint64_t taken[kRecordWeights / 64] = {};
  uint32_t classed[2] = {patches.entries[0], patches.entries[1]}, unclassed = 0;
  int32_t last[2] = {-1, -1};  // place of the slot's last entry, by chunk
  uint32_t i = 0;
  for (uint32_t chunk = 0; chunk < 2; ++chunk) {
    for (uint32_t n = 0; n < patches.entries[chunk]; ++n, ++i) {
      const uint32_t place = entry_place(read_slot_entry(patches.slot, i));
      if (static_cast<int32_t>(place) <= last[chunk]) return record_error(strip, record, "patches out of order");
      if (!exists(strip, record, chunk, place)) return record_error(strip, record, "a patch of a padding weight");
      last[chunk] = static_cast<int32_t>(place);
      const uint32_t bit = chunk * kChunkWeights + place;
      taken[bit / 64] |= uint64_t{1} << bit % 64;
    }
  }
  // Bits behind the last entry: half a byte if the number is odd, then whole bytes up to the group's place.
  const uint32_t end = kSlotHeaderBytes + (i * kEntryBits + 7) / 8;
  const uint32_t limit = patches.slot_bytes - (patches.group != nullptr ? kSlotOverflowBytes : 0);
  const bool clean = all_zero({patches.slot + end, limit - end}) && (i % 2 == 0 || patches.slot[end - 1] < 16);
  if (!clean) return record_error(strip, record, "unused bits of the slot are set");
  int64_t previous = -1;
  for (uint32_t n = 0; n < patches.group_count; ++n) {
    const auto patch = load_le<uint32_t>(patches.group + 4 * n);
    const uint32_t chunk = patch_chunk(patch), place = patch_place(patch), order = patch & kPatchOrderBits;
    if ((patch & kPatchZeroBits) != 0) return record_error(strip, record, "zero bits of an overflow entry are set");
    if (order <= previous) return record_error(strip, record, "overflow entries out of order");
    previous = order;
    if (patch_upper(patch) == kWindowUpper) return record_error(strip, record, "a patch into the window");
    if (!exists(strip, record, chunk, place)) return record_error(strip, record, "a patch of a padding weight");
    if ((taken[order / 64] >> order % 64 & 1) != 0) return record_error(strip, record, "two patches of one weight");
    if (class_of_upper(patch_upper(patch)) < 4) {
      ++classed[chunk];
      if (static_cast<int32_t>(place) < last[chunk]) return record_error(strip, record, "a patch belongs in the slot");
    } else {
      ++unclassed;
    }
  }
  const SlotSplit split = split_patches(patches.slot_bytes, classed, unclassed);
  const bool same = split.entries[0] == patches.entries[0] && split.entries[1] == patches.entries[1] &&
                    split.left == patches.group_count;
  if (!same) return record_error(strip, record, "its patches are not split between slot and group as they must be");
  return Ok{};
}

void Decoder::note_fusing(const Patches& patches, const uint16_t* tile) const {
  bool breaks = false;
  const auto note = [&](uint32_t chunk, uint32_t place) {
    const uint16_t value = tile[place_row(place) * kTileStride + place_col(chunk, place)];
    breaks |= breaks_fusing(bf16_exponent(value), bf16_mantissa(value), pack_.header.base);
  };
  for (uint32_t i = 0; i < patches.entries[0] + patches.entries[1]; ++i) {
    note(i < patches.entries[0] ? 0 : 1, entry_place(read_slot_entry(patches.slot, i)));
  }
  for (uint32_t n = 0; n < patches.group_count; ++n) {
    const auto patch = load_le<uint32_t>(patches.group + 4 * n);
    note(patch_chunk(patch), patch_place(patch));
  }
  if (breaks) fusible_.store(false, std::memory_order_relaxed);
}

Result<void> Decoder::check_groups() const {
  uint64_t expected = 0;
  const uint64_t strips = pack_.header.grid.strips(), records = records_a_strip(steps_);
  for (uint64_t strip = 0; strip < strips && pack_.header.slot_bytes > 0; ++strip) {
    for (uint64_t record = 0; record < records; ++record) {
      GLYD_TRY(const Patches patches, find_patches(strip, record));
      if (patches.group == nullptr) continue;
      if (patches.group != overflow_.data() + 4 * (expected + 1)) {
        return record_error(strip, record, "its overflow group is not at word {}", expected);
      }
      expected += 1 + patches.group_count;
    }
  }
  if (4 * expected != overflow_.size()) {
    return corrupt("pack: fast: {} bytes of overflow, its groups make {}", overflow_.size(), 4 * expected);
  }
  return Ok{};
}

Result<void> Decoder::finish() const {
  if (check_ == Check::kEveryRule && fusible_.load() != pack_.header.fusible) {
    return corrupt("pack: fast: the flag fusible is {}, the weights make it {}", pack_.header.fusible, fusible_.load());
  }
  return Ok{};
}

}  // namespace

Result<std::unique_ptr<RecordDecoder>> open(const OpenPack& pack, Check check) {
  auto decoder = std::make_unique<Decoder>(pack, check);
  if (check == Check::kEveryRule) GLYD_CHECK(decoder->check_groups());
  return std::unique_ptr<RecordDecoder>(std::move(decoder));
}

}  // namespace glyd::fast
