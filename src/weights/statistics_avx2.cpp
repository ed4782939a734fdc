// statistics_avx2.cpp - exponents counted by vector comparisons: nearly all lie in a band of 16, and a comparison with
// each of those costs less than a store a value.
#include "weights/statistics.hpp"

#if defined(__AVX2__)
#include <immintrin.h>

#include <algorithm>
#include <bit>

namespace glyd {
namespace {

constexpr size_t kVector = 32;               // exponents
constexpr size_t kBlock = 255 * kVector;     // as many as a byte counts
constexpr size_t kHalf = kExponentBand / 2;  // exponents counted in one go: their counts stay in registers

__m256i load(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }

uint64_t sum_bytes(__m256i v) {
  const __m256i sums = _mm256_sad_epu8(v, _mm256_setzero_si256());
  const __m128i two = _mm_add_epi64(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
  return static_cast<uint64_t>(_mm_extract_epi64(two, 0) + _mm_extract_epi64(two, 1));
}

// The exponents of whole vectors of values, less `band`, in no certain order; those outside the band are counted.
void place_in_band(const uint16_t* values, size_t count, uint8_t band, uint8_t* places, uint64_t* counts) {
  const __m256i byte = _mm256_set1_epi16(0xff), first = _mm256_set1_epi8(static_cast<char>(band));
  const __m256i above = _mm256_set1_epi8(static_cast<char>(0x100 - kExponentBand));
  for (size_t i = 0; i < count; i += kVector) {
    const __m256i a = _mm256_and_si256(_mm256_srli_epi16(load(values + i), 7), byte);
    const __m256i b = _mm256_and_si256(_mm256_srli_epi16(load(values + i + 16), 7), byte);
    const __m256i place = _mm256_sub_epi8(_mm256_packus_epi16(a, b), first);
    _mm256_store_si256(reinterpret_cast<__m256i*>(places + i), place);
    const __m256i inside = _mm256_cmpeq_epi8(_mm256_and_si256(place, above), _mm256_setzero_si256());
    for (auto outside = ~static_cast<uint32_t>(_mm256_movemask_epi8(inside)); outside != 0; outside &= outside - 1) {
      ++counts[static_cast<uint8_t>(places[i + static_cast<size_t>(std::countr_zero(outside))] + band)];
    }
  }
}

void count_places(const uint8_t* places, size_t count, size_t from, uint64_t* counts) {
  __m256i sums[kHalf] = {};
  for (size_t i = 0; i < count; i += kVector) {
    const __m256i place = load(places + i);
#pragma GCC unroll 8
    for (size_t k = 0; k < kHalf; ++k) {
      sums[k] = _mm256_sub_epi8(sums[k], _mm256_cmpeq_epi8(place, _mm256_set1_epi8(static_cast<char>(from + k))));
    }
  }
  for (size_t k = 0; k < kHalf; ++k) counts[k] += sum_bytes(sums[k]);
}

}  // namespace

size_t count_exponents_avx2(std::span<const uint16_t> values, uint8_t band, uint64_t* counts) {
  alignas(32) uint8_t places[kBlock];
  const size_t whole = values.size() / kVector * kVector;
  for (size_t begin = 0; begin < whole; begin += kBlock) {
    const size_t count = std::min(kBlock, whole - begin);
    place_in_band(values.data() + begin, count, band, places, counts);
    count_places(places, count, 0, counts + band);
    count_places(places, count, kHalf, counts + band + kHalf);
  }
  return whole;
}

}  // namespace glyd

#else

namespace glyd {
size_t count_exponents_avx2(std::span<const uint16_t>, uint8_t, uint64_t*) { return 0; }
}  // namespace glyd

#endif
