// linear_avx2.cpp - products with AVX2 and FMA: a register of 16 bf16 weights becomes two of fp32, its even and its odd
// columns, by a shift and a mask; x likewise.
#include "format/fast_patch.hpp"
#include "weights/linear/linear_kernels.hpp"

#if defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>

#include <algorithm>
#include <cstring>

#define GLYD_UNROLL _Pragma("GCC unroll 8")  // sums must stay in registers

namespace glyd {
namespace {

constexpr size_t kWidth = 8;
constexpr size_t kStep = 16;  // columns of one register

struct Halves {
  __m256 even, odd;
};

inline Halves widen(__m256i pairs) {
  return {_mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16)),
          _mm256_castsi256_ps(_mm256_and_si256(pairs, _mm256_set1_epi32(static_cast<int>(0xffff0000u))))};
}

inline __m256i load(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }

// The same from memory with a load in place of the shift, of which there are too few ports; reads 2 bytes before p.
inline Halves widen_by_loads(const uint8_t* p) {
  const __m256i upper = _mm256_set1_epi32(static_cast<int>(0xffff0000u));
  return {_mm256_castsi256_ps(_mm256_and_si256(load(p - 2), upper)),
          _mm256_castsi256_ps(_mm256_and_si256(load(p), upper))};
}

// Rows r .. r+kRows-1 times kTokens tokens over whole steps. 8 sums, the x and w in hand: 14 of the 16 registers.
template <size_t kRows, size_t kTokens>
inline void dot_block(const DotArgs& args, size_t row, size_t token, size_t cols) {
  __m256 sum[kTokens][kRows];
  float* const sums = args.sums + (token * kStripRows + row) * kWidth;
  GLYD_UNROLL for (size_t t = 0; t < kTokens; ++t) {
    GLYD_UNROLL for (size_t r = 0; r < kRows; ++r) sum[t][r] = _mm256_loadu_ps(sums + (t * kStripRows + r) * kWidth);
  }
  const uint8_t* tile = args.weights;
  const uint16_t* x = args.x + token * args.x_stride;
  for (size_t begin = 0; begin < cols; begin += args.tile_cols, tile += args.tile_bytes) {
    const size_t end = std::min(cols, begin + args.tile_cols);
    const uint8_t* w[kRows];
    GLYD_UNROLL for (size_t r = 0; r < kRows; ++r) w[r] = tile + args.row_offset[row + r];
    for (size_t c = begin; c < end; c += kStep) {
      Halves xs[kTokens];
      GLYD_UNROLL for (size_t t = 0; t < kTokens; ++t) xs[t] = widen(load(x + t * args.x_stride + c));
      GLYD_UNROLL for (size_t r = 0; r < kRows; ++r) {
        const Halves ws = widen_by_loads(w[r] + 2 * (c - begin));
        GLYD_UNROLL for (size_t t = 0; t < kTokens; ++t) {
          sum[t][r] = _mm256_fmadd_ps(ws.even, xs[t].even, sum[t][r]);
          sum[t][r] = _mm256_fmadd_ps(ws.odd, xs[t].odd, sum[t][r]);
        }
      }
    }
  }
  GLYD_UNROLL for (size_t t = 0; t < kTokens; ++t) {
    GLYD_UNROLL for (size_t r = 0; r < kRows; ++r) _mm256_storeu_ps(sums + (t * kStripRows + r) * kWidth, sum[t][r]);
  }
}

void dot_steps(const DotArgs& args) {
  size_t token = 0;
  for (; token + 2 <= args.tokens; token += 2) {
    for (size_t row = 0; row < args.rows; row += 4) dot_block<4, 2>(args, row, token, args.cols);
  }
  if (token < args.tokens) {
    for (size_t row = 0; row < args.rows; row += 8) dot_block<8, 1>(args, row, token, args.cols);
  }
}

// Fewer than 16 columns: both sides copied and filled with zeros.
void dot_tail(const DotArgs& args, size_t done) {
  constexpr size_t kTokens = 16;
  alignas(32) uint16_t memory[kStep + kStripRows * kStep] = {}, x[kTokens * kStep] = {};
  uint16_t* const w = memory + kStep;  // behind kReadBefore
  size_t row_offset[kStripRows];
  const size_t left = args.cols - done;
  const uint8_t* tile = args.weights + done / args.tile_cols * args.tile_bytes + 2 * (done % args.tile_cols);
  for (size_t r = 0; r < args.rows; ++r) {
    std::memcpy(w + r * kStep, tile + args.row_offset[r], 2 * left);
    row_offset[r] = 2 * r * kStep;
  }
  for (size_t token = 0; token < args.tokens; token += kTokens) {
    const size_t tokens = std::min(kTokens, args.tokens - token);
    for (size_t t = 0; t < tokens; ++t)
      std::memcpy(x + t * kStep, args.x + (token + t) * args.x_stride + done, 2 * left);
    dot_steps({.weights = reinterpret_cast<const uint8_t*>(w),
               .rows = args.rows,
               .row_offset = row_offset,
               .tile_cols = kTileStride,
               .tile_bytes = 0,
               .cols = kStep,
               .x = x,
               .x_stride = kStep,
               .tokens = tokens,
               .sums = args.sums + token * kStripRows * kWidth});
  }
}

void dot(const DotArgs& args) {
  const size_t whole = args.cols / kStep * kStep;
  if (whole > 0) {
    DotArgs steps = args;
    steps.cols = whole;
    dot_steps(steps);
  }
  if (whole < args.cols) dot_tail(args, whole);
}

void reduce(const float* sums, float* out) {
  for (size_t r = 0; r < kStripRows; r += 4) {
    const float* s = sums + r * kWidth;
    const __m256 a = _mm256_hadd_ps(_mm256_loadu_ps(s), _mm256_loadu_ps(s + kWidth));
    const __m256 b = _mm256_hadd_ps(_mm256_loadu_ps(s + 2 * kWidth), _mm256_loadu_ps(s + 3 * kWidth));
    const __m256 c = _mm256_hadd_ps(a, b);
    _mm_storeu_ps(out + r, _mm_add_ps(_mm256_castps256_ps128(c), _mm256_extractf128_ps(c, 1)));
  }
}

void reduce_fragments(const float* sums, float* out) {
  for (size_t g = 0; g < kFragmentRows; ++g) {
    const __m256 s = _mm256_loadu_ps(sums + g * kWidth);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    out[g] = _mm_cvtss_f32(two);
    out[g + kFragmentRows] = _mm_cvtss_f32(_mm_movehdup_ps(two));
  }
}

template <int kBits>
inline __m256i rotate_right(__m256i v) {
  return _mm256_or_si256(_mm256_srli_epi32(v, kBits), _mm256_slli_epi32(v, 32 - kBits));
}

// Words a, b of one step and c, d of the next, of 8 lanes. Transposed: lanes 0 and 1, 2 and 3, 4 and 5, 6 and 7, four
// words each, as the low plane has them.
struct Words {
  __m256i a, b, c, d;
};
inline void transpose(const Words& words, __m256i (&quads)[4]) {
  const __m256i ab0 = _mm256_unpacklo_epi32(words.a, words.b), ab1 = _mm256_unpackhi_epi32(words.a, words.b);
  const __m256i cd0 = _mm256_unpacklo_epi32(words.c, words.d), cd1 = _mm256_unpackhi_epi32(words.c, words.d);
  quads[0] = _mm256_unpacklo_epi64(ab0, cd0);
  quads[1] = _mm256_unpackhi_epi64(ab0, cd0);
  quads[2] = _mm256_unpacklo_epi64(ab1, cd1);
  quads[3] = _mm256_unpackhi_epi64(ab1, cd1);
}

template <size_t kBytes>
inline void prefetch(const uint8_t* p) {
  GLYD_UNROLL for (size_t i = 0; i < kBytes; i += 64) _mm_prefetch(reinterpret_cast<const char*>(p + i), _MM_HINT_T0);
}

// The high words of 8 lanes of a chunk: of steps 0 and 1, and of steps 2 and 3. Bits outside fast::kHighMask are not
// cleared.
inline void load_high(const uint8_t* high, Words& front, Words& back) {
  const __m256i lanes = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
  const __m256i m0 = _mm256_set1_epi32(0x60606060), m1 = _mm256_set1_epi32(0x18181818),
                m2 = _mm256_set1_epi32(0x06060606);
  const __m256i x0 = _mm256_permutevar8x32_epi32(load(high), lanes);
  const __m256i x1 = _mm256_permutevar8x32_epi32(load(high + 128), lanes);
  const __m256i x2 = _mm256_permutevar8x32_epi32(load(high + 256), lanes);
  front = {x0, rotate_right<3>(x0), x1, rotate_right<3>(x1)};
  const __m256i t =
      _mm256_or_si256(_mm256_or_si256(_mm256_and_si256(x0, m0), _mm256_and_si256(_mm256_srli_epi32(x1, 2), m1)),
                      _mm256_and_si256(_mm256_srli_epi32(x2, 4), m2));
  back = {x2, rotate_right<3>(x2), rotate_right<5>(t), rotate_right<2>(t)};
}

inline __m256i keep_high(__m256i words) {
  return _mm256_and_si256(words, _mm256_set1_epi32(static_cast<int>(fast::kHighMask)));
}

// Two steps of 8 lanes, joined with the low plane's 128 bytes: two rows of a fragment tile.
inline void join_steps(const Words& words, const uint8_t* low, uint16_t* out) {
  const __m256i window = _mm256_set1_epi8(static_cast<char>(upper_byte(fast::kWindowUpper)));
  __m256i quads[4];
  transpose(words, quads);
  GLYD_UNROLL for (size_t i = 0; i < 4; ++i) {
    const __m256i high = _mm256_or_si256(keep_high(quads[i]), window);
    const __m256i lows = load(low + 32 * i);
    uint16_t* row = out + i / 2 * kTileStride + i % 2 * 16;
    _mm256_store_si256(reinterpret_cast<__m256i*>(row), _mm256_unpacklo_epi8(lows, high));
    _mm256_store_si256(reinterpret_cast<__m256i*>(row + kFragmentStep), _mm256_unpackhi_epi8(lows, high));
  }
}

void decode_chunk(const uint8_t* chunk, uint16_t* tile) {
  const uint8_t* high = chunk + fast::low_plane_bytes(fast::kChunkSteps);
  for (size_t octet = 0; octet < 4; ++octet) {  // of lanes
    Words front, back;
    load_high(high + 32 * octet, front, back);
    prefetch<fast::kChunkBytes / 4>(chunk + kPrefetchAhead + octet * (fast::kChunkBytes / 4));
    uint16_t* out = tile + 2 * octet * kTileStride;
    join_steps(front, chunk + 128 * octet, out);
    join_steps(back, chunk + 512 + 128 * octet, out + 2 * kFragmentStep);
  }
}

inline Halves load_halves(const float* x) { return {_mm256_loadu_ps(x), _mm256_loadu_ps(x + kWidth)}; }

void widen_x(const uint16_t* x, size_t count, float* out) {
  for (size_t i = 0; i < count; i += kStep) {
    const Halves halves = widen(load(x + i));
    _mm256_storeu_ps(out + i, halves.even);
    _mm256_storeu_ps(out + i + kWidth, halves.odd);
  }
}

// Two steps of 8 lanes times x: sums[g][0] of even, sums[g][1] of odd columns.
inline void dot_steps(const Words& words, const uint8_t* low, uint8_t* upper, const float* x, __m256 (&sums)[2][2]) {
  const __m256i window = _mm256_set1_epi8(static_cast<char>(upper_byte(fast::kWindowUpper)));
  __m256i quads[4];
  transpose(words, quads);
  GLYD_UNROLL for (size_t q = 0; q < 2; ++q) {
    const Halves x0 = load_halves(x + kStep * q), x1 = load_halves(x + kFragmentStep + kStep * q);
    GLYD_UNROLL for (size_t g = 0; g < 2; ++g) {
      const size_t i = 2 * g + q;
      const __m256i high = _mm256_or_si256(keep_high(quads[i]), load(upper + 32 * i)), lows = load(low + 32 * i);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(upper + 32 * i), window);
      const Halves w0 = widen(_mm256_unpacklo_epi8(lows, high)), w1 = widen(_mm256_unpackhi_epi8(lows, high));
      sums[g][0] = _mm256_fmadd_ps(w0.even, x0.even, sums[g][0]);
      sums[g][1] = _mm256_fmadd_ps(w0.odd, x0.odd, sums[g][1]);
      sums[g][0] = _mm256_fmadd_ps(w1.even, x1.even, sums[g][0]);
      sums[g][1] = _mm256_fmadd_ps(w1.odd, x1.odd, sums[g][1]);
    }
  }
}

void dot_record(const uint8_t* record, uint8_t* upper, const void* widened_x, float* sums) {
  const auto* x = static_cast<const float*>(widened_x);
  for (size_t chunk = 0; chunk < 2; ++chunk) {
    const uint8_t* high = record + fast::low_plane_bytes(fast::kChunkSteps);
    for (size_t octet = 0; octet < 4; ++octet) {
      Words front, back;
      load_high(high + 32 * octet, front, back);
      prefetch<fast::kChunkBytes / 4>(record + kPrefetchAhead + octet * (fast::kChunkBytes / 4));
      float* const memory = sums + octet * 4 * kWidth;
      __m256 held[2][2];
      GLYD_UNROLL for (size_t i = 0; i < 4; ++i) held[i / 2][i % 2] = _mm256_loadu_ps(memory + i * kWidth);
      dot_steps(front, record + 128 * octet, upper + 128 * octet, x, held);
      dot_steps(back, record + 512 + 128 * octet, upper + 512 + 128 * octet, x + 2 * kFragmentStep, held);
      GLYD_UNROLL for (size_t i = 0; i < 4; ++i) _mm256_storeu_ps(memory + i * kWidth, held[i / 2][i % 2]);
    }
    record += fast::kChunkBytes;
    upper += fast::kChunkSteps * kStepWeights;
    x += fast::kChunkSteps * kFragmentStep;
  }
}

// Eight entries of 12 bits at a time.
void set_upper(const uint8_t* entries, uint32_t first, uint32_t all, uint8_t* upper) {
  constexpr int16_t kSpare = 2 * fast::kChunkWeights;
  const __m128i pairs = _mm_setr_epi8(0, 1, 1, 2, 3, 4, 4, 5, 6, 7, 7, 8, 9, 10, 10, 11);
  const __m128i left = _mm_setr_epi16(16, 1, 16, 1, 16, 1, 16, 1);  // even entries up by the 4 bits that odd ones are
  const __m128i parts =
      _mm_cvtsi32_si128(upper_byte(fast::upper_of_class(0)) | upper_byte(fast::upper_of_class(1)) << 8 |
                        upper_byte(fast::upper_of_class(2)) << 16 | upper_byte(fast::upper_of_class(3)) << 24);
  const __m128i to_bytes = _mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, -1, -1, -1, -1, -1, -1, -1, -1);
  const __m128i firsts = _mm_set1_epi16(static_cast<int16_t>(first)), ends = _mm_set1_epi16(static_cast<int16_t>(all));
  __m128i index = _mm_setr_epi16(0, 1, 2, 3, 4, 5, 6, 7);
  for (uint32_t i = 0; i < all; i += 8, entries += 12) {
    const __m128i raw = _mm_loadu_si128(reinterpret_cast<const __m128i*>(entries));
    const __m128i top = _mm_mullo_epi16(_mm_shuffle_epi8(raw, pairs), left);  // entries in bits 4-15
    const __m128i second = _mm_andnot_si128(_mm_cmpgt_epi16(firsts, index), _mm_set1_epi16(fast::kChunkWeights));
    const __m128i place = _mm_or_si128(_mm_and_si128(_mm_srli_epi16(top, 4), _mm_set1_epi16(0x3ff)), second);
    const __m128i places = _mm_blendv_epi8(_mm_set1_epi16(kSpare), place, _mm_cmpgt_epi16(ends, index));
    const __m128i part = _mm_shuffle_epi8(parts, _mm_shuffle_epi8(_mm_srli_epi16(top, 14), to_bytes));
    const auto bytes = static_cast<uint64_t>(_mm_cvtsi128_si64(part));
    const auto front = static_cast<uint64_t>(_mm_cvtsi128_si64(places));
    const auto back = static_cast<uint64_t>(_mm_extract_epi64(places, 1));
    GLYD_UNROLL for (uint32_t k = 0; k < 4; ++k) {
      upper[front >> 16 * k & 0xffff] = static_cast<uint8_t>(bytes >> 8 * k);
      upper[back >> 16 * k & 0xffff] = static_cast<uint8_t>(bytes >> 8 * (k + 4));
    }
    index = _mm_add_epi16(index, _mm_set1_epi16(8));
  }
}

}  // namespace

const LinearKernels& linear_kernels_avx2() {
  static constexpr LinearKernels kernels{.width = kWidth,
                                         .dot = dot,
                                         .reduce = reduce,
                                         .reduce_fragments = reduce_fragments,
                                         .decode_chunk = decode_chunk,
                                         .dot_record = dot_record,
                                         .widen_x = widen_x,
                                         .set_upper = set_upper};
  return kernels;
}

}  // namespace glyd

#else

namespace glyd {
const LinearKernels& linear_kernels_avx2() { return linear_kernels_scalar(); }
}  // namespace glyd

#endif
