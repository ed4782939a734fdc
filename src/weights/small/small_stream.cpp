#include "weights/small/small_stream.hpp"

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
      if (tables.lengths[pairs[pair]] > tables.lengths[pairs[longest]]) longest = pair;
    }
    // Four of the shortest codes are at most 32 bits (the shortest of 256 is at most 8), so the longest is longer than
    // those.
    bits -= tables.lengths[pairs[longest]] - tables.lengths[kNoPair];
    pairs[longest] = kNoPair;
    ++patches;
  }
  return bits;
}

// The pair of a region whose code is longest; null if all are the zero pair's length.
uint16_t* longest_pair(RecordPairs& record, const EncodeTables& tables, uint32_t stream, uint32_t region,
                       uint32_t& lane) {
  uint16_t* best = nullptr;
  uint32_t length = tables.lengths[kNoPair];
  const uint32_t steps = stream_steps(record.steps, stream);
  for (uint32_t step = 0; step < steps; ++step) {
    for (uint32_t pair = 0; pair < 4; ++pair) {
      for (uint32_t l = 2 * region; l < 2 * region + 2; ++l) {
        uint16_t& candidate = record.pairs[stream].pairs[step][l][pair];
        if (tables.lengths[candidate] <= length) continue;
        length = tables.lengths[candidate];
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
      up |= uint64_t{tables.up[even[pair]]} << up_bits;
      up_bits += tables.lengths[even[pair]];
      down = down << tables.lengths[odd[pair]] | tables.down[odd[pair]];
      down_bits += tables.lengths[odd[pair]];
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
          if (record.pairs[stream].pairs[step][lane][pair] != kNoPair) continue;
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
    out.up[pair] = static_cast<uint16_t>(reversed);
    out.down[pair] = static_cast<uint16_t>(bits);
  }
  for (uint8_t& symbol : out.numbers.symbols) symbol = kNoSymbol;
  for (uint32_t s = 0; s < code.symbols; ++s) out.numbers.symbols[code.alphabet[s]] = static_cast<uint8_t>(s);
  for (uint32_t i = 0; i < 32 * 32; ++i) {
    const uint32_t first = i / 32, second = i % 32, pair = first * 16 + second;
    const bool coded = first < 16 && second < 16 && code.lengths[pair] != 0;
    out.numbers.pairs[i] = static_cast<uint16_t>(coded ? pair : kNoPair);
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
        uint32_t bits = 0, patched = 0;
        for (uint32_t pair = 0; pair < 4; ++pair) {
          bits += tables.lengths[pairs[pair]];
          patched += pairs[pair] >> 8;  // kNoPair is 256
        }
        out.patches += patched;
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
        record.lane_bits[stream][lane] -= static_cast<uint32_t>(tables.lengths[*pair] - tables.lengths[kNoPair]);
        *pair = kNoPair;
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

void mark_pairs(const RecordPairs& record, const EncodeTables& tables, uint8_t* used) {
  for (uint32_t stream = 0; stream < record.streams; ++stream) {
    const uint16_t* pairs = &record.pairs[stream].pairs[0][0][0];
    const uint32_t count = stream_steps(record.steps, stream) * kLanes * 4;
    for (uint32_t i = 0; i < count; ++i) used[pairs[i] == kNoPair ? tables.zero_pair : pairs[i]] = 1;
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
