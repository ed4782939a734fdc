// coded_tables.cpp - buckets of offsets and lengths (spec 6.2, 6.3).
#include <array>

#include "codec/lz/coded.hpp"

namespace glyd::codec {
namespace {

// Symbol s: bucket s >> low_bits, whose values v lie in [8 << bucket, 16 << bucket) and agree in their low bits.
consteval BucketTable make_offset_buckets(int low_bits) {
  BucketTable table{};
  for (uint32_t s = 0; s < 256; ++s) {
    const uint32_t bucket = s >> low_bits, low = s & ((1u << low_bits) - 1);
    const bool used = bucket <= 27;  // v < 2^31: offsets above a unit's length are refused where they are used
    table.of[s].base = used ? (8u << bucket) + low - kOffsetBias : UINT32_MAX;
    table.of[s].bits = static_cast<uint32_t>(used ? static_cast<int>(bucket) + 3 - low_bits : 0);
  }
  return table;
}

consteval BucketTable make_length_buckets() {
  BucketTable table{};
  for (uint32_t s = 0; s < 256; ++s) {
    const uint32_t log = 4 + (s - 16) / 2;
    const bool used = s < 16 || log <= 18;
    table.of[s].base = s < 16 ? s : used ? (2 + (s & 1)) << (log - 1) : UINT32_MAX;
    table.of[s].bits = static_cast<uint32_t>(s < 16 || !used ? 0 : log - 1);
  }
  return table;
}

constexpr std::array<BucketTable, kMaxLowBits + 1> kOffsetBuckets = {make_offset_buckets(0), make_offset_buckets(1),
                                                                     make_offset_buckets(2), make_offset_buckets(3)};
constexpr BucketTable kLengthBuckets = make_length_buckets();

}  // namespace

const BucketTable& offset_buckets(int low_bits) { return kOffsetBuckets[static_cast<size_t>(low_bits)]; }
const BucketTable& length_buckets() { return kLengthBuckets; }

}  // namespace glyd::codec
