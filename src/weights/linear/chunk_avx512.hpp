// chunk_avx512.hpp - a full chunk of layout `fast` (docs/spec/weights.md 4.2) in registers, exponents shifted. For
// files compiled for AVX-512 only, which include <immintrin.h> and define GLYD_UNROLL.
#pragma once

#include "weights/linear/linear_kernels.hpp"

namespace glyd::avx512 {

inline __m512i load_line(const void* p) { return _mm512_loadu_si512(p); }

template <size_t kBytes, int kLocality>
inline void prefetch_lines(const uint8_t* p) {
  GLYD_UNROLL for (size_t i = 0; i < kBytes; i += 64) __builtin_prefetch(p + i, 0, kLocality);
}

// High words in one register, four of each of a row's four lanes, joined with the low plane's 64 bytes: the first of
// two steps is the unpacked front. `upper`: the exponent's upper bits of each weight, in its byte.
inline __m512i join_high(__m512i words, __m512i rotation, __m512i upper) {
  const __m512i keep = _mm512_set1_epi32(static_cast<int>(fast::kHighMask));
  return _mm512_ternarylogic_epi32(_mm512_rorv_epi32(words, rotation), keep, upper, 0xea);  // (words & keep) | upper
}
inline __m512i window_upper() { return _mm512_set1_epi8(static_cast<char>(upper_byte(fast::kWindowUpper))); }

// put(g, pair, first, second) for g = 0-7 and both pairs of steps: 16 words each, lane 4g + q's weights of the step in
// words 4q to 4q + 3. Asks the caches, by kLocality (3: the first-level one too, 2: the second), for the kChunkBytes at
// `ahead`. upper(g, pair): as join_high has it. after_half(0) and (1): halves of the work are done.
template <int kLocality, typename Upper, typename Put, typename AfterHalf>
inline void decode_chunk(const uint8_t* chunk, const uint8_t* ahead, Upper upper, Put put, AfterHalf after_half) {
  const uint8_t* high = chunk + fast::low_plane_bytes(fast::kChunkSteps);
  const __m512i m0 = _mm512_set1_epi32(0x60606060), m1 = _mm512_set1_epi32(0x18181818),
                m2 = _mm512_set1_epi32(0x06060606);
  // Of lanes 0-3 of one register and of another: a, a, b, b.
  const __m512i pick = _mm512_setr_epi32(0, 0, 16, 16, 1, 1, 17, 17, 2, 2, 18, 18, 3, 3, 19, 19);
  const __m512i turn0 = _mm512_set4_epi32(3, 0, 3, 0), turn1 = _mm512_set4_epi32(2, 5, 3, 0);
  for (size_t half = 0; half < 2; ++half) {
    const __m512i x0 = load_line(high + 64 * half), x1 = load_line(high + 128 + 64 * half),
                  x2 = load_line(high + 256 + 64 * half);
    // t = (x0 & m0) | ((x1 >> 2) & m1) | ((x2 >> 4) & m2)
    const __m512i t01 = _mm512_ternarylogic_epi32(_mm512_srli_epi32(x1, 2), m1, _mm512_and_si512(x0, m0), 0xea);
    const __m512i t = _mm512_ternarylogic_epi32(_mm512_srli_epi32(x2, 4), m2, t01, 0xea);
    GLYD_UNROLL for (size_t g = 0; g < 4; ++g) {
      prefetch_lines<fast::kChunkBytes / 8, kLocality>(ahead + (4 * half + g) * (fast::kChunkBytes / 8));
      const __m512i at = _mm512_add_epi32(pick, _mm512_set1_epi32(static_cast<int>(4 * g)));
      const size_t row = 4 * half + g;
      const __m512i low0 = load_line(chunk + 64 * row), low1 = load_line(chunk + 512 + 64 * row);
      const __m512i high0 = join_high(_mm512_permutex2var_epi32(x0, at, x1), turn0, upper(row, 0)),
                    high1 = join_high(_mm512_permutex2var_epi32(x2, at, t), turn1, upper(row, 1));
      put(row, 0, _mm512_unpacklo_epi8(low0, high0), _mm512_unpackhi_epi8(low0, high0));
      put(row, 1, _mm512_unpacklo_epi8(low1, high1), _mm512_unpackhi_epi8(low1, high1));
    }
    after_half(half);
  }
}

}  // namespace glyd::avx512
