// small_encode.cpp - packs a tensor in four passes over it: exponents (the alphabet), pairs (the code), lengths of
// regions (min_bits, sizes), bytes.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <vector>

#include "base/parallel.hpp"
#include "format/bf16.hpp"
#include "format/small_plan.hpp"
#include "weights/small/small.hpp"
#include "weights/small/small_stream.hpp"
#include "weights/tile.hpp"
#include "weights/weights.hpp"

namespace glyd::small {
namespace {

// Of each record, kept from the pass over lengths to that over bytes: 66 bytes for 4,096 weights.
struct RecordLengths {
  uint16_t region_bits[2 * kRegions];
  uint16_t patches;
};
constexpr uint8_t kNoSymbol = 16;          // an exponent outside the alphabet
constexpr uint64_t kMostPlace = 0xffffff;  // words from a strip's start to its last record

class Encoder {
 public:
  Encoder(const TensorSource& source, int threads) : source_(source), threads_(threads) {}
  std::optional<AlignedBuffer> run();

 private:
  uint64_t strips() const { return source_.grid.strips(); }
  uint64_t steps() const { return source_.grid.steps(); }
  uint64_t records() const { return records_a_strip(steps()); }
  void load(uint64_t strip, uint64_t record, TileFill fill, uint16_t* tile) const {
    load_tile(source_, strip, record * kRecordSteps, steps_of_record(steps(), record), fill, tile);
  }
  // Runs `body(begin, end)` over the strips.
  template <typename Body>
  void over_strips(Body body) const {
    parallel_for(strips(), strip_grain(source_.grid), threads_, body);
  }

  PairCounts count_pairs(const Alphabet& alphabet) const;
  void use_code(const PairCode& code);
  RegionHistogram measure_records();
  bool size_records(uint32_t min_bits);
  bool number(uint64_t strip, uint64_t record, uint32_t min_bits, uint16_t* tile, RecordPairs& out) const;
  void encode_strip(uint64_t strip, const PackHeader& header, uint8_t* pack);
  // Notes the pairs that a record writes, until all with a code have been seen.
  void note_used(const RecordPairs& pairs);
  void forget_used();
  // Takes the pairs that were never written out of `counts`; false if there are none.
  bool drop_unused(PairCounts& counts) const;

  const TensorSource& source_;
  const int threads_;
  PairCode code_;
  EncodeTables tables_;
  TileFill fill_;  // padding: the zero pair
  std::vector<RecordLengths> lengths_;
  std::vector<uint32_t> places_;        // of each record: words from its strip's start, patches << 24
  std::vector<uint64_t> strip_places_;  // words
  std::mutex mutex_;
  uint8_t used_[kPairs] = {};
  std::atomic<bool> all_used_{false};
  uint8_t count_index_[256] = {};  // an exponent's place in the alphabet that pairs were counted by
};

// Whole pairs and, with the commonest exponent as their second, the half pairs of an odd last column; not padding.
PairCounts Encoder::count_pairs(const Alphabet& alphabet) const {
  uint8_t symbols[256];
  std::fill(std::begin(symbols), std::end(symbols), kNoSymbol);
  for (uint32_t s = 0; s < alphabet.symbols; ++s) symbols[alphabet.exponents[s]] = static_cast<uint8_t>(s);
  PairCounts total;
  std::mutex mutex;
  const Grid& grid = source_.grid;
  const TileFill fill{0, bf16_join(0, alphabet.commonest, 0)};
  over_strips([&](uint64_t begin, uint64_t end) {
    alignas(64) uint16_t tile[kStripRows * kTileStride] = {};
    uint64_t counts[2][32 * 32] = {};  // two: neighbours of one kind do not wait for each other
    for (uint64_t strip = begin; strip < end; ++strip) {
      const uint64_t rows = rows_of_strip(grid, strip).count;
      for (uint64_t record = 0; record < records(); ++record) {
        load(strip, record, fill, tile);
        const uint64_t cols = std::min<uint64_t>(kTileStride, grid.cols - record * kTileStride);
        for (uint64_t r = 0; r < rows; ++r) {
          const uint16_t* row = tile + r * kTileStride;
          for (uint64_t c = 0; c < cols; c += 2) {
            ++counts[c / 2 % 2][symbols[bf16_exponent(row[c])] * 32u + symbols[bf16_exponent(row[c + 1])]];
          }
        }
      }
    }
    const std::lock_guard lock(mutex);
    for (uint32_t i = 0; i < 32 * 32; ++i) {
      const uint32_t first = i / 32, second = i % 32;
      const uint64_t count = counts[0][i] + counts[1][i];
      if (first < 16 && second < 16) {
        total.pairs[first * 16 + second] += count;
      } else {
        total.others += count;
      }
    }
  });
  return total;
}

void Encoder::use_code(const PairCode& code) {
  code_ = code;
  CanonicalCodes canonical;
  make_canonical(code, canonical);
  make_encode_tables(code, canonical, tables_);
  fill_.even = bf16_join(0, code.alphabet[canonical.zero_pair / 16], 0);
  fill_.odd = bf16_join(0, code.alphabet[canonical.zero_pair % 16], 0);
  forget_used();
}

void Encoder::note_used(const RecordPairs& pairs) {
  if (all_used_.load(std::memory_order_relaxed)) return;
  uint8_t used[kPairs + 1] = {};
  mark_pairs(pairs, used);
  used[tables_.zero_pair] |= used[kNoPair];
  const std::lock_guard lock(mutex_);
  bool all = true;
  for (uint32_t pair = 0; pair < kPairs; ++pair) {
    used_[pair] |= used[pair];
    all &= code_.lengths[pair] == 0 || used_[pair] != 0;
  }
  if (all) all_used_.store(true, std::memory_order_relaxed);
}

void Encoder::forget_used() {
  std::fill(std::begin(used_), std::end(used_), uint8_t{0});
  all_used_.store(false);
}

bool Encoder::drop_unused(PairCounts& counts) const {
  // The code's alphabet may lack symbols of the counts', so exponents name the pairs.
  bool dropped = false;
  for (uint32_t pair = 0; pair < kPairs; ++pair) {
    if (code_.lengths[pair] == 0 || used_[pair] != 0) continue;
    dropped = true;
    const uint32_t counted =
        static_cast<uint32_t>(count_index_[code_.alphabet[pair / 16]]) * 16 + count_index_[code_.alphabet[pair % 16]];
    counts.others += counts.pairs[counted];
    counts.pairs[counted] = 0;
  }
  return dropped;
}

RegionHistogram Encoder::measure_records() {
  lengths_.resize(strips() * records());
  RegionHistogram histogram{};
  over_strips([&](uint64_t begin, uint64_t end) {
    alignas(64) uint16_t tile[kStripRows * kTileStride] = {};
    RecordPairs pairs;
    RegionHistogram found{};
    for (uint64_t strip = begin; strip < end; ++strip) {
      for (uint64_t record = 0; record < records(); ++record) {
        load(strip, record, fill_, tile);
        number_record(tile, steps_of_record(steps(), record), tables_, pairs);
        note_used(pairs);
        RecordLengths& lengths = lengths_[strip * records() + record];
        lengths.patches = static_cast<uint16_t>(pairs.patches);
        for (uint32_t stream = 0; stream < pairs.streams; ++stream) {
          for (uint32_t region = 0; region < kRegions; ++region) {
            const uint32_t bits = pairs.region_bits(stream, region);
            lengths.region_bits[stream * kRegions + region] = static_cast<uint16_t>(bits);
            ++found[bits * kStreamSteps / stream_steps(pairs.steps, stream)];
          }
        }
      }
    }
    const std::lock_guard lock(mutex_);
    for (uint32_t i = 0; i < found.size(); ++i) histogram[i] += found[i];
  });
  return histogram;
}

// A record's pairs as they are written; false if it cannot be.
bool Encoder::number(uint64_t strip, uint64_t record, uint32_t min_bits, uint16_t* tile, RecordPairs& out) const {
  load(strip, record, fill_, tile);
  number_record(tile, steps_of_record(steps(), record), tables_, out);
  return shorten_regions(tables_, min_bits, out) && out.patches <= kMostPatches;
}

// Fills places_ and strip_places_; false if a record cannot be written.
bool Encoder::size_records(uint32_t min_bits) {
  places_.resize(strips() * records());
  std::atomic<bool> fits{true};
  over_strips([&](uint64_t begin, uint64_t end) {
    alignas(64) uint16_t tile[kStripRows * kTileStride] = {};
    RecordPairs pairs;
    for (uint64_t i = begin * records(); i < end * records(); ++i) {
      const RecordLengths& lengths = lengths_[i];
      const uint32_t record_steps = steps_of_record(steps(), i % records());
      const uint32_t streams = streams_of_record(record_steps);
      uint32_t bits = 0, patches = lengths.patches;
      bool too_long = false;
      for (uint32_t region = 0; region < streams * kRegions; ++region) {
        const uint32_t least = least_region_bits(min_bits, stream_steps(record_steps, region / kRegions));
        too_long |= lengths.region_bits[region] > least + 255;
        bits += std::max<uint32_t>(least, lengths.region_bits[region]);
      }
      uint32_t words = streams * kRegions / 4 + (bits + 31) / 32 + patches;
      if (too_long) {
        if (!number(i / records(), i % records(), min_bits, tile, pairs)) fits.store(false);
        words = record_words(pairs, min_bits);
        patches = pairs.patches;
      }
      if (patches > kMostPatches) fits.store(false);
      if (!fits.load(std::memory_order_relaxed)) return;
      places_[i] = words | patches << 24;  // its size for now; 2 x 16 x 959 bits and 255 patches are below 2^24 words
    }
  });
  if (!fits.load()) return false;
  strip_places_.resize(strips() + 1);
  uint64_t place = 0;
  for (uint64_t strip = 0; strip < strips(); ++strip) {
    strip_places_[strip] = place;
    for (uint64_t i = strip * records(); i < (strip + 1) * records(); ++i) {
      const uint64_t words = places_[i] & kMostPlace, relative = place - strip_places_[strip];
      if (relative > kMostPlace) return false;
      places_[i] = static_cast<uint32_t>(relative) | (places_[i] & 0xff000000u);
      place += words;
    }
  }
  strip_places_[strips()] = place;
  return true;
}

void Encoder::encode_strip(uint64_t strip, const PackHeader& header, uint8_t* pack) {
  alignas(64) uint16_t tile[kStripRows * kTileStride] = {};
  alignas(64) uint8_t bytes[2 * kRegions * 120 + 2 * kRegions + 4 * kMostPatches + 64];
  static_assert((kMostMinBits + 255 + 7) / 8 <= 120);
  RecordPairs pairs;
  uint8_t* planes = pack + header.array_offset(kPlanes) + strip * steps() * kStepPlaneBytes;
  uint8_t* codes = pack + header.array_offset(kCodes) + 4 * strip_places_[strip];
  for (uint64_t record = 0; record < records(); ++record) {
    number(strip, record, header.min_bits, tile, pairs);
    note_used(pairs);
    for (uint32_t stream = 0; stream < pairs.streams; ++stream) {
      const uint32_t stream_length = stream_steps(pairs.steps, stream);
      kernels().split(tile + stream * kStreamSteps * kStepCols, stream_length, planes);
      planes += stream_length * kStepPlaneBytes;
    }
    const uint32_t size = 4 * record_words(pairs, header.min_bits);
    std::memset(bytes, 0, size + 8);
    write_record(pairs, tables_, header.min_bits, tile, bytes);
    std::memcpy(codes, bytes, size);
    codes += size;
  }
}

std::optional<AlignedBuffer> Encoder::run() {
  const Alphabet alphabet = choose_alphabet(exponent_counts(source_.values, threads_));
  for (uint32_t s = 0; s < alphabet.symbols; ++s) count_index_[alphabet.exponents[s]] = static_cast<uint8_t>(s);
  PairCounts counts = count_pairs(alphabet);
  // A pair with a code must be written somewhere (spec 5.2), but all its places may have become patches: then again
  // without it. Ends, for each turn leaves fewer pairs.
  while (true) {
    const PairCode code = choose_code(alphabet, counts);
    if (code.symbols == 0) return std::nullopt;
    use_code(code);
    const uint32_t min_bits = choose_min_bits(measure_records());
    if (drop_unused(counts)) continue;
    if (!size_records(min_bits)) return std::nullopt;
    PackHeader header = plan_header(source_.grid, source_.transposed, code_, min_bits, strip_places_[strips()]);
    if (header.pack_bytes >= raw_pack_bytes(source_.grid)) return std::nullopt;
    header.fusible = bf16_exponent(fill_.even) != 255 && bf16_exponent(fill_.odd) != 255;
    AlignedBuffer pack = new_pack(source_, header.pack_bytes);
    clear_array_padding(header, pack.data());
    forget_used();
    over_strips([&](uint64_t begin, uint64_t end) {
      for (uint64_t strip = begin; strip < end; ++strip) encode_strip(strip, header, pack.data());
    });
    if (drop_unused(counts)) continue;
    uint8_t* offsets = pack.data() + header.array_offset(kOffsets);
    std::memset(offsets, 0, offsets_table_start(strips()));
    std::memcpy(offsets, strip_places_.data(), 8 * strip_places_.size());
    std::memcpy(offsets + offsets_table_start(strips()), places_.data(), 4 * places_.size());
    write_table(code_, pack.data() + header.array_offset(kTable));
    write_pack_header(header, pack.data());
    return pack;
  }
}

}  // namespace

Result<std::optional<AlignedBuffer>> pack(const TensorSource& source, int threads) {
  return Encoder(source, threads).run();
}

}  // namespace glyd::small
