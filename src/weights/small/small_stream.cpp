#include "weights/small/small_stream.hpp"

#include <algorithm>

#include "base/bytes.hpp"
#include "format/bf16.hpp"
#include "weights/registry.hpp"

namespace glyd::small {
namespace {

constexpr uint32_t kMostLengthByte = 255;

uint32_t region_length(const RecordPairs& record, uint32_t min_bits, uint32_t stream, uint32_t region) {
  const uint32_t least = least_region_bits(min_bits, stream_steps(record.steps, stream));
  const uint32_t bits = record.region_bits(stream, region);
  return bits < least ? least : bits;
}

uint32_t pair_number(uint16_t pair) { return pair & kPairNumberMask; }
uint32_t pair_length(uint16_t pair) { return static_cast<uint32_t>(pair) >> kPairLengthShift; }

// ORs `count` <= 32 bits at bit `place` of a zeroed string that has 8 bytes to spare.
void put_bits(uint8_t* string, uint32_t place, uint64_t bits) {
  uint8_t* p = string + place / 8;
  store_le<uint64_t>(p, load_le<uint64_t>(p) | bits << place % 8);
}

// Patches the longest-coded pair of a lane's step until it has 32 bits at most; returns its bits.
uint32_t shorten_step(uint16_t* pairs, uint32_t bits, const EncodeTables& tables, uint32_t& patches) {
  while (bits > kMostStepBits) {
    uint32_t longest = 0;
    for (uint32_t pair = 1; pair < 4; ++pair) {
      if (pair_length(pairs[pair]) > pair_length(pairs[longest])) longest = pair;
    }
    // Four of the shortest codes are at most 32 bits (the shortest of 256 is at most 8), so the longest is longer than
    // those.
    bits -= pair_length(pairs[longest]) - pair_length(tables.patched);
    pairs[longest] = tables.patched;
    ++patches;
  }
  return bits;
}

// The pair of a region whose code is longest; null if all are the zero pair's length.
uint16_t* longest_pair(RecordPairs& record, const EncodeTables& tables, uint32_t stream, uint32_t region,
                       uint32_t& lane) {
  uint16_t* best = nullptr;
  uint32_t length = pair_length(tables.patched);
  const uint32_t steps = stream_steps(record.steps, stream);
  for (uint32_t step = 0; step < steps; ++step) {
    for (uint32_t pair = 0; pair < 4; ++pair) {
      for (uint32_t l = 2 * region; l < 2 * region + 2; ++l) {
        uint16_t& candidate = record.pairs[stream].pairs[step][l][pair];
        if (pair_length(candidate) <= length) continue;
        length = pair_length(candidate);
        best = &candidate;
        lane = l;
      }
    }
  }
  return best;
}

void write_lanes(const RecordPairs& record, const EncodeTables& tables, uint32_t stream, uint32_t region,
                 uint32_t begin, uint32_t end, uint8_t* string) {
  for (uint32_t step = 0; step < stream_steps(record.steps, stream); ++step) {
    const uint16_t* even = record.pairs[stream].pairs[step][2 * region];
    const uint16_t* odd = record.pairs[stream].pairs[step][2 * region + 1];
    uint64_t up = 0, down = 0;
    uint32_t up_bits = 0, down_bits = 0;
    for (uint32_t pair = 0; pair < 4; ++pair) {
      const uint32_t up_code = tables.codes[pair_number(even[pair])], down_code = tables.codes[pair_number(odd[pair])];
      up |= uint64_t{up_code & 0xffff} << up_bits;
      up_bits += pair_length(even[pair]);
      down = down << pair_length(odd[pair]) | down_code >> 16;
      down_bits += pair_length(odd[pair]);
    }
    put_bits(string, begin, up);
    begin += up_bits;
    end -= down_bits;
    put_bits(string, end, down);
  }
}

uint8_t* write_patches(const RecordPairs& record, const uint16_t* tile, uint8_t* out) {
  for (uint32_t step = 0; step < kStreamSteps; ++step) {
    for (uint32_t stream = 0; stream < record.streams; ++stream) {
      if (step >= stream_steps(record.steps, stream)) continue;
      for (uint32_t pair = 0; pair < 4; ++pair) {
        for (uint32_t lane = 0; lane < kLanes; ++lane) {
          if (pair_number(record.pairs[stream].pairs[step][lane][pair]) != kNoPair) continue;
          const uint16_t* values = tile + pair_row(lane, pair) * kTileStride +
                                   (stream * kStreamSteps + step) * kStepCols + pair_col(lane, pair);
          store_le<uint32_t>(out,
                             make_patch(lane, pair, stream, step, bf16_exponent(values[0]), bf16_exponent(values[1])));
          out += 4;
        }
      }
    }
  }
  return out;
}

}  // namespace

void make_encode_tables(const PairCode& code, const CanonicalCodes& canonical, EncodeTables& out) {
  out.zero_pair = canonical.zero_pair;
  for (uint32_t pair = 0; pair <= kPairs; ++pair) {
    const uint32_t coded = pair == kNoPair ? canonical.zero_pair : pair;
    const uint32_t bits = canonical.codes[coded], length = code.lengths[coded];
    uint32_t reversed = 0;
    for (uint32_t i = 0; i < length; ++i) reversed |= (bits >> i & 1) << (length - 1 - i);
    out.lengths[pair] = static_cast<uint8_t>(length);
    out.codes[pair] = reversed | bits << 16;
  }
  out.patched = static_cast<uint16_t>(kNoPair | static_cast<uint32_t>(out.lengths[kNoPair]) << kPairLengthShift);
  std::fill(std::begin(out.numbers), std::end(out.numbers), out.patched);
  for (uint32_t pair = 0; pair < kPairs; ++pair) {
    if (code.lengths[pair] == 0) continue;
    const uint32_t first = code.alphabet[pair / 16], second = code.alphabet[pair % 16];
    out.numbers[second << 8 | first] =
        static_cast<uint16_t>(pair | static_cast<uint32_t>(code.lengths[pair]) << kPairLengthShift);
  }
}

void number_record(const uint16_t* tile, uint32_t steps, const EncodeTables& tables, RecordPairs& out) {
  out.steps = steps;
  out.streams = streams_of_record(steps);
  out.patches = 0;
  for (uint32_t stream = 0; stream < out.streams; ++stream) {
    const uint32_t stream_length = stream_steps(steps, stream);
    kernels().number(tile + stream * kStreamSteps * kStepCols, stream_length, tables.numbers, out.pairs[stream]);
    for (uint32_t lane = 0; lane < kLanes; ++lane) out.lane_bits[stream][lane] = 0;
    for (uint32_t step = 0; step < stream_length; ++step) {
      for (uint32_t lane = 0; lane < kLanes; ++lane) {
        uint16_t* pairs = out.pairs[stream].pairs[step][lane];
        const auto four = load_le<uint64_t>(pairs);
        // The sum of the four lengths, in the highest 16 bits.
        uint32_t bits =
            static_cast<uint32_t>((four >> kPairLengthShift & 0x000f000f000f000full) * 0x0001000100010001ull >> 48);
        out.patches += static_cast<uint32_t>((four / kNoPair & 0x0001000100010001ull) * 0x0001000100010001ull >> 48);
        if (bits > kMostStepBits) bits = shorten_step(pairs, bits, tables, out.patches);
        out.lane_bits[stream][lane] += bits;
      }
    }
  }
}

bool shorten_regions(const EncodeTables& tables, uint32_t min_bits, RecordPairs& record) {
  for (uint32_t stream = 0; stream < record.streams; ++stream) {
    const uint32_t most = least_region_bits(min_bits, stream_steps(record.steps, stream)) + kMostLengthByte;
    for (uint32_t region = 0; region < kRegions; ++region) {
      while (record.region_bits(stream, region) > most) {
        uint32_t lane = 0;
        uint16_t* pair = longest_pair(record, tables, stream, region, lane);
        if (pair == nullptr) return false;
        record.lane_bits[stream][lane] -= pair_length(*pair) - pair_length(tables.patched);
        *pair = tables.patched;
        ++record.patches;
      }
    }
  }
  return true;
}

uint32_t record_words(const RecordPairs& record, uint32_t min_bits) {
  uint32_t bits = 0;
  for (uint32_t stream = 0; stream < record.streams; ++stream) {
    for (uint32_t region = 0; region < kRegions; ++region) bits += region_length(record, min_bits, stream, region);
  }
  return record.streams * kRegions / 4 + (bits + 31) / 32 + record.patches;
}

void mark_pairs(const RecordPairs& record, uint8_t* used) {
  for (uint32_t stream = 0; stream < record.streams; ++stream) {
    const uint16_t* pairs = &record.pairs[stream].pairs[0][0][0];
    const uint32_t count = stream_steps(record.steps, stream) * kLanes * 4;
    for (uint32_t i = 0; i < count; ++i) used[pair_number(pairs[i])] = 1;
  }
}

void write_record(const RecordPairs& record, const EncodeTables& tables, uint32_t min_bits, const uint16_t* tile,
                  uint8_t* out) {
  uint8_t* string = out + record.streams * kRegions;
  uint32_t begin = 0;
  for (uint32_t stream = 0; stream < record.streams; ++stream) {
    const uint32_t least = least_region_bits(min_bits, stream_steps(record.steps, stream));
    for (uint32_t region = 0; region < kRegions; ++region) {
      const uint32_t bits = region_length(record, min_bits, stream, region);
      *out++ = static_cast<uint8_t>(bits - least);
      write_lanes(record, tables, stream, region, begin, begin + bits, string);
      begin += bits;
    }
  }
  if (record.patches > 0) write_patches(record, tile, string + (begin + 31) / 32 * 4);
}

}  // namespace glyd::small
