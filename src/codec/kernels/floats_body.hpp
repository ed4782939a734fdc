// floats_body.hpp - exponents apart from signs and mantissas (spec 8). Included once for each instruction set; the
// compiler vectorises the loops.
#pragma once

#include "codec/kernels/basics.hpp"

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

}  // namespace
}  // namespace glyd::codec
