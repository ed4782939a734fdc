// floats_body.hpp - exponents apart from signs and mantissas (spec 8). Included once for each instruction set; the
// compiler vectorises the loops.
#pragma once

#include "codec/format.hpp"
#include "codec/kernels/basics.hpp"
#include "codec/kernels/kernels.hpp"

namespace glyd::codec {
namespace {

// The two high bytes of each fp32 value, and its low ones each apart.
inline void split_halves(const uint8_t* values, size_t count, uint8_t* __restrict highs, uint8_t* __restrict low0,
                         uint8_t* __restrict low1) {
  for (size_t i = 0; i < count; ++i) {
    const uint32_t v = load32(values + 4 * i);
    const auto high = static_cast<uint16_t>(v >> 16);
    low0[i] = static_cast<uint8_t>(v);
    low1[i] = static_cast<uint8_t>(v >> 8);
    std::memcpy(highs + 2 * i, &high, 2);
  }
}

inline void join_halves(const uint8_t* __restrict highs, const uint8_t* __restrict low0, const uint8_t* __restrict low1,
                        size_t count, uint8_t* __restrict values) {
  for (size_t i = 0; i < count; ++i)
    store32(values + 4 * i, uint32_t{load16(highs + 2 * i)} << 16 | uint32_t{low1[i]} << 8 | low0[i]);
}

// bf16: bit 15 sign, 14-7 exponent, 6-0 mantissa. rest = mantissa << 1 | sign.
inline void split_floats(const uint8_t* values, size_t count, uint8_t* __restrict exponents, uint8_t* __restrict rest) {
  for (size_t i = 0; i < count; ++i) {
    const uint32_t v = load16(values + 2 * i);
    exponents[i] = static_cast<uint8_t>(v >> 7);
    rest[i] = static_cast<uint8_t>(v << 1 | v >> 15);
  }
}

inline void join_floats(const uint8_t* __restrict exponents, const uint8_t* __restrict rest, size_t count,
                        uint8_t* __restrict values) {
  for (size_t i = 0; i < count; ++i) {
    const uint32_t r = rest[i];
    const uint16_t v = static_cast<uint16_t>(r << 15 | uint32_t{exponents[i]} << 7 | r >> 1);
    std::memcpy(values + 2 * i, &v, 2);
  }
}

// --- symbols of an exponent and two bits of mantissa; rests of 6 bits ---
constexpr size_t kFloatRun = 512;  // values at a time, through buffers that stay in the nearest cache
constexpr size_t kFloatSlack = 16;

// Eight bytes of six bits each as 48 bits, and back.
GLYD_KERNEL_INLINE uint64_t pack_sixes(uint64_t x) {
  x = (x & 0x003f003f003f003f) | ((x >> 2) & 0x0fc00fc00fc00fc0);
  x = (x & 0x00000fff00000fff) | ((x >> 4) & 0x00fff00000fff000);
  return (x & 0xffffff) | ((x >> 8) & 0xffffff000000);
}
GLYD_KERNEL_INLINE uint64_t unpack_sixes(uint64_t x) {
  x = (x & 0xffffff) | ((x << 8) & 0x00ffffff00000000);
  x = (x & 0x00000fff00000fff) | ((x << 4) & 0x0fff00000fff0000);
  return (x & 0x003f003f003f003f) | ((x << 2) & 0x3f003f003f003f00);
}

// The symbol's upper six bits; `outside` becomes true if they cannot say the exponent.
GLYD_KERNEL_INLINE uint8_t exponent_index(uint32_t exponent, uint32_t base, uint8_t& outside) {
  const auto above = static_cast<uint8_t>(exponent - base);
  const bool zero = exponent == 0;
  outside = static_cast<uint8_t>(outside | static_cast<uint8_t>(!zero & (above >= kExponentZero)));
  return zero ? static_cast<uint8_t>(kExponentZero) : above;
}

inline bool split_floats_joint(const uint8_t* values, size_t count, uint32_t base, uint8_t* __restrict symbols,
                               uint8_t* __restrict rest) {
  uint8_t outside = 0;
  for (size_t begin = 0; begin < count; begin += kFloatRun, values += 2 * kFloatRun) {
    const size_t run = count - begin < kFloatRun ? count - begin : kFloatRun;
    uint8_t* const to = symbols + begin;
    uint8_t sixes[kFloatRun + kFloatSlack];
    for (size_t i = 0; i < run; ++i) {
      const uint32_t v = load16(values + 2 * i);
      to[i] = static_cast<uint8_t>(exponent_index((v >> 7) & 255, base, outside) << 2 | ((v >> 5) & 3));
      sixes[i] = static_cast<uint8_t>((v & 31) << 1 | v >> 15);
    }
    std::memset(sixes + run, 0, kFloatSlack);
    for (size_t i = 0; i < run; i += 8, rest += 6) store64(rest, pack_sixes(load64(sixes + i)));
    if (outside != 0) return false;
  }
  return true;
}

inline void join_floats_joint(const uint8_t* __restrict symbols, const uint8_t* __restrict rest, size_t count,
                              uint32_t base, uint8_t* __restrict values) {
  for (size_t begin = 0; begin < count; begin += kFloatRun, values += 2 * kFloatRun) {
    const size_t run = count - begin < kFloatRun ? count - begin : kFloatRun;
    const size_t bytes = (6 * run + 7) / 8;
    uint8_t packed[6 * kFloatRun / 8 + kFloatSlack], sixes[kFloatRun + kFloatSlack];
    std::memcpy(packed, rest, bytes);
    std::memset(packed + bytes, 0, kFloatSlack);  // loads go past the last bytes
    rest += bytes;
    for (size_t i = 0; i < run; i += 8) store64(sixes + i, unpack_sixes(load64(packed + i / 8 * 6)));
    const uint8_t* const from = symbols + begin;
    for (size_t i = 0; i < run; ++i) {
      const uint32_t s = from[i], r = sixes[i];
      const uint32_t exponent = s >> 2 == kExponentZero ? 0 : (base + (s >> 2)) & 255;
      const auto v = static_cast<uint16_t>(r << 15 | exponent << 7 | (s & 3) << 5 | r >> 1);
      std::memcpy(values + 2 * i, &v, 2);
    }
  }
}

}  // namespace
}  // namespace glyd::codec
