// small_stream.hpp - which pairs of a record are coded and which patched, and the bits of its regions. No allocation.
// Spec: docs/spec/weights.md 5.3, 5.4.
#pragma once

#include <cstdint>

#include "weights/small/small_kernels.hpp"

namespace glyd::small {

// What encoding looks up by a pair's number. kNoPair stands for a patched pair: it is written as the zero pair.
struct EncodeTables {
  uint8_t lengths[kPairs + 1];
  uint32_t codes[kPairs + 1];  // bits 0-15 the code, its first bit lowest; bits 16-31 its first bit highest
  uint32_t zero_pair;
  uint16_t patched;  // what StreamPairs hold of a patched pair
  PairNumbers numbers;
};
void make_encode_tables(const PairCode& code, const CanonicalCodes& canonical, EncodeTables& out);

// One record's pairs, numbered, with the rule of 32 bits a step met.
struct RecordPairs {
  uint32_t steps, streams;
  StreamPairs pairs[2];
  uint32_t lane_bits[2][kLanes];
  uint32_t patches;  // pairs with kNoPair
  uint32_t region_bits(uint32_t stream, uint32_t region) const {
    return lane_bits[stream][2 * region] + lane_bits[stream][2 * region + 1];
  }
};

// Numbers the pairs of a tile. In a step of more than 32 bits the pair with the longest code is patched (of equal ones
// the first) until it fits.
void number_record(const uint16_t* tile, uint32_t steps, const EncodeTables& tables, RecordPairs& out);

// In a region of more than `least` + 255 bits the same, of equal codes the one whose patch comes first. False if
// patches alone do not shorten it enough.
bool shorten_regions(const EncodeTables& tables, uint32_t min_bits, RecordPairs& record);

// The record's 4-byte words with this min_bits.
uint32_t record_words(const RecordPairs& record, uint32_t min_bits);

// Marks the pairs that are written: used[pair] = 1 (kNoPair for patched ones).
void mark_pairs(const RecordPairs& record, uint8_t* used);

// Length bytes, regions and patches to `out`, which has room for record_words() words and 8 bytes, all zero.
void write_record(const RecordPairs& record, const EncodeTables& tables, uint32_t min_bits, const uint16_t* tile,
                  uint8_t* out);

}  // namespace glyd::small
