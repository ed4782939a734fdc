// vectors_avx512.hpp - what the AVX-512 kernels of the layouts share: sixteen lanes a vector, four row groups g ... g +
// 3 of a step (docs/spec/weights.md 1.1), a quarter of four lanes each. For files compiled for AVX-512 only.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "weights/registry.hpp"

namespace glyd::avx512 {

inline __m512i load(const void* p) { return _mm512_loadu_si512(p); }
inline void store(void* p, __m512i v) { _mm512_storeu_si512(p, v); }

// The four lanes of each of the four row groups, 16 bytes at places `apart` bytes apart.
inline __m512i load_groups(const uint8_t* p, uint32_t apart) {
  const auto at = [&](uint32_t i) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + i * apart)); };
  const __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(at(0)), at(1), 1);
  const __m256i high = _mm256_inserti128_si256(_mm256_castsi128_si256(at(2)), at(3), 1);
  return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}
inline void store_groups(uint8_t* p, uint32_t apart, __m512i v) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_castsi512_si128(v));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p + apart), _mm512_extracti64x2_epi64(v, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p + 2 * apart), _mm512_extracti64x2_epi64(v, 2));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p + 3 * apart), _mm512_extracti64x2_epi64(v, 3));
}

// Of each quarter: the even and the odd words of a and then of b; the words of a and b by turns.
inline __m512i evens(__m512i a, __m512i b) {
  return _mm512_castps_si512(_mm512_shuffle_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b), 0x88));
}
inline __m512i odds(__m512i a, __m512i b) {
  return _mm512_castps_si512(_mm512_shuffle_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b), 0xdd));
}
inline __m512i weave_front(__m512i a, __m512i b) { return _mm512_unpacklo_epi32(a, b); }
inline __m512i weave_back(__m512i a, __m512i b) { return _mm512_unpackhi_epi32(a, b); }

// Words 4 x 4 in each quarter: its own inverse.
inline void transpose(__m512i (&v)[4]) {
  const __m512i a = weave_front(v[0], v[1]), b = weave_back(v[0], v[1]);
  const __m512i c = weave_front(v[2], v[3]), d = weave_back(v[2], v[3]);
  v[0] = _mm512_unpacklo_epi64(a, c);
  v[1] = _mm512_unpackhi_epi64(a, c);
  v[2] = _mm512_unpacklo_epi64(b, d);
  v[3] = _mm512_unpackhi_epi64(b, d);
}

// Two neighbouring rows of a tile as one vector.
inline void store_two_rows(uint16_t* rows, __m512i two) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(rows), _mm512_castsi512_si256(two));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(rows + kTileStride), _mm512_extracti64x4_epi64(two, 1));
}
inline __m512i load_two_rows(const uint16_t* rows) {
  return _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows))),
                            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows + kTileStride)), 1);
}

// Registers 0-3 of the lanes (two weights each) to the tile's rows of the step. `rows`: row group g; the others stand
// 1, 2, 3 and 8-11 rows on. Left halves come from registers 0 and 1, right halves from 2 and 3.
inline void store_rows(const __m512i (&r)[4], uint16_t* rows) {
  const __m512i front = _mm512_set_epi64(11, 10, 3, 2, 9, 8, 1, 0), back = _mm512_set_epi64(15, 14, 7, 6, 13, 12, 5, 4);
  store_two_rows(rows, _mm512_permutex2var_epi64(r[0], front, r[2]));
  store_two_rows(rows + 2 * kTileStride, _mm512_permutex2var_epi64(r[0], back, r[2]));
  store_two_rows(rows + 8 * kTileStride, _mm512_permutex2var_epi64(r[1], front, r[3]));
  store_two_rows(rows + 10 * kTileStride, _mm512_permutex2var_epi64(r[1], back, r[3]));
}

}  // namespace glyd::avx512
