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

#include "weights/linear/chunk_avx512.hpp"

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

void decode_chunk(const uint8_t* chunk, uint16_t* tile) {
  avx512::decode_chunk<3>(
      chunk, chunk + kPrefetchAhead, [](size_t, size_t) { return avx512::window_upper(); },
      [tile](size_t row, size_t pair, __m512i first, __m512i second) {
        uint16_t* out = tile + row * kTileStride + pair * 2 * kFragmentStep;
        _mm512_store_si512(out, first);
        _mm512_store_si512(out + kFragmentStep, second);
      },
      [](size_t) {});
}

// sums[g][0] of the first, sums[g][1] of the second step of each pair.
void dot_record(const uint8_t* record, uint8_t* upper, const void* x, float* sums) {
  const auto* steps = static_cast<const uint16_t*>(x);
  for (size_t chunk = 0; chunk < 2; ++chunk) {
    const __m512i x0 = load(steps), x1 = load(steps + kFragmentStep), x2 = load(steps + 2 * kFragmentStep),
                  x3 = load(steps + 3 * kFragmentStep);
    avx512::decode_chunk<3>(
        record, record + kPrefetchAhead,
        [upper](size_t row, size_t pair) {
          uint8_t* const at = upper + pair * 512 + row * 64;
          const __m512i bytes = load(at);
          _mm512_storeu_si512(at, avx512::window_upper());
          return bytes;
        },
        [=](size_t row, size_t pair, __m512i first, __m512i second) {
          float* const sum = sums + row * 2 * kWidth;
          _mm512_storeu_ps(sum, multiply_add(_mm512_loadu_ps(sum), first, pair == 0 ? x0 : x2));
          _mm512_storeu_ps(sum + kWidth, multiply_add(_mm512_loadu_ps(sum + kWidth), second, pair == 0 ? x1 : x3));
        },
        [](size_t) {});
    record += fast::kChunkBytes;
    upper += fast::kChunkSteps * kStepWeights;
    steps += fast::kChunkSteps * kFragmentStep;
  }
}

}  // namespace

const LinearKernels& linear_kernels_avx512() {
  static const LinearKernels kernels{.width = kWidth,
                                     .dot = dot,
                                     .reduce = reduce,
                                     .reduce_fragments = reduce_fragments,
                                     .decode_chunk = decode_chunk,
                                     .dot_record = dot_record,
                                     .widen_x = nullptr,
                                     .set_upper = linear_kernels_avx2().set_upper};
  return kernels;
}

}  // namespace glyd

#else

namespace glyd {
const LinearKernels& linear_kernels_avx512() { return linear_kernels_avx2(); }
}  // namespace glyd

#endif
