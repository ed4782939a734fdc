// encode_body.hpp - what the entropy stage writes: offsets' symbols, bits beside symbols, Huffman lanes. Included once
// for each instruction set: shifts by a variable are three steps without those of AVX2's age.
#pragma once

#include <bit>

#include "codec/format.hpp"
#include "codec/kernels/basics.hpp"
#include "codec/kernels/code_writer.hpp"
#include "codec/kernels/kernels.hpp"

namespace glyd::codec {
namespace {

// A float's exponent is the logarithm, if rounding cannot reach the next one: the bit below the highest goes.
inline void offset_codes(const uint32_t* values, size_t count, uint8_t* codes) {
  constexpr uint32_t kExponentBias = 127, kMantissaBits = 23;
  for (size_t i = 0; i < count; ++i) {
    const uint32_t v = values[i];
    const auto rounded = static_cast<float>(static_cast<int32_t>(v & ~(v >> 1)));
    const uint32_t log = (std::bit_cast<uint32_t>(rounded) >> kMantissaBits) - kExponentBias;
    codes[i] = static_cast<uint8_t>((log - 3) << kMaxLowBits | (v & ((1u << kMaxLowBits) - 1)));
  }
}

inline uint8_t* pack_bits(const uint32_t* values, const uint8_t* codes, size_t count, const Bucket* buckets, int shift,
                          uint8_t* out) {
  uint64_t held = 0;
  uint32_t bits = 0;
  for (size_t i = 0; i < count; ++i) {
    const uint32_t n = buckets[codes[i]].bits;
    held |= ((values[i] >> shift) & ((uint64_t{1} << n) - 1)) << bits;
    bits += n;
    store64(out, held);
    out += bits >> 3;
    held >>= bits & ~7u;
    bits &= 7;
  }
  if (bits > 0) *out++ = static_cast<uint8_t>(held);
  return out;
}

inline uint8_t* encode_lane(const uint32_t* codes, const uint8_t* symbols, size_t count, uint8_t* out) {
  return write_codes(symbols, count, out, [codes](uint8_t symbol) { return codes[symbol]; });
}

}  // namespace
}  // namespace glyd::codec
