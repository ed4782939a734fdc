// linear_avx512.cpp - products with AVX-512 BF16: vdpbf16ps adds both products of a pair of columns to an fp32 sum, so
// weights and x stay bf16. (The instruction takes subnormal inputs as zero.)
#include "weights/linear/linear_kernels.hpp"

#if defined(__AVX512BF16__) && defined(__AVX512BW__) && defined(__AVX512VBMI__)
// g++ 12 warns of its own header's deliberately undefined registers.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop

#include <algorithm>

#define GLYD_UNROLL _Pragma("GCC unroll 8")  // sums must stay in registers

namespace glyd {
namespace {

constexpr size_t kWidth = 16;
constexpr size_t kStep = 32;  // columns of one register

inline __m512i load(const void* p) { return _mm512_loadu_si512(p); }
inline __m512i load(__mmask32 mask, const void* p) { return _mm512_maskz_loadu_epi16(mask, p); }
inline __m512 multiply_add(__m512 sum, __m512i w, __m512i x) {
  return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(w), reinterpret_cast<__m512bh>(x));
}

// Rows row .. row+kRows-1 times kTokens tokens: at most 24 sums, the rows' weights and one x fill the 32 registers.
template <size_t kRows, size_t kTokens>
inline void dot_block(const DotArgs& args, size_t row, size_t token) {
  static_assert(kRows * kTokens + std::min(kRows, size_t{4}) < 32);
  __m512 sum[kTokens][kRows];
  float* const sums = args.sums + (token * kStripRows + row) * kWidth;
  GLYD_UNROLL for (size_t t = 0; t < kTokens; ++t) {
    GLYD_UNROLL for (size_t r = 0; r < kRows; ++r) sum[t][r] = _mm512_loadu_ps(sums + (t * kStripRows + r) * kWidth);
  }
  const uint8_t* tile = args.weights;
  const uint16_t* x = args.x + token * args.x_stride;
  for (size_t begin = 0; begin < args.cols; begin += args.tile_cols, tile += args.tile_bytes) {
    const size_t cols = std::min(args.cols - begin, args.tile_cols);
    const uint8_t* w[kRows];
    GLYD_UNROLL for (size_t r = 0; r < kRows; ++r) w[r] = tile + args.row_offset[row + r];
    size_t c = 0;
    for (; c + kStep <= cols; c += kStep) {
      GLYD_UNROLL for (size_t r = 0; r < kRows; ++r) {
        const __m512i ws = load(w[r] + 2 * c);
        GLYD_UNROLL for (size_t t = 0; t < kTokens; ++t) {
          sum[t][r] = multiply_add(sum[t][r], ws, load(x + t * args.x_stride + begin + c));
        }
      }
    }
    if (c < cols) {
      const auto mask = static_cast<__mmask32>((uint32_t{1} << (cols - c)) - 1);
      GLYD_UNROLL for (size_t r = 0; r < kRows; ++r) {
        const __m512i ws = load(mask, w[r] + 2 * c);
        GLYD_UNROLL for (size_t t = 0; t < kTokens; ++t) {
          sum[t][r] = multiply_add(sum[t][r], ws, load(mask, x + t * args.x_stride + begin + c));
        }
      }
    }
  }
  GLYD_UNROLL for (size_t t = 0; t < kTokens; ++t) {
    GLYD_UNROLL for (size_t r = 0; r < kRows; ++r) _mm512_storeu_ps(sums + (t * kStripRows + r) * kWidth, sum[t][r]);
  }
}

template <size_t kRows, size_t kTokens>
inline void dot_rows(const DotArgs& args, size_t token) {
  for (size_t row = 0; row < args.rows; row += kRows) dot_block<kRows, kTokens>(args, row, token);
}

void dot(const DotArgs& args) {
  size_t token = 0;
  // 6 tokens by 4 rows: 10 loads for 24 products. What is left over goes in one piece.
  for (; token + 6 <= args.tokens; token += 6) dot_rows<4, 6>(args, token);
  switch (args.tokens - token) {
    case 1:
      return dot_rows<8, 1>(args, token);
    case 2:
      return dot_rows<8, 2>(args, token);
    case 3:
      return dot_rows<8, 3>(args, token);
    case 4:
      return dot_rows<4, 4>(args, token);
    case 5:
      return dot_rows<4, 5>(args, token);
    default:
      return;
  }
}

void reduce(const float* sums, float* out) {
  for (size_t r = 0; r < kStripRows; ++r) out[r] = _mm512_reduce_add_ps(_mm512_loadu_ps(sums + r * kWidth));
}

void reduce_fragments(const float* sums, float* out) {
  GLYD_UNROLL for (size_t g = 0; g < kFragmentRows; ++g) {
    const __m512 s = _mm512_loadu_ps(sums + g * kWidth);
    out[g] = _mm512_mask_reduce_add_ps(0x5555, s);
    out[g + kFragmentRows] = _mm512_mask_reduce_add_ps(0xaaaa, s);
  }
}

// High words in one register, four of each of a row's four lanes, joined with the low plane's 64 bytes: a row of a
// fragment tile by two steps.
inline void join_steps(__m512i words, __m512i rotation, const uint8_t* low, uint16_t* out) {
  const __m512i keep = _mm512_set1_epi32(static_cast<int>(fast::kHighMask));
  const __m512i window = _mm512_set1_epi8(fast::kWindowUpper << 2);  // the exponent's fixed upper bits
  // (words & keep) | window
  const __m512i high = _mm512_ternarylogic_epi32(_mm512_rorv_epi32(words, rotation), keep, window, 0xea);
  const __m512i lows = load(low);
  _mm512_store_si512(out, _mm512_unpacklo_epi8(lows, high));
  _mm512_store_si512(out + kFragmentStep, _mm512_unpackhi_epi8(lows, high));
}

template <size_t kBytes>
inline void prefetch(const uint8_t* p) {
  GLYD_UNROLL for (size_t i = 0; i < kBytes; i += 64) _mm_prefetch(reinterpret_cast<const char*>(p + i), _MM_HINT_T0);
}

void decode_chunk(const uint8_t* chunk, uint16_t* tile) {
  const uint8_t* high = chunk + fast::low_plane_bytes(fast::kChunkSteps);
  const __m512i m0 = _mm512_set1_epi32(0x60606060), m1 = _mm512_set1_epi32(0x18181818),
                m2 = _mm512_set1_epi32(0x06060606);
  // Of lanes 0-3 of one register and of another: a, a, b, b.
  const __m512i pick = _mm512_setr_epi32(0, 0, 16, 16, 1, 1, 17, 17, 2, 2, 18, 18, 3, 3, 19, 19);
  const __m512i turn0 = _mm512_set4_epi32(3, 0, 3, 0), turn1 = _mm512_set4_epi32(2, 5, 3, 0);
  for (size_t half = 0; half < 2; ++half) {
    const __m512i x0 = load(high + 64 * half), x1 = load(high + 128 + 64 * half), x2 = load(high + 256 + 64 * half);
    // t = (x0 & m0) | ((x1 >> 2) & m1) | ((x2 >> 4) & m2)
    const __m512i t01 = _mm512_ternarylogic_epi32(_mm512_srli_epi32(x1, 2), m1, _mm512_and_si512(x0, m0), 0xea);
    const __m512i t = _mm512_ternarylogic_epi32(_mm512_srli_epi32(x2, 4), m2, t01, 0xea);
    GLYD_UNROLL for (size_t g = 0; g < 4; ++g) {
      prefetch<fast::kChunkBytes / 8>(chunk + kPrefetchAhead + (4 * half + g) * (fast::kChunkBytes / 8));
      const __m512i at = _mm512_add_epi32(pick, _mm512_set1_epi32(static_cast<int>(4 * g)));
      const size_t row = 4 * half + g;
      uint16_t* out = tile + row * kTileStride;
      join_steps(_mm512_permutex2var_epi32(x0, at, x1), turn0, chunk + 64 * row, out);
      join_steps(_mm512_permutex2var_epi32(x2, at, t), turn1, chunk + 512 + 64 * row, out + 2 * kFragmentStep);
    }
  }
}

}  // namespace

const LinearKernels& linear_kernels_avx512() {
  static constexpr LinearKernels kernels{.width = kWidth,
                                         .dot = dot,
                                         .reduce = reduce,
                                         .reduce_fragments = reduce_fragments,
                                         .decode_chunk = decode_chunk};
  return kernels;
}

}  // namespace glyd

#else

namespace glyd {
const LinearKernels& linear_kernels_avx512() { return linear_kernels_avx2(); }
}  // namespace glyd

#endif
