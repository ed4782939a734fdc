// matrix_kernels_amx.cpp - products on AMX tiles, with AVX-512 around them. Tiles 0-3 hold a set's sums, 4 and 5 x, 6
// and 7 weights, each of the latter two by turns. All are 16 rows of 64 bytes.
#include "weights/linear/matrix_kernels.hpp"

#if defined(__AMX_BF16__) && defined(__AMX_TILE__) && defined(__AVX512BW__) && defined(__AVX512VL__)
// g++ 12 warns of its own header's deliberately undefined registers.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop

#include <algorithm>
#include <array>
#include <bit>

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

constexpr long kLine = 64;  // bytes between a tile's rows in memory

// What is fetched ahead goes to the second-level cache: the first one is full of tiles before its turn comes. (Two
// threads, 64 tokens: 7.3 ms against 8.8 and 9.6 in the same minutes.)
constexpr int kAheadLocality = 2;

// g++'s tile instructions do not say that they read memory.
inline void settle_stores() { __asm__ volatile("" ::: "memory"); }

void open() {
  settle_stores();
  _tile_loadconfig(&kConfig);
}
void close() { _tile_release(); }

void load_sums(const float* sums) {
  settle_stores();
  _tile_loadd(0, sums, kLine);
  _tile_loadd(1, sums + kSumTileValues, kLine);
  _tile_loadd(2, sums + 2 * kSumTileValues, kLine);
  _tile_loadd(3, sums + 3 * kSumTileValues, kLine);
}

void store_sums(float* sums) {
  _tile_stored(0, sums, kLine);
  _tile_stored(1, sums + kSumTileValues, kLine);
  _tile_stored(2, sums + 2 * kSumTileValues, kLine);
  _tile_stored(3, sums + 3 * kSumTileValues, kLine);
}

// Macros, since g++ wants a tile's number written out.
#define GLYD_MULTIPLY(sum, weight_tile, x_tile) \
  do {                                          \
    if constexpr ((kSums >> sum & 1) != 0) {    \
      _tile_loadd(x_tile, x_, kLine);           \
      _tile_dpbf16ps(sum, weight_tile, x_tile); \
      x_ += kXTileValues;                       \
    }                                           \
  } while (false)
#define GLYD_MULTIPLY_STEP(weight_tile, x_tile, other_x_tile) \
  do {                                                        \
    _tile_loadd(weight_tile, weights_, line_);                \
    GLYD_MULTIPLY(0, weight_tile, x_tile);                    \
    GLYD_MULTIPLY(1, weight_tile, other_x_tile);              \
    GLYD_MULTIPLY(2, weight_tile, x_tile);                    \
    GLYD_MULTIPLY(3, weight_tile, other_x_tile);              \
    weights_ += kUnitCols;                                    \
  } while (false)

// A product step by step, even and odd ones by turns. kSums: a bit for each sum tile of the strip; 0: nothing is done.
template <unsigned kSums>
class Steps {
 public:
  explicit Steps(const MultiplyArgs& args)
      : weights_(args.tile), x_(args.x), line_(static_cast<long>(2 * args.tile_cols)) {}
  void even() { GLYD_MULTIPLY_STEP(6, 4, 5); }
  void odd() { GLYD_MULTIPLY_STEP(7, 5, 4); }

 private:
  const uint16_t *weights_, *x_;
  const long line_;
};
template <>
class Steps<0> {
 public:
  explicit Steps(const MultiplyArgs&) {}
  void even() {}
  void odd() {}
};
#undef GLYD_MULTIPLY
#undef GLYD_MULTIPLY_STEP

// run.operator()<kSums>() for the sum tiles of the args' strip.
template <typename Run>
inline void for_sums(const MultiplyArgs& args, Run run) {
  if (args.steps == 0) return run.template operator()<0>();
  switch (((1u << args.token_tiles) - 1) << args.strip * args.token_tiles) {
    case 0b0001:
      return run.template operator()<0b0001>();
    case 0b0010:
      return run.template operator()<0b0010>();
    case 0b0100:
      return run.template operator()<0b0100>();
    case 0b1000:
      return run.template operator()<0b1000>();
    case 0b0011:
      return run.template operator()<0b0011>();
    case 0b1100:
      return run.template operator()<0b1100>();
    case 0b0111:
      return run.template operator()<0b0111>();
    default:
      return run.template operator()<0b1111>();
  }
}

void multiply(const MultiplyArgs& args) {
  settle_stores();
  for_sums(args, [&]<unsigned kSums>() {
    Steps<kSums> product(args);
    size_t s = 0;
    for (; s + 2 <= args.steps; s += 2) {
      product.even();
      product.odd();
    }
    if (s < args.steps) product.even();
  });
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
void decode_chunk(const DecodeArgs& args, const MultiplyArgs& meanwhile) {
  static_assert(kStepsOfChunk == 2);
  settle_stores();
  const __m512i offsets = _mm512_set1_epi16(static_cast<int16_t>(args.offset));
  const auto put = [offsets, tile = args.tile, soon = args.soon](size_t g, size_t pair, __m512i first, __m512i second) {
    if (pair == 0) avx512::prefetch_lines<fast::kChunkBytes / 8, 3>(soon + g * (fast::kChunkBytes / 8));
    const __m512 a = _mm512_castsi512_ps(_mm512_add_epi16(first, offsets)),
                 b = _mm512_castsi512_ps(_mm512_add_epi16(second, offsets));
    uint16_t* out = tile + g * kUnitTileCols + pair * kUnitCols;
    _mm512_store_ps(reinterpret_cast<float*>(out), _mm512_shuffle_ps(a, b, 0x88));
    _mm512_store_ps(reinterpret_cast<float*>(out + 8 * kUnitTileCols), _mm512_shuffle_ps(a, b, 0xdd));
  };
  for_sums(meanwhile, [&]<unsigned kSums>() {
    Steps<kSums> product(meanwhile);
    const auto upper = [](size_t, size_t) { return avx512::window_upper(); };
    avx512::decode_chunk<kAheadLocality>(args.chunk, args.ahead, upper, put, [&](size_t half) {
      if (half == 0) {
        product.even();
      } else if (meanwhile.steps == 2) {
        product.odd();
      }
    });
  });
}

// Entries 0 .. count-1, in eights: tile[places[k]] += addition(k). `places` may name any value behind the last.
template <typename Addition>
inline void add_in_eights(uint32_t count, const uint16_t* places, uint16_t* tile, Addition addition) {
  for (uint32_t i = 0; i < count; i += 8) {
    GLYD_UNROLL for (uint32_t k = i; k < i + 8; ++k) {
      uint16_t& value = tile[places[k]];
      value = static_cast<uint16_t>(value + addition(k, value));
    }
  }
}

// 32 entries at a time; those behind the last get the class that adds nothing. The number of entries is hardly the same
// twice, and a branch by it would be foretold wrong: so they go in eights.
void patch(const uint8_t* entries, uint32_t first, uint32_t all, const PatchAdditions& additions, uint16_t* tile) {
  constexpr uint32_t kBatch = 32, kBatchBytes = kBatch * 12 / 8;
  alignas(64) static constexpr auto bytes = [] {  // of each entry, the two that hold it
    std::array<uint8_t, 64> at{};
    for (uint8_t i = 0; i < kBatch; ++i) {
      at[2 * i] = static_cast<uint8_t>(i / 2 * 3 + i % 2);
      at[2 * i + 1] = static_cast<uint8_t>(at[2 * i] + 1);
    }
    return at;
  }();
  alignas(64) static constexpr auto numbers = [] {
    std::array<uint16_t, kBatch> number{};
    for (uint16_t i = 0; i < kBatch; ++i) number[i] = i;
    return number;
  }();
  const auto words = [](uint32_t word) { return _mm512_set1_epi16(static_cast<int16_t>(word)); };
  const __m512i odd_down = _mm512_set1_epi32(4 << 16);
  // [class], again and again
  const __m512i of_class = _mm512_set1_epi64(static_cast<int64_t>(std::bit_cast<uint64_t>(additions.of_class)));
  alignas(64) uint16_t places[kBatch], rows[kBatch];
  for (uint32_t begin = 0; begin < all; begin += kBatch, entries += kBatchBytes) {
    const uint32_t count = std::min(all - begin, kBatch);
    const __m512i raw = _mm512_maskz_loadu_epi8((uint64_t{1} << (count * 3 + 1) / 2) - 1, entries);
    const __m512i parted = _mm512_permutexvar_epi8(_mm512_load_si512(bytes.data()), raw);
    const __m512i entry = _mm512_srlv_epi16(parted, odd_down);
    const __m512i number = _mm512_add_epi16(_mm512_load_si512(numbers.data()), words(begin));
    const __mmask32 real = _mm512_cmplt_epu16_mask(number, words(all));
    const __mmask32 second = _mm512_cmpge_epu16_mask(number, words(first));
    const auto bits = [&](__m512i shifted, uint32_t mask) { return _mm512_and_si512(shifted, words(mask)); };
    __m512i place = _mm512_or_si512(bits(entry, 0x001), bits(_mm512_srli_epi16(entry, 1), 0x01e));
    place = _mm512_or_si512(place, bits(_mm512_srli_epi16(entry, 4), 0x020));
    place = _mm512_or_si512(place, bits(_mm512_slli_epi16(entry, 1), 0x380));
    place = _mm512_or_si512(place, bits(_mm512_slli_epi16(entry, 9), 0x400));
    place = _mm512_mask_add_epi16(place, second, place, words(kUnitChunkCols));
    _mm512_store_si512(places, _mm512_mask_mov_epi16(_mm512_load_si512(numbers.data()), real, place));
    if (additions.by_class) {
      const __m512i zero_class = words(kZeroClass << 10);
      if (_mm512_mask_cmpeq_epi16_mask(real, bits(entry, 3 << 10), zero_class) == 0) {
        const __m512i added = _mm512_maskz_permutexvar_epi16(real, _mm512_srli_epi16(entry, 10), of_class);
        _mm512_store_si512(rows, added);
        add_in_eights(count, places, tile, [&](uint32_t k, uint16_t) { return rows[k]; });
        continue;
      }
    }
    const __m512i row = bits(_mm512_srli_epi16(entry, 10 - 3), 3 << 3);
    _mm512_store_si512(rows, _mm512_mask_mov_epi16(words(4 * 8), real, row));
    add_in_eights(count, places, tile, [&](uint32_t k, uint16_t value) {
      return additions.of_code[rows[k] + (value >> kExponentBit & 7u)];
    });
  }
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

void finish(const FinishArgs& args) {
  const auto mask = static_cast<__mmask16>((uint32_t{1} << args.rows) - 1);
  __m512 bias = _mm512_setzero_ps();
  if (args.bias != nullptr) {
    const __m512i wide = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, args.bias));
    bias = _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
  }
  for (size_t t = 0; t < args.tokens; t += kUnitTokens) {
    const float* sums = args.sums + t / kUnitTokens * kSumTileValues;
    __m512i v[16];
    GLYD_UNROLL for (size_t r = 0; r < 16; ++r) { v[r] = _mm512_load_si512(sums + r * kUnitTokens); }
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
                                         .patch = patch,
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
