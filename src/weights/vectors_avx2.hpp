// vectors_avx2.hpp - what the AVX2 kernels of the layouts share: eight lanes a vector, two row groups g, g + 1 of a
// step (docs/spec/weights.md 1.1), the even group's four lanes in the low half. For files compiled for AVX2 only.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "weights/registry.hpp"

namespace glyd::avx2 {

inline __m256i load(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
inline void store(void* p, __m256i v) { _mm256_storeu_si256(static_cast<__m256i*>(p), v); }

// The four lanes of each of the two row groups, 16 bytes at places `apart` bytes apart.
inline __m256i load_groups(const uint8_t* p, uint32_t apart) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
                                 _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + apart)), 1);
}
inline void store_groups(uint8_t* p, uint32_t apart, __m256i v) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_castsi256_si128(v));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p + apart), _mm256_extracti128_si256(v, 1));
}

// Of each half: the even and the odd words of a and then of b; the words of a and b by turns.
template <int kPick>
inline __m256i pick(__m256i a, __m256i b) {
  return _mm256_castps_si256(_mm256_shuffle_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), kPick));
}
inline __m256i evens(__m256i a, __m256i b) { return pick<0x88>(a, b); }
inline __m256i odds(__m256i a, __m256i b) { return pick<0xdd>(a, b); }
inline __m256i weave_front(__m256i a, __m256i b) { return _mm256_unpacklo_epi32(a, b); }
inline __m256i weave_back(__m256i a, __m256i b) { return _mm256_unpackhi_epi32(a, b); }

template <int kBits>
inline __m256i rotl(__m256i v) {
  return _mm256_or_si256(_mm256_slli_epi32(v, kBits), _mm256_srli_epi32(v, 32 - kBits));
}

// Words 4 x 4 in each half: its own inverse.
inline void transpose(__m256i (&v)[4]) {
  const __m256i a = weave_front(v[0], v[1]), b = weave_back(v[0], v[1]);
  const __m256i c = weave_front(v[2], v[3]), d = weave_back(v[2], v[3]);
  v[0] = _mm256_unpacklo_epi64(a, c);
  v[1] = _mm256_unpackhi_epi64(a, c);
  v[2] = _mm256_unpacklo_epi64(b, d);
  v[3] = _mm256_unpackhi_epi64(b, d);
}

// Registers 0-3 of the lanes (two weights each) to the tile's rows of the step, and back. `rows`: row group g; the
// others stand 1, 8 and 9 rows on.
inline void store_rows(const __m256i (&r)[4], uint16_t* rows) {
  store(rows, _mm256_permute2x128_si256(r[0], r[2], 0x20));
  store(rows + kTileStride, _mm256_permute2x128_si256(r[0], r[2], 0x31));
  store(rows + 8 * kTileStride, _mm256_permute2x128_si256(r[1], r[3], 0x20));
  store(rows + 9 * kTileStride, _mm256_permute2x128_si256(r[1], r[3], 0x31));
}

}  // namespace glyd::avx2
