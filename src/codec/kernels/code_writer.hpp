// code_writer.hpp - a lane of prefix codes, bit by bit behind each other (spec 5.2).
#pragma once

#include "codec/kernels/basics.hpp"
#include "codec/kernels/kernels.hpp"

namespace glyd::codec {

// code_of(symbol): its code above kCodeBitsBelow bits that count the code's. Five codes of 11 bits and a rest of 7 fit
// the register. Returns the end of what was written; up to 7 bytes behind it are overwritten.
template <typename CodeOf>
GLYD_KERNEL_INLINE uint8_t* write_codes(const uint8_t* symbols, size_t count, uint8_t* out, CodeOf code_of) {
  uint64_t held = 0;
  uint32_t bits = 0;
  const auto put = [&](uint8_t symbol) __attribute__((always_inline)) {
    const uint32_t code = code_of(symbol);
    held |= uint64_t{code >> kCodeBitsBelow} << bits;
    bits += code & ((1u << kCodeBitsBelow) - 1);
  };
  size_t i = 0;
  for (; i + 5 <= count; i += 5) {
    for (size_t k = 0; k < 5; ++k) put(symbols[i + k]);
    store64(out, held);
    out += bits >> 3;
    held >>= bits & ~7u;
    bits &= 7;
  }
  for (; i < count; ++i) put(symbols[i]);
  for (; bits > 0; held >>= 8, bits = bits < 8 ? 0 : bits - 8) *out++ = static_cast<uint8_t>(held);
  return out;
}

}  // namespace glyd::codec
