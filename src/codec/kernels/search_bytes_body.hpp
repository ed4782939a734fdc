// search_bytes_body.hpp - the search of level default. Included once for each instruction set, after search_body.hpp;
// all find the same sequences.
//
// One table of one candidate, by a hash of five bytes. Entries are the lowest 16 bits of positions: the window is 64
// KiB, so that they say all, and the table stays in the nearest cache.
#pragma once

#include "codec/format.hpp"
#include "codec/kernels/basics.hpp"
#include "codec/kernels/kernels.hpp"
#include "codec/kernels/search_body.hpp"

namespace glyd::codec {
namespace {

constexpr int kBytesStepShift = 6;

inline Sequence* search_default(const DefaultSearch& in) {
  constexpr int kShift = 64 - DefaultSearch::kTableLog;
  const uint8_t* const base = in.unit;
  const uint8_t* const stop = base + in.end;
  const uint8_t* const limit = stop - kSearchMargin - 8;  // lengths are counted from up to five bytes on
  uint16_t* const table = in.table;
  Sequence* out = in.out;
  const auto hash = [](uint64_t word) { return ((word << 24) * kHashPrime) >> kShift; };
  const auto position = [=](const uint8_t* p) { return static_cast<uint16_t>(p - base); };
  const uint8_t* anchor = base + in.begin;
  const uint8_t* at = anchor + (in.begin == 0);
  uint32_t recent = 1;
  while (at < limit) {
    const uint64_t word = load64(at);
    uint16_t& slot = table[hash(word)];
    const uint32_t back = static_cast<uint16_t>(position(at) - slot);  // 0: nothing, or 64 KiB back, which is too far
    const uint8_t* from = at - back;
    slot = position(at);
    uint32_t length, offset;
    if (load32(at + 1) == load32(at + 1 - recent)) {
      ++at;
      offset = recent;
      length = 4 + common_bytes(at + 4, at + 4 - recent, stop);
    } else if (load32(from) == static_cast<uint32_t>(word) && back != 0) {
      length = 4 + common_bytes(at + 4, from + 4, stop);
      offset = back;
      while (at > anchor && from > base && at[-1] == from[-1]) --at, --from, ++length;
      recent = offset;
    } else {
      at += (static_cast<size_t>(at - anchor) >> kBytesStepShift) + 1;
      continue;
    }
    *out++ = {static_cast<uint32_t>(at - anchor), length, offset};
    at += length;
    anchor = at;
    if (at >= limit) break;
    table[hash(load64(at - 2))] = position(at - 2);
  }
  return out;
}

}  // namespace
}  // namespace glyd::codec
