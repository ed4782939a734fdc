// floats_body.hpp - exponents apart from signs and mantissas (spec 8). Included once for each instruction set; the
// compiler vectorises the loops.
#pragma once

#include "codec/format.hpp"
#include "codec/kernels/basics.hpp"
#include "codec/kernels/kernels.hpp"

namespace glyd::codec {
namespace {

// bf16: bit 15 sign, 14-7 exponent, 6-0 mantissa. rest = mantissa << 1 | sign.
inline void split_floats(const uint8_t* values, size_t count, int width, uint8_t* __restrict exponents,
                         uint8_t* __restrict rest) {
  if (width == 2) {
    for (size_t i = 0; i < count; ++i) {
      const uint32_t v = load16(values + 2 * i);
      exponents[i] = static_cast<uint8_t>(v >> 7);
      rest[i] = static_cast<uint8_t>(v << 1 | v >> 15);
    }
    return;
  }
  for (size_t i = 0; i < count; ++i) {
    const uint32_t v = load32(values + 4 * i);
    exponents[i] = static_cast<uint8_t>(v >> 23);
    const uint32_t r = v << 1 | v >> 31;
    rest[3 * i] = static_cast<uint8_t>(r);
    rest[3 * i + 1] = static_cast<uint8_t>(r >> 8);
    rest[3 * i + 2] = static_cast<uint8_t>(r >> 16);
  }
}

inline void join_floats(const uint8_t* __restrict exponents, const uint8_t* __restrict rest, size_t count, int width,
                        uint8_t* __restrict values) {
  if (width == 2) {
    for (size_t i = 0; i < count; ++i) {
      const uint32_t r = rest[i];
      const uint16_t v = static_cast<uint16_t>(r << 15 | uint32_t{exponents[i]} << 7 | r >> 1);
      std::memcpy(values + 2 * i, &v, 2);
    }
    return;
  }
  for (size_t i = 0; i < count; ++i) {
    const uint32_t r = rest[3 * i] | uint32_t{rest[3 * i + 1]} << 8 | uint32_t{rest[3 * i + 2]} << 16;
    store32(values + 4 * i, r << 31 | uint32_t{exponents[i]} << 23 | r >> 1);
  }
}

// --- symbols of an exponent and two bits of mantissa; rests of 6 or 22 bits ---
constexpr size_t kFloatRun = 512;  // values at a time, through buffers that stay in the nearest cache
constexpr size_t kFloatSlack = 16;
constexpr size_t rest_bytes(size_t count, int width) { return (count * (width == 2 ? 6 : 22) + 7) / 8; }

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

inline bool split_floats_joint(const uint8_t* values, size_t count, int width, uint32_t base,
                               uint8_t* __restrict symbols, uint8_t* __restrict rest) {
  uint8_t outside = 0;
  for (size_t begin = 0; begin < count; begin += kFloatRun, values += kFloatRun * static_cast<size_t>(width)) {
    const size_t run = count - begin < kFloatRun ? count - begin : kFloatRun;
    uint8_t* const to = symbols + begin;
    if (width == 2) {
      uint8_t sixes[kFloatRun + kFloatSlack] = {};
      for (size_t i = 0; i < run; ++i) {
        const uint32_t v = load16(values + 2 * i);
        to[i] = static_cast<uint8_t>(exponent_index((v >> 7) & 255, base, outside) << 2 | ((v >> 5) & 3));
        sixes[i] = static_cast<uint8_t>((v & 31) << 1 | v >> 15);
      }
      for (size_t i = 0; i < run; i += 8, rest += 6) store64(rest, pack_sixes(load64(sixes + i)));
    } else {
      uint32_t parts[kFloatRun + 4] = {};
      for (size_t i = 0; i < run; ++i) {
        const uint32_t v = load32(values + 4 * i);
        to[i] = static_cast<uint8_t>(exponent_index((v >> 23) & 255, base, outside) << 2 | ((v >> 21) & 3));
        parts[i] = (v & 0x1fffff) << 1 | v >> 31;
      }
      for (size_t i = 0; i < run; i += 4, rest += 11) {
        const uint64_t third = parts[i + 2];
        store64(rest, parts[i] | uint64_t{parts[i + 1]} << 22 | third << 44);
        store32(rest + 8, static_cast<uint32_t>(third >> 20) | parts[i + 3] << 2);
      }
    }
    if (outside != 0) return false;
  }
  return true;
}

inline void join_floats_joint(const uint8_t* __restrict symbols, const uint8_t* __restrict rest, size_t count,
                              int width, uint32_t base, uint8_t* __restrict values) {
  for (size_t begin = 0; begin < count; begin += kFloatRun, values += kFloatRun * static_cast<size_t>(width)) {
    const size_t run = count - begin < kFloatRun ? count - begin : kFloatRun;
    const uint8_t* const from = symbols + begin;
    const size_t bytes = rest_bytes(run, width);
    uint8_t packed[rest_bytes(kFloatRun, 4) + kFloatSlack];  // loads go past the last bytes
    std::memcpy(packed, rest, bytes);
    std::memset(packed + bytes, 0, kFloatSlack);
    rest += bytes;
    const auto exponent = [=](uint32_t symbol) {
      return symbol >> 2 == kExponentZero ? 0 : (base + (symbol >> 2)) & 255;
    };
    if (width == 2) {
      uint8_t sixes[kFloatRun + kFloatSlack];
      for (size_t i = 0; i < run; i += 8) store64(sixes + i, unpack_sixes(load64(packed + i / 8 * 6)));
      for (size_t i = 0; i < run; ++i) {
        const uint32_t s = from[i], r = sixes[i];
        const auto v = static_cast<uint16_t>(r << 15 | exponent(s) << 7 | (s & 3) << 5 | r >> 1);
        std::memcpy(values + 2 * i, &v, 2);
      }
      continue;
    }
    uint32_t parts[kFloatRun + 4];
    for (size_t i = 0; i < run; i += 4) {
      const uint64_t low = load64(packed + i / 4 * 11);
      const uint32_t high = load32(packed + i / 4 * 11 + 8);
      parts[i] = static_cast<uint32_t>(low) & 0x3fffff;
      parts[i + 1] = static_cast<uint32_t>(low >> 22) & 0x3fffff;
      parts[i + 2] = static_cast<uint32_t>(low >> 44) | (high & 3) << 20;
      parts[i + 3] = (high >> 2) & 0x3fffff;
    }
    for (size_t i = 0; i < run; ++i) {
      const uint32_t s = from[i], r = parts[i];
      store32(values + 4 * i, r << 31 | exponent(s) << 23 | (s & 3) << 21 | r >> 1);
    }
  }
}

}  // namespace
}  // namespace glyd::codec
