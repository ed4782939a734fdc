// matrix_kernels_amx.cpp - products on AMX tiles, with AVX-512 around them. Tiles 0-3 hold sums, 4 and 5 weights, 6 and
// 7 x, each of the latter two by turns. All are 16 rows of 64 bytes.
#include "weights/linear/matrix_kernels.hpp"

#if defined(__AMX_BF16__) && defined(__AMX_TILE__) && defined(__AVX512BW__) && defined(__AVX512VL__)
// g++ 12 warns of its own header's deliberately undefined registers.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop

#define GLYD_UNROLL _Pragma("GCC unroll 16")  // arrays must stay in registers

#include "weights/linear/chunk_avx512.hpp"

namespace glyd {
namespace {

struct alignas(64) TileConfig {  // as LDTILECFG reads it
  uint8_t palette = 1, start_row = 0, zero[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfig) == 64);
constexpr TileConfig kConfig;

constexpr long kLine = 64, kWeightLine = 2 * kTileStride;  // bytes between a tile's rows in memory

// g++'s tile instructions do not say that they read memory.
inline void settle_stores() { __asm__ volatile("" ::: "memory"); }

void open() {
  settle_stores();
  _tile_loadconfig(&kConfig);
}
void close() { _tile_release(); }

void load_sums(size_t token_tiles, const float* sums) {
  settle_stores();
  _tile_loadd(0, sums, kLine);
  _tile_loadd(1, sums + kSumTileValues, kLine);
  _tile_loadd(2, sums + 2 * kSumTileValues, kLine);
  if (token_tiles != 3) _tile_loadd(3, sums + 3 * kSumTileValues, kLine);
}

void store_sums(size_t token_tiles, float* sums) {
  _tile_stored(0, sums, kLine);
  _tile_stored(1, sums + kSumTileValues, kLine);
  _tile_stored(2, sums + 2 * kSumTileValues, kLine);
  if (token_tiles != 3) _tile_stored(3, sums + 3 * kSumTileValues, kLine);
}

// Macros, since g++ wants a tile's number written out.
#define GLYD_LOAD_WEIGHTS(number, step) _tile_loadd(number, tile + (step)*kUnitCols, kWeightLine)
#define GLYD_MULTIPLY(sum, weights, number, x_tile)        \
  do {                                                     \
    _tile_loadd(number, x + (x_tile)*kXTileValues, kLine); \
    _tile_dpbf16ps(sum, weights, number);                  \
  } while (false)

void multiply_1(const uint16_t* tile, size_t steps, const uint16_t* x) {
  size_t s = 0;
  for (; s + 4 <= steps; s += 4) {
    GLYD_LOAD_WEIGHTS(4, s);
    GLYD_MULTIPLY(0, 4, 6, s);
    GLYD_LOAD_WEIGHTS(5, s + 1);
    GLYD_MULTIPLY(1, 5, 7, s + 1);
    GLYD_LOAD_WEIGHTS(4, s + 2);
    GLYD_MULTIPLY(2, 4, 6, s + 2);
    GLYD_LOAD_WEIGHTS(5, s + 3);
    GLYD_MULTIPLY(3, 5, 7, s + 3);
  }
  if (s < steps) {
    GLYD_LOAD_WEIGHTS(4, s);
    GLYD_MULTIPLY(0, 4, 6, s);
  }
  if (s + 1 < steps) {
    GLYD_LOAD_WEIGHTS(5, s + 1);
    GLYD_MULTIPLY(1, 5, 7, s + 1);
  }
  if (s + 2 < steps) {
    GLYD_LOAD_WEIGHTS(4, s + 2);
    GLYD_MULTIPLY(2, 4, 6, s + 2);
  }
}

void multiply_2(const uint16_t* tile, size_t steps, const uint16_t* x) {
  size_t s = 0;
  for (; s + 2 <= steps; s += 2) {
    GLYD_LOAD_WEIGHTS(4, s);
    GLYD_MULTIPLY(0, 4, 6, 2 * s);
    GLYD_MULTIPLY(1, 4, 7, 2 * s + 1);
    GLYD_LOAD_WEIGHTS(5, s + 1);
    GLYD_MULTIPLY(2, 5, 6, 2 * s + 2);
    GLYD_MULTIPLY(3, 5, 7, 2 * s + 3);
  }
  if (s < steps) {
    GLYD_LOAD_WEIGHTS(4, s);
    GLYD_MULTIPLY(0, 4, 6, 2 * s);
    GLYD_MULTIPLY(1, 4, 7, 2 * s + 1);
  }
}

void multiply_3(const uint16_t* tile, size_t steps, const uint16_t* x) {
  for (size_t s = 0; s < steps; ++s) {
    GLYD_LOAD_WEIGHTS(4, s);
    GLYD_MULTIPLY(0, 4, 6, 3 * s);
    GLYD_MULTIPLY(1, 4, 7, 3 * s + 1);
    GLYD_MULTIPLY(2, 4, 6, 3 * s + 2);
  }
}

void multiply_4(const uint16_t* tile, size_t steps, const uint16_t* x) {
  size_t s = 0;
  for (; s + 2 <= steps; s += 2) {
    GLYD_LOAD_WEIGHTS(4, s);
    GLYD_MULTIPLY(0, 4, 6, 4 * s);
    GLYD_MULTIPLY(1, 4, 7, 4 * s + 1);
    GLYD_MULTIPLY(2, 4, 6, 4 * s + 2);
    GLYD_MULTIPLY(3, 4, 7, 4 * s + 3);
    GLYD_LOAD_WEIGHTS(5, s + 1);
    GLYD_MULTIPLY(0, 5, 6, 4 * s + 4);
    GLYD_MULTIPLY(1, 5, 7, 4 * s + 5);
    GLYD_MULTIPLY(2, 5, 6, 4 * s + 6);
    GLYD_MULTIPLY(3, 5, 7, 4 * s + 7);
  }
  if (s < steps) {
    GLYD_LOAD_WEIGHTS(4, s);
    GLYD_MULTIPLY(0, 4, 6, 4 * s);
    GLYD_MULTIPLY(1, 4, 7, 4 * s + 1);
    GLYD_MULTIPLY(2, 4, 6, 4 * s + 2);
    GLYD_MULTIPLY(3, 4, 7, 4 * s + 3);
  }
}
#undef GLYD_LOAD_WEIGHTS
#undef GLYD_MULTIPLY

void multiply(size_t token_tiles, const uint16_t* tile, size_t steps, const uint16_t* x, float*) {
  settle_stores();
  switch (token_tiles) {
    case 1:
      return multiply_1(tile, steps, x);
    case 2:
      return multiply_2(tile, steps, x);
    case 3:
      return multiply_3(tile, steps, x);
    default:
      return multiply_4(tile, steps, x);
  }
}

// Words 16 x 16.
inline void transpose(__m512i (&v)[16]) {
  __m512i a[16], b[16];
  GLYD_UNROLL for (size_t i = 0; i < 16; i += 2) {
    a[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
    a[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
  }
  // b[i + c]: in quarter q, word 4q + c of vectors i to i + 3.
  GLYD_UNROLL for (size_t i = 0; i < 16; i += 4) {
    b[i] = _mm512_unpacklo_epi64(a[i], a[i + 2]);
    b[i + 1] = _mm512_unpackhi_epi64(a[i], a[i + 2]);
    b[i + 2] = _mm512_unpacklo_epi64(a[i + 1], a[i + 3]);
    b[i + 3] = _mm512_unpackhi_epi64(a[i + 1], a[i + 3]);
  }
  GLYD_UNROLL for (size_t c = 0; c < 4; ++c) {
    const __m512i front = _mm512_shuffle_i32x4(b[c], b[c + 4], 0x44), back = _mm512_shuffle_i32x4(b[c], b[c + 4], 0xee);
    const __m512i front2 = _mm512_shuffle_i32x4(b[c + 8], b[c + 12], 0x44),
                  back2 = _mm512_shuffle_i32x4(b[c + 8], b[c + 12], 0xee);
    v[c] = _mm512_shuffle_i32x4(front, front2, 0x88);
    v[c + 4] = _mm512_shuffle_i32x4(front, front2, 0xdd);
    v[c + 8] = _mm512_shuffle_i32x4(back, back2, 0x88);
    v[c + 12] = _mm512_shuffle_i32x4(back, back2, 0xdd);
  }
}

void arrange_x(PairOrder order, const uint16_t* x, size_t x_stride, size_t tokens, size_t cols, uint16_t* out) {
  for (size_t c = 0; c < cols; c += kUnitCols) {
    const size_t left = cols - c;
    const __mmask32 mask = left >= kUnitCols ? ~__mmask32{0} : static_cast<__mmask32>((uint32_t{1} << left) - 1);
    for (size_t t = 0; t < tokens; t += kUnitTokens, out += kXTileValues) {
      __m512i v[16];
      GLYD_UNROLL for (size_t i = 0; i < kUnitTokens; ++i) {
        v[i] = t + i < tokens ? _mm512_maskz_loadu_epi16(mask, x + (t + i) * x_stride + c) : _mm512_setzero_si512();
      }
      transpose(v);
      GLYD_UNROLL for (size_t pair = 0; pair < kUnitCols / 2; ++pair) {
        _mm512_store_si512(out + place_of_pair(order, pair) * 2 * kUnitTokens, v[pair]);
      }
    }
  }
}

// Rows g and g + 8 of two steps stand by turns in their words: parted, a row's words are in the order kFours.
void decode_chunk(const uint8_t* chunk, uint16_t offset, uint16_t* tile) {
  const __m512i offsets = _mm512_set1_epi16(static_cast<int16_t>(offset));
  avx512::decode_chunk(chunk, [=](size_t g, size_t pair, __m512i first, __m512i second) {
    const __m512 a = _mm512_castsi512_ps(_mm512_add_epi16(first, offsets)),
                 b = _mm512_castsi512_ps(_mm512_add_epi16(second, offsets));
    uint16_t* out = tile + g * kTileStride + pair * kUnitCols;
    _mm512_store_ps(reinterpret_cast<float*>(out), _mm512_shuffle_ps(a, b, 0x88));
    _mm512_store_ps(reinterpret_cast<float*>(out + 8 * kTileStride), _mm512_shuffle_ps(a, b, 0xdd));
  });
}

// As round_to_bf16.
inline __m256i round_rows(__m512 sums) {
  const __m512i bits = _mm512_castps_si512(sums), upper = _mm512_srli_epi32(bits, 16);
  const __m512i odd = _mm512_and_si512(upper, _mm512_set1_epi32(1));
  const __m512i rounded =
      _mm512_srli_epi32(_mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd), 16);
  const __mmask16 nan = _mm512_cmp_ps_mask(sums, sums, _CMP_UNORD_Q);
  return _mm512_cvtepi32_epi16(_mm512_mask_or_epi32(rounded, nan, upper, _mm512_set1_epi32(0x40)));
}

inline __m512 add_parts(size_t parts, size_t apart, const float* sums) {
  const __m512 first = _mm512_load_ps(sums);
  if (parts == 1) return first;
  const __m512 two = _mm512_add_ps(first, _mm512_load_ps(sums + apart));
  if (parts == 2) return two;
  return _mm512_add_ps(two, _mm512_add_ps(_mm512_load_ps(sums + 2 * apart), _mm512_load_ps(sums + 3 * apart)));
}

void finish(const FinishArgs& args) {
  const size_t parts = sum_parts(args.token_tiles), apart = args.token_tiles * kSumTileValues;
  const auto mask = static_cast<__mmask16>((uint32_t{1} << args.rows) - 1);
  __m512 bias = _mm512_setzero_ps();
  if (args.bias != nullptr) {
    const __m512i wide = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, args.bias));
    bias = _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
  }
  for (size_t t = 0; t < args.tokens; t += kUnitTokens) {
    const float* sums = args.sums + t / kUnitTokens * kSumTileValues;
    __m512i v[16];
    GLYD_UNROLL for (size_t r = 0; r < 16; ++r) {
      v[r] = _mm512_castps_si512(add_parts(parts, apart, sums + r * kUnitTokens));
    }
    transpose(v);
    GLYD_UNROLL for (size_t i = 0; i < kUnitTokens; ++i) {
      if (t + i >= args.tokens) continue;
      const __m512 sum = _mm512_castsi512_ps(v[i]);
      const __m256i rounded = round_rows(args.bias == nullptr ? sum : _mm512_add_ps(sum, bias));
      _mm256_mask_storeu_epi16(args.y + (t + i) * args.y_stride, mask, rounded);
    }
  }
}

}  // namespace

const MatrixKernels* matrix_kernels_amx() {
  static constexpr MatrixKernels kernels{.open = open,
                                         .close = close,
                                         .arrange_x = arrange_x,
                                         .decode_chunk = decode_chunk,
                                         .load_sums = load_sums,
                                         .multiply = multiply,
                                         .store_sums = store_sums,
                                         .finish = finish};
  return &kernels;
}

}  // namespace glyd

#else

namespace glyd {
const MatrixKernels* matrix_kernels_amx() { return nullptr; }
}  // namespace glyd

#endif
