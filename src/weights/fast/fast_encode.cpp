// fast_encode.cpp - packs a tensor in two passes over it: exponents (the window) and patches a record (the slots), then
// bytes. The first pass counts patches of the window that a sample asks for; where all exponents ask for another, as
// they hardly do, and where rows do not lie together, patches are counted in a pass of their own.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <mutex>
#include <vector>

#include "base/parallel.hpp"
#include "format/bf16.hpp"
#include "format/fast_plan.hpp"
#include "weights/fast/fast.hpp"
#include "weights/fast/fast_kernels.hpp"
#include "weights/statistics.hpp"
#include "weights/tile.hpp"
#include "weights/weights.hpp"

namespace glyd::fast {
namespace {

struct RecordPatches {
  uint16_t classed[2];
  uint16_t unclassed;
};

// The patches of one record in ascending order, as a group holds them.
struct PatchList {
  uint32_t count = 0;
  uint32_t patches[kRecordWeights];
};

// visit(i, bit) for the set bits of 32 words, in order. Most words are zero: they are passed over without a branch
// each.
template <typename Visit>
inline void for_bits(const uint64_t (&words)[32], Visit visit) {
  uint32_t some = 0;
  for (uint32_t i = 0; i < 32; ++i) some |= uint32_t{words[i] != 0} << i;
  for (; some != 0; some &= some - 1) {
    const auto i = static_cast<uint32_t>(std::countr_zero(some));
    for (uint64_t word = words[i]; word != 0; word &= word - 1) visit(i, static_cast<uint32_t>(std::countr_zero(word)));
  }
}
static_assert(2 * kStripRows == 32 && kRecordWeights / 64 == 32);

class Encoder {
 public:
  Encoder(const TensorSource& source, int threads) : source_(source), threads_(threads) {}

  std::optional<AlignedBuffer> run();

 private:
  uint64_t steps() const { return source_.grid.steps(); }
  uint64_t records() const { return records_a_strip(steps()); }
  uint64_t grain() const { return strip_grain(source_.grid); }
  void load(uint64_t strip, uint64_t record, uint16_t* tile) const {
    load_tile(source_, strip, record * kRecordSteps, steps_of_record(steps(), record), fill_, tile);
  }
  // The record's 16 rows where they stand, or, where the tensor has them not so, loaded to `tile`.
  struct Rows {
    const uint16_t* first;
    uint64_t stride;
  };
  Rows rows_of(uint64_t strip, uint64_t record, uint16_t* tile) const;

  void set_base(uint32_t base);
  SlotTotals choose_window();
  SlotTotals count_patches(ExponentCounts* counts);
  RecordPatches count_record(const Rows& rows, uint32_t steps) const;
  uint64_t place_groups(uint32_t slot_bytes);
  void encode_strip(uint64_t strip, const PackHeader& header, uint8_t* pack);
  void list_patches(uint16_t* tile, uint32_t steps, PatchList& list);

  const TensorSource& source_;
  const int threads_;
  uint32_t base_ = 1;
  uint8_t shifted_[256];  // e' of e
  TileFill fill_;
  std::vector<RecordPatches> record_patches_;
  std::vector<uint64_t> strip_groups_;  // where each strip's first group stands in the overflow array, in words
  std::atomic<bool> fusible_{true};
};

void Encoder::set_base(uint32_t base) {
  base_ = base;
  for (uint32_t e = 0; e < 256; ++e) shifted_[e] = static_cast<uint8_t>(shift_exponent(e, base_));
  // A padding weight has code 0 and is not patched: the window's first exponent.
  fill_.even = fill_.odd = bf16_join(0, base_, 0);
}

Encoder::Rows Encoder::rows_of(uint64_t strip, uint64_t record, uint16_t* tile) const {
  const Grid& grid = source_.grid;
  const StripRows rows = rows_of_strip(grid, strip);
  const uint64_t col = record * kRecordSteps * kStepCols;
  const bool whole = rows.count == kStripRows && col + kRecordSteps * kStepCols <= grid.cols;
  if (whole && !source_.transposed) return {source_.values.data() + rows.begin + col, grid.cols};
  load(strip, record, tile);
  return {tile, kTileStride};
}

RecordPatches Encoder::count_record(const Rows& rows, uint32_t steps) const {
  uint64_t masks[2 * kStripRows];
  kernels().window_masks(rows.first, rows.stride, steps, base_, masks);
  RecordPatches result{};
  for_bits(masks, [&](uint32_t i, uint32_t col) {
    const uint32_t chunk = i / kStripRows;
    const uint16_t value = rows.first[i % kStripRows * rows.stride + chunk * 64 + col];
    const bool classed = class_of_upper(shifted_[bf16_exponent(value)] / 8u) < 4;
    result.classed[chunk] = static_cast<uint16_t>(result.classed[chunk] + classed);
    result.unclassed = static_cast<uint16_t>(result.unclassed + !classed);
  });
  return result;
}

// Strips begin .. end-1 where rows lie together.
std::span<const uint16_t> values_of_strips(const TensorSource& source, uint64_t begin, uint64_t end) {
  const auto place = [&](uint64_t strip) {
    return strip == source.grid.strips() ? source.values.size() : rows_of_strip(source.grid, strip).begin;
  };
  return source.values.subspan(place(begin), place(end) - place(begin));
}

// Adds all exponents to `counts` too, if not null: the tensor's rows must lie together.
SlotTotals Encoder::count_patches(ExponentCounts* counts) {
  record_patches_.resize(source_.grid.strips() * records());
  SlotTotals totals;
  std::mutex mutex;
  parallel_for(source_.grid.strips(), grain(), threads_, [&](uint64_t begin, uint64_t end) {
    alignas(64) uint16_t tile[kStripRows * kTileStride] = {};
    SlotTotals sum;
    ExponentCounts own{};
    if (counts != nullptr) add_exponents(values_of_strips(source_, begin, end), own);
    for (uint64_t strip = begin; strip < end; ++strip) {
      for (uint64_t record = 0; record < records(); ++record) {
        const uint32_t record_steps = steps_of_record(steps(), record);
        const RecordPatches found = count_record(rows_of(strip, record, tile), record_steps);
        record_patches_[strip * records() + record] = found;
        sum.add(record_steps, {found.classed[0], found.classed[1]}, found.unclassed);
      }
    }
    const std::lock_guard lock(mutex);
    totals.add(sum);
    for (size_t e = 0; counts != nullptr && e < own.size(); ++e) (*counts)[e] += own[e];
  });
  return totals;
}

// Some values of every part of the tensor.
ExponentCounts sample_exponents(std::span<const uint16_t> values) {
  constexpr size_t kPieces = 32, kPiece = 2048;
  ExponentCounts counts{};
  for (size_t i = 0; i < kPieces; ++i) {
    const size_t begin = values.size() / kPieces * i;
    add_exponents(values.subspan(begin, std::min(kPiece, values.size() - begin)), counts);
  }
  return counts;
}

SlotTotals Encoder::choose_window() {
  if (source_.transposed) {
    set_base(choose_base(exponent_counts(source_.values, threads_)));
    return count_patches(nullptr);
  }
  set_base(choose_base(sample_exponents(source_.values)));
  ExponentCounts counts{};
  const SlotTotals totals = count_patches(&counts);
  const uint32_t base = choose_base(counts);
  if (base == base_) return totals;
  set_base(base);
  return count_patches(nullptr);
}

// Fills strip_groups_; returns the words of all groups.
uint64_t Encoder::place_groups(uint32_t slot_bytes) {
  const uint64_t strips = source_.grid.strips();
  strip_groups_.resize(strips);
  uint64_t words = 0;
  for (uint64_t strip = 0; strip < strips; ++strip) {
    strip_groups_[strip] = words;
    if (slot_bytes == 0) continue;
    for (uint64_t record = 0; record < records(); ++record) {
      const RecordPatches& found = record_patches_[strip * records() + record];
      const uint32_t slot = slot_bytes_of(slot_bytes, steps_of_record(steps(), record));
      words += group_words(split_patches(slot, {found.classed[0], found.classed[1]}, found.unclassed));
    }
  }
  return words;
}

// Lists the patches and gives the patched weights of the tile an exponent in the window that has their code.
void Encoder::list_patches(uint16_t* tile, uint32_t steps, PatchList& list) {
  uint64_t masks[2 * kStripRows];
  kernels().window_masks(tile, kTileStride, steps, base_, masks);
  uint64_t places[kRecordWeights / 64] = {};
  uint8_t uppers[kRecordWeights];
  bool breaks = false;
  for_bits(masks, [&](uint32_t i, uint32_t col) {
    const uint32_t chunk = i / kStripRows, row = i % kStripRows;
    uint16_t& value = tile[row * kTileStride + chunk * 64 + col];
    const uint32_t exponent = bf16_exponent(value), shifted = shifted_[exponent];
    breaks |= breaks_fusing(exponent, bf16_mantissa(value), base_);
    value = static_cast<uint16_t>((value & 0x807f) | (base_ + shifted % 8) << 7);
    const uint32_t step = col / kStepCols, lane = fragment_lane(row, col % kStepCols);
    const uint32_t place = chunk * kChunkWeights + place_of(step, lane, fragment_index(row, col % kStepCols));
    places[place / 64] |= uint64_t{1} << place % 64;
    uppers[place] = static_cast<uint8_t>(shifted / 8);
  });
  if (breaks) fusible_.store(false, std::memory_order_relaxed);
  list.count = 0;
  for_bits(places, [&](uint32_t i, uint32_t bit) {
    const uint32_t place = i * 64 + bit;
    list.patches[list.count++] = make_patch(place / kChunkWeights, place % kChunkWeights, uppers[place]);
  });
}

// Writes a record's slot (zero so far) and its group; returns the group's words.
uint32_t write_patches(const PatchList& list, const SlotSplit& split, uint32_t slot_bytes, uint8_t* slot,
                       uint64_t group_place, uint8_t* overflow) {
  if (list.count == 0) return 0;
  uint32_t room[2] = {split.entries[0], split.entries[1]};
  uint8_t* group = overflow + 4 * group_place;
  uint32_t entries = 0, left = 0;
  for (uint32_t i = 0; i < list.count; ++i) {
    const uint32_t patch = list.patches[i], chunk = patch_chunk(patch),
                   patch_class = class_of_upper(patch_upper(patch));
    if (patch_class < 4 && room[chunk] > 0) {
      --room[chunk];
      write_slot_entry(slot, entries++, make_slot_entry(patch_place(patch), patch_class));
    } else {
      store_le<uint32_t>(group + 4 * ++left, patch);
    }
  }
  slot[0] = static_cast<uint8_t>(split.entries[0]);
  slot[1] = static_cast<uint8_t>(split.entries[1]);
  if (left == 0) return 0;
  slot[0] |= kSlotFlag;
  store_le<uint32_t>(slot + slot_bytes - kSlotOverflowBytes, static_cast<uint32_t>(group_place));
  store_le<uint32_t>(group, left);
  return 1 + left;
}

void Encoder::encode_strip(uint64_t strip, const PackHeader& header, uint8_t* pack) {
  alignas(64) uint16_t tile[kStripRows * kTileStride] = {};
  PatchList list;
  uint8_t* planes = pack + header.array_offset(kPlanes) + strip * strip_bytes(steps());
  uint8_t* slot = pack + header.array_offset(kPatches) + strip * strip_slot_bytes(header.slot_bytes, steps());
  uint64_t group_place = strip_groups_[strip];
  for (uint64_t record = 0; record < records(); ++record) {
    const uint32_t record_steps = steps_of_record(steps(), record);
    load(strip, record, tile);
    list_patches(tile, record_steps, list);
    kernels().encode_planes(tile, record_steps, base_, planes);
    planes += record_bytes(record_steps);
    const RecordPatches& found = record_patches_[strip * records() + record];
    const uint32_t slot_size = slot_bytes_of(header.slot_bytes, record_steps);
    const SlotSplit split = split_patches(slot_size, {found.classed[0], found.classed[1]}, found.unclassed);
    std::memset(slot, 0, slot_size);
    group_place += write_patches(list, split, slot_size, slot, group_place, pack + header.array_offset(kOverflow));
    slot += slot_size;
  }
}

std::optional<AlignedBuffer> Encoder::run() {
  const SlotTotals totals = choose_window();
  const uint32_t slot_bytes = choose_slot_bytes(source_.grid, totals);
  const uint64_t words = place_groups(slot_bytes);
  PackHeader header = plan_header(source_.grid, source_.transposed, base_, slot_bytes, words);
  // A group's place is a u32.
  if (words > UINT32_MAX || header.pack_bytes >= raw_pack_bytes(source_.grid)) return std::nullopt;
  AlignedBuffer pack = new_pack(source_, header.pack_bytes);
  clear_array_padding(header, pack.data());
  parallel_for(source_.grid.strips(), grain(), threads_, [&](uint64_t begin, uint64_t end) {
    for (uint64_t strip = begin; strip < end; ++strip) encode_strip(strip, header, pack.data());
  });
  header.fusible = fusible_.load();
  write_pack_header(header, pack.data());
  return pack;
}

}  // namespace

Result<std::optional<AlignedBuffer>> pack(const TensorSource& source, int threads) {
  return Encoder(source, threads).run();
}

}  // namespace glyd::fast
