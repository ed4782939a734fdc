// streams_body.hpp - values from bucket codes and their bits (spec 6.2, 6.3); counts of symbols. Included once for each
// instruction set.
#pragma once

#if defined(__BMI2__)
#include <immintrin.h>
#endif

#include "codec/kernels/basics.hpp"
#include "codec/kernels/kernels.hpp"

namespace glyd::codec {
namespace {

GLYD_KERNEL_INLINE uint32_t lowest_bits(uint64_t word, uint32_t count) {
#if defined(__BMI2__)
  return static_cast<uint32_t>(_bzhi_u64(word, count));
#else
  return static_cast<uint32_t>(word & ((uint64_t{1} << count) - 1));
#endif
}

constexpr uint64_t kMostValueBits = 32;

template <int kShift>
inline bool expand_shifted(const uint8_t* codes, size_t count, const Bucket* buckets, const uint8_t* bits,
                           size_t bits_bytes, const uint8_t* readable, uint32_t* values) {
  const size_t room = static_cast<size_t>(readable - bits);
  const uint64_t fast_bits = room < 8 ? 0 : (room - 7) * 8;  // positions below it have 8 bytes to load
  uint64_t position = 0;
  uint32_t all = 0;  // bit 31: a bucket that there is not
  size_t i = 0;
  while (i < count && position < fast_bits) {
    const size_t safe = static_cast<size_t>((fast_bits - position + kMostValueBits - 1) / kMostValueBits);
    const size_t end = count - i < safe ? count : i + safe;
#pragma GCC unroll 4
    for (; i < end; ++i) {
      const Bucket bucket = buckets[codes[i]];
      const uint64_t word = load64(bits + (position >> 3)) >> (position & 7);
      all |= bucket.base;
      values[i] = bucket.base + (lowest_bits(word, bucket.bits) << kShift);
      position += bucket.bits;
    }
  }
  for (; i < count; ++i) {
    const uint32_t n = buckets[codes[i]].bits, least = buckets[codes[i]].base;
    uint64_t word = 0;
    if (position + n > bits_bytes * 8) return false;
    for (size_t k = 0; k < 5 && (position >> 3) + k < bits_bytes; ++k)
      word |= uint64_t{bits[(position >> 3) + k]} << (8 * k);
    word >>= position & 7;
    all |= least;
    values[i] = least + (lowest_bits(word, n) << kShift);
    position += n;
  }
  return (position + 7) / 8 == bits_bytes && all >> 31 == 0;
}

inline bool expand_bits(const uint8_t* codes, size_t count, const Bucket* buckets, int shift, const uint8_t* bits,
                        size_t bits_bytes, const uint8_t* readable, uint32_t* values) {
  switch (shift) {
    case 0:
      return expand_shifted<0>(codes, count, buckets, bits, bits_bytes, readable, values);
    case 1:
      return expand_shifted<1>(codes, count, buckets, bits, bits_bytes, readable, values);
    case 2:
      return expand_shifted<2>(codes, count, buckets, bits, bits_bytes, readable, values);
    default:
      return expand_shifted<kMaxLowBits>(codes, count, buckets, bits, bits_bytes, readable, values);
  }
}

// Four tables: a byte that repeats would else wait for its own last count.
inline void histogram(const uint8_t* bytes, size_t count, uint32_t* counts) {
  uint32_t part[4][256] = {};
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const uint64_t w = load64(bytes + i);
    ++part[0][w & 255], ++part[1][(w >> 8) & 255], ++part[2][(w >> 16) & 255], ++part[3][(w >> 24) & 255];
    ++part[0][(w >> 32) & 255], ++part[1][(w >> 40) & 255], ++part[2][(w >> 48) & 255], ++part[3][w >> 56];
  }
  for (; i < count; ++i) ++part[0][bytes[i]];
  for (int s = 0; s < 256; ++s) counts[s] = part[0][s] + part[1][s] + part[2][s] + part[3][s];
}

}  // namespace
}  // namespace glyd::codec
