// small_decode.cpp - opens a pack of layout `small` and decodes its records, trusting or checking every rule.
#include <algorithm>
#include <atomic>

#include "format/bf16.hpp"
#include "weights/small/small.hpp"
#include "weights/small/small_kernels.hpp"

namespace glyd::small {
namespace {

// Where a record's parts stand in the codes array, all inside it.
struct Record {
  uint32_t steps = 0, streams = 0;
  const uint8_t* bits = nullptr;
  uint32_t region_begin[2 * kRegions + 1] = {};  // bits
  const uint8_t* patches = nullptr;
  uint32_t patch_count = 0;
  uint64_t end = 0;  // of the record in the array, in words
};

template <typename... Args>
Error record_error(uint64_t strip, uint64_t record, fmt::format_string<Args...> format, Args&&... args) {
  return corrupt("pack: small: strip {}, record {}: {}", strip, record,
                 fmt::format(format, std::forward<Args>(args)...));
}

class Decoder final : public RecordDecoder {
 public:
  Decoder(const OpenPack& pack, Check check, const PairCode& code)
      : pack_(pack), check_(check), code_(code), steps_(pack.header.grid.steps()), records_(records_a_strip(steps_)) {
    make_canonical(code, canonical_);
    make_lookups(code, canonical_, tables_);
    zero_first_ = code.alphabet[canonical_.zero_pair / 16];
    zero_second_ = code.alphabet[canonical_.zero_pair % 16];
    planes_ = pack.array(kPlanes).data();
    codes_ = pack.array(kCodes);
    strip_places_ = pack.array(kOffsets).data();
    record_places_ = strip_places_ + offsets_table_start(pack.header.grid.strips());
    std::fill(std::begin(symbols_), std::end(symbols_), uint8_t{0});
    for (uint32_t s = 0; s < code.symbols; ++s) symbols_[code.alphabet[s]] = static_cast<uint8_t>(s);
  }

  Result<void> decode(uint64_t strip, uint64_t record, uint16_t* out) const override;
  Result<void> finish() const override;
  Result<void> check_tensor() const;

 private:
  Result<Record> find_record(uint64_t strip, uint64_t record) const;
  uint64_t strip_place(uint64_t strip) const { return load_le<uint64_t>(strip_places_ + 8 * strip); }
  uint32_t record_word(uint64_t strip, uint64_t record) const {
    return load_le<uint32_t>(record_places_ + 4 * (strip * records_ + record));
  }
  uint64_t record_place(uint64_t strip, uint64_t record) const {
    return strip_place(strip) + (record_word(strip, record) & 0xffffffu);
  }
  Result<void> check_regions(uint64_t strip, uint64_t record, const Record& found, uint32_t stream,
                             const StreamEntries& entries) const;
  Result<void> check_record(uint64_t strip, uint64_t record, const Record& found) const;
  Result<void> check_patches(uint64_t strip, uint64_t record, const Record& found, const uint16_t* tile) const;
  Result<void> check_padding(uint64_t strip, uint64_t record, uint32_t steps, const uint16_t* tile) const;
  void note_pairs(uint32_t steps, const uint16_t* tile) const;

  const OpenPack pack_;
  const Check check_;
  const PairCode code_;
  const uint64_t steps_, records_;
  CanonicalCodes canonical_;
  LookupTables tables_;
  uint32_t zero_first_, zero_second_;
  const uint8_t* planes_;
  ByteSpan codes_;
  const uint8_t* strip_places_;
  const uint8_t* record_places_;
  uint8_t symbols_[256];                                  // of the alphabet's exponents
  mutable std::atomic<uint64_t> seen_[kPairs / 64] = {};  // pairs that are written somewhere
  mutable std::atomic<bool> all_seen_{false};
};

Result<Record> Decoder::find_record(uint64_t strip, uint64_t record) const {
  Record found;
  found.steps = steps_of_record(steps_, record);
  found.streams = streams_of_record(found.steps);
  found.patch_count = record_word(strip, record) >> 24;
  const uint64_t words = codes_.size() / 4, length_words = kRegions / 4 * found.streams;
  const uint64_t strip_start = strip_place(strip);
  if (strip_start > words) return record_error(strip, record, "its strip is at word {} of {}", strip_start, words);
  const uint64_t place = strip_start + (record_word(strip, record) & 0xffffffu);
  if (place > words || length_words > words - place)
    return record_error(strip, record, "at word {} of {}", place, words);
  const uint8_t* lengths = codes_.data() + 4 * place;
  found.bits = lengths + 4 * length_words;
  uint32_t bits = 0;
  for (uint32_t stream = 0; stream < found.streams; ++stream) {
    const uint32_t least = least_region_bits(pack_.header.min_bits, stream_steps(found.steps, stream));
    for (uint32_t region = 0; region < kRegions; ++region) {
      found.region_begin[stream * kRegions + region] = bits;
      bits += least + lengths[stream * kRegions + region];
    }
  }
  found.region_begin[found.streams * kRegions] = bits;
  const uint64_t bit_words = (bits + 31) / 32;
  found.end = place + length_words + bit_words + found.patch_count;
  if (found.end > words) return record_error(strip, record, "ends at word {} of {}", found.end, words);
  found.patches = found.bits + 4 * bit_words;
  return found;
}

Result<void> Decoder::decode(uint64_t strip, uint64_t record, uint16_t* out) const {
  GLYD_TRY(const Record found, find_record(strip, record));
  const uint8_t* planes = planes_ + (strip * steps_ + record * kRecordSteps) * kStepPlaneBytes;
  StreamEntries entries;
  for (uint32_t stream = 0; stream < found.streams; ++stream) {
    const uint32_t steps = stream_steps(found.steps, stream);
    StreamBits bits;
    bits.bits = found.bits;
    std::copy_n(found.region_begin + stream * kRegions, kRegions + 1, bits.begin);
    // Before and behind the codes array the pack holds more than kReachBytes: header and offsets, at 128 bytes each.
    if (!kernels().look_up(tables_, bits, steps, entries)) {
      return record_error(strip, record, "stream {}: bits that are no code, or a step of more than 32", stream);
    }
    if (check_ == Check::kEveryRule) GLYD_CHECK(check_regions(strip, record, found, stream, entries));
    kernels().join(entries, planes + stream * kStreamSteps * kStepPlaneBytes, steps,
                   out + stream * kStreamSteps * kStepCols);
  }
  if (check_ == Check::kEveryRule) {
    GLYD_CHECK(check_record(strip, record, found));
    GLYD_CHECK(check_padding(strip, record, found.steps, out));
    GLYD_CHECK(check_patches(strip, record, found, out));
    if (!all_seen_.load(std::memory_order_relaxed)) note_pairs(found.steps, out);
  }
  for (uint32_t i = 0; i < found.patch_count; ++i) {
    const auto patch = load_le<uint32_t>(found.patches + 4 * i);
    const uint32_t step = patch_stream(patch) * kStreamSteps + patch_step(patch);
    const uint32_t row = pair_row(patch_lane(patch), patch_pair(patch)),
                   col = pair_col(patch_lane(patch), patch_pair(patch));
    uint16_t* pair = out + row * kTileStride + step * kStepCols + col;
    pair[0] = static_cast<uint16_t>((pair[0] & 0x807f) | patch_first(patch) << 7);
    pair[1] = static_cast<uint16_t>((pair[1] & 0x807f) | patch_second(patch) << 7);
  }
  return Ok{};
}

// Each region is the shortest that holds its codes, and zero between them where it must be longer.
Result<void> Decoder::check_regions(uint64_t strip, uint64_t record, const Record& found, uint32_t stream,
                                    const StreamEntries& entries) const {
  const uint32_t least = least_region_bits(pack_.header.min_bits, stream_steps(found.steps, stream));
  for (uint32_t region = 0; region < kRegions; ++region) {
    const uint32_t begin = found.region_begin[stream * kRegions + region];
    const uint32_t bits = found.region_begin[stream * kRegions + region + 1] - begin;
    const uint32_t used = entries.used[2 * region] + entries.used[2 * region + 1];
    if (used > bits || (used < bits && bits > least)) {
      return record_error(strip, record, "stream {}, region {}: {} bits, its codes take {}", stream, region, bits,
                          used);
    }
    for (uint32_t bit = begin + entries.used[2 * region]; bit < begin + bits - entries.used[2 * region + 1]; ++bit) {
      if ((found.bits[bit / 8] >> bit % 8 & 1) != 0) return record_error(strip, record, "bits between codes are set");
    }
  }
  return Ok{};
}

// What follows the last region, and where the record ends.
Result<void> Decoder::check_record(uint64_t strip, uint64_t record, const Record& found) const {
  const uint32_t bits = found.region_begin[found.streams * kRegions];
  for (uint32_t bit = bits; bit < round_up(bits, 32u); ++bit) {
    if ((found.bits[bit / 8] >> bit % 8 & 1) != 0)
      return record_error(strip, record, "bits behind the last region are set");
  }
  const uint64_t next = record + 1 < records_ ? record_place(strip, record + 1) : strip_place(strip + 1);
  if (record == 0 && (record_word(strip, 0) & 0xffffffu) != 0)
    return record_error(strip, record, "not at its strip's place");
  if (next != found.end) return record_error(strip, record, "ends at word {}, the next begins at {}", found.end, next);
  return Ok{};
}

Result<void> Decoder::check_patches(uint64_t strip, uint64_t record, const Record& found, const uint16_t* tile) const {
  const Grid& grid = pack_.header.grid;
  const uint64_t row_begin = strip % grid.strips_a_matrix() * kStripRows, col_begin = record * kRecordSteps * kStepCols;
  int64_t previous = -1;
  for (uint32_t i = 0; i < found.patch_count; ++i) {
    const auto patch = load_le<uint32_t>(found.patches + 4 * i);
    if ((patch & kPatchZeroBits) != 0) return record_error(strip, record, "zero bits of a patch are set");
    if ((patch & kPatchOrderBits) <= previous) return record_error(strip, record, "patches out of order");
    previous = patch & kPatchOrderBits;
    const uint32_t step = patch_stream(patch) * kStreamSteps + patch_step(patch);
    const uint32_t row = pair_row(patch_lane(patch), patch_pair(patch));
    const uint32_t col = step * kStepCols + pair_col(patch_lane(patch), patch_pair(patch));
    if (step >= found.steps || row_begin + row >= grid.rows || col_begin + col >= grid.cols) {
      return record_error(strip, record, "a patch of a pair of padding");
    }
    if (patch_first(patch) == zero_first_ && patch_second(patch) == zero_second_) {
      return record_error(strip, record, "a patch gives the zero pair");
    }
    if (col_begin + col + 1 >= grid.cols && patch_second(patch) != zero_second_) {
      return record_error(strip, record, "a patch gives padding another exponent");
    }
    const uint16_t* pair = tile + row * kTileStride + col;
    if (bf16_exponent(pair[0]) != zero_first_ || bf16_exponent(pair[1]) != zero_second_) {
      return record_error(strip, record, "a patched pair is not written as the zero pair");
    }
  }
  return Ok{};
}

// Padding weights as decoded, before patches: the zero pair's exponents, signs and mantissas zero.
Result<void> Decoder::check_padding(uint64_t strip, uint64_t record, uint32_t steps, const uint16_t* tile) const {
  const Grid& grid = pack_.header.grid;
  const uint64_t row = strip % grid.strips_a_matrix() * kStripRows, col = record * kRecordSteps * kStepCols;
  const uint64_t rows = std::min<uint64_t>(kStripRows, grid.rows - row);
  const uint64_t cols = std::min<uint64_t>(steps * kStepCols, grid.cols - col);
  for (uint64_t r = 0; r < kStripRows; ++r) {
    for (uint64_t c = r < rows ? cols : 0; c < steps * kStepCols; ++c) {
      if (tile[r * kTileStride + c] != bf16_join(0, c % 2 == 0 ? zero_first_ : zero_second_, 0)) {
        return record_error(strip, record, "a padding weight is not zero");
      }
    }
  }
  return Ok{};
}

void Decoder::note_pairs(uint32_t steps, const uint16_t* tile) const {
  uint8_t seen[kPairs] = {};
  for (uint32_t row = 0; row < kStripRows; ++row) {
    for (uint32_t col = 0; col < steps * kStepCols; col += 2) {
      const uint16_t* pair = tile + row * kTileStride + col;
      seen[symbols_[bf16_exponent(pair[0])] * 16 + symbols_[bf16_exponent(pair[1])]] = 1;
    }
  }
  uint32_t count = 0;
  for (uint32_t i = 0; i < kPairs / 64; ++i) {
    uint64_t bits = 0;
    for (uint32_t pair = 0; pair < 64; ++pair) bits |= uint64_t{seen[i * 64 + pair]} << pair;
    count += static_cast<uint32_t>(std::popcount(seen_[i].fetch_or(bits, std::memory_order_relaxed) | bits));
  }
  if (count == canonical_.pairs) all_seen_.store(true, std::memory_order_relaxed);
}

// The rules that no record shows.
Result<void> Decoder::check_tensor() const {
  const uint64_t strips = pack_.header.grid.strips();
  if (strip_place(0) != 0) return corrupt("pack: small: the first strip is not at the start of the codes");
  if (4 * strip_place(strips) != codes_.size())
    return corrupt("pack: small: the codes end at word {}, not {}", strip_place(strips), codes_.size() / 4);
  if (!all_zero({strip_places_ + 8 * (strips + 1), offsets_table_start(strips) - 8 * (strips + 1)})) {
    return corrupt("pack: small: bytes between the tables of offsets are set");
  }
  const bool fusible = zero_first_ != 255 && zero_second_ != 255;
  if (fusible != pack_.header.fusible) {
    return corrupt("pack: small: the flag fusible is {}, the zero pair makes it {}", pack_.header.fusible, fusible);
  }
  return Ok{};
}

Result<void> Decoder::finish() const {
  if (check_ == Check::kEveryRule && !all_seen_.load())
    return corrupt("pack: small: a pair has a code but is never written");
  return Ok{};
}

}  // namespace

Result<std::unique_ptr<RecordDecoder>> open(const OpenPack& pack, Check check) {
  GLYD_TRY(const PairCode code, read_table(pack.array(kTable), pack.header.symbols));
  auto decoder = std::make_unique<Decoder>(pack, check, code);
  if (check == Check::kEveryRule) GLYD_CHECK(decoder->check_tensor());
  return std::unique_ptr<RecordDecoder>(std::move(decoder));
}

}  // namespace glyd::small
