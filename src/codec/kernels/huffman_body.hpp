// huffman_body.hpp - decoding of interleaved Huffman lanes (spec 5.2, 5.3). Included once for each instruction set.
//
// Each lane holds its next bits in a register, lowest first, with a marker bit above them: the number of leading zeros
// is then the number of bits taken since the byte that `at` points to, and no count is kept. A refill loads 63 new bits
// less at most 7; five codes of 11 take 55.
#pragma once

#include "codec/format.hpp"
#include "codec/kernels/basics.hpp"
#include "codec/kernels/kernels.hpp"

namespace glyd::codec {
namespace {

constexpr size_t kSymbolsPerRefill = 5;
constexpr size_t kBytesPerRefill = 7;
constexpr uint64_t kMarker = uint64_t{1} << 63;
static_assert(kSymbolsPerRefill * kMaxCodeBits + 7 < 63);

struct Lane {
  uint64_t bits;
  uint64_t table;  // first entry of the next symbol's table, if there are classes
  const uint8_t* at;
};

GLYD_KERNEL_INLINE void refill(Lane& lane) {
  const int taken = __builtin_clzll(lane.bits);
  lane.at += taken >> 3;
  lane.bits = (load64(lane.at) | kMarker) >> (taken & 7);
}

// Of an entry: where the next symbol's table begins.
GLYD_KERNEL_INLINE uint64_t next_table(uint16_t entry) { return (entry & 0xc0u) << (kMaxCodeBits - 6); }

GLYD_KERNEL_INLINE uint64_t code_bits(uint64_t bits) {
#if defined(__BMI2__)
  uint64_t lowest;  // one instruction; written as a mask, it is compiled to two
  asm("bzhi %2, %1, %0" : "=r"(lowest) : "r"(bits), "r"(uint64_t{kMaxCodeBits}));
  return lowest;
#else
  return bits & ((1 << kMaxCodeBits) - 1);
#endif
}

// A refill's symbols of some lanes, by turns: a lane by itself waits for its own table look-ups, and a core that shares
// its reordering with a second thread does not reach into the next lane.
template <int kGroup, bool kClasses>
GLYD_KERNEL_INLINE void decode_group(const uint16_t* table, Lane* lanes, uint8_t* out, size_t segment) {
  uint64_t bits[kGroup], from[kGroup];
#pragma GCC unroll 4
  for (int s = 0; s < kGroup; ++s) bits[s] = lanes[s].bits, from[s] = lanes[s].table;
#pragma GCC unroll 5
  for (size_t k = 0; k < kSymbolsPerRefill; ++k) {
#pragma GCC unroll 4
    for (int s = 0; s < kGroup; ++s) {
      const uint16_t entry = table[kClasses ? code_bits(bits[s]) | from[s] : code_bits(bits[s])];
      if (kClasses) from[s] = next_table(entry);
      bits[s] >>= entry & 63;
      out[static_cast<size_t>(s) * segment + k] = static_cast<uint8_t>(entry >> 8);
    }
  }
#pragma GCC unroll 4
  for (int s = 0; s < kGroup; ++s) {
    lanes[s].bits = bits[s], lanes[s].table = from[s];
    refill(lanes[s]);
  }
}

template <int kLanes, bool kClasses>
GLYD_KERNEL_INLINE void decode_rounds(const uint16_t* table, Lane* lanes, uint8_t* out, size_t segment, size_t rounds) {
  constexpr int kGroup = kLanes < 4 ? kLanes : 4;
  for (; rounds > 0; --rounds, out += kSymbolsPerRefill) {
#pragma GCC unroll 2
    for (int s = 0; s < kLanes; s += kGroup)
      decode_group<kGroup, kClasses>(table, lanes + s, out + static_cast<size_t>(s) * segment, segment);
  }
}

// One lane's last symbols, loading only what may be loaded. True if the lane ends in its last byte.
inline bool finish_lane(const HuffmanLanes& in, Lane lane, const uint8_t* end, uint8_t* out, size_t symbols) {
  const uint8_t* at = lane.at;
  size_t taken = static_cast<size_t>(__builtin_clzll(lane.bits));
  for (size_t i = 0; i < symbols; ++i) {
    at += taken >> 3;
    taken &= 7;
    if (at > end) return false;
    uint64_t bits = 0;
    if (in.readable - at >= 8)
      bits = load64(at);
    else
      for (int k = 0; at + k < in.readable; ++k) bits |= uint64_t{at[k]} << (8 * k);
    const uint16_t entry = in.table[lane.table >> kMaxCodeBits].entries[(bits >> taken) & 2047];
    if (in.classes) lane.table = next_table(entry);
    taken += entry & 63;
    out[i] = static_cast<uint8_t>(entry >> 8);
  }
  at += (taken + 7) >> 3;
  return at == end;
}

template <int kLanes, bool kClasses>
inline bool decode_lanes(const HuffmanLanes& in) {
  const size_t segment = (in.symbols + kLanes - 1) / kLanes;
  const size_t last = in.symbols - segment * (kLanes - 1);  // the last lane's symbols: never more than `segment`
  Lane lanes[kLanes];
  size_t done = 0;
  const auto readable = [&](int s) { return in.readable - lanes[s].at; };
  bool can_load = true;
  for (int s = 0; s < kLanes; ++s) {
    lanes[s].at = in.begin[s];
    lanes[s].table = 0;
    can_load = can_load && readable(s) >= 8;
  }
  if (can_load) {
    for (Lane& lane : lanes) lane.bits = load64(lane.at) | kMarker;
    for (;;) {
      size_t rounds = (last - done) / kSymbolsPerRefill;
      for (int s = 0; s < kLanes; ++s) {
        // A refill may move `at` by 7 and then loads 8.
        const size_t room = readable(s) < 8 ? 0 : (static_cast<size_t>(readable(s)) - 8) / kBytesPerRefill;
        rounds = room < rounds ? room : rounds;
      }
      if (rounds == 0) break;
      decode_rounds<kLanes, kClasses>(in.table->entries, lanes, in.out + done, segment, rounds);
      done += rounds * kSymbolsPerRefill;
    }
  } else {
    for (Lane& lane : lanes) lane.bits = kMarker;
  }
  bool good = true;
  for (int s = 0; s < kLanes; ++s) {
    const size_t symbols = s == kLanes - 1 ? last : segment;
    good =
        finish_lane(in, lanes[s], in.begin[s + 1], in.out + static_cast<size_t>(s) * segment + done, symbols - done) &&
        good;
  }
  return good;
}

inline bool decode_huffman(const HuffmanLanes& in) {
  if (in.classes)
    return in.lanes == 8   ? decode_lanes<8, true>(in)
           : in.lanes == 4 ? decode_lanes<4, true>(in)
                           : decode_lanes<1, true>(in);
  return in.lanes == 8   ? decode_lanes<8, false>(in)
         : in.lanes == 4 ? decode_lanes<4, false>(in)
                         : decode_lanes<1, false>(in);
}

}  // namespace
}  // namespace glyd::codec
