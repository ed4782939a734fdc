// Sixteen lanes a vector: four row groups g ... g + 3 of a step (spec 1.1), a quarter of four lanes each. As the AVX2
// kernels otherwise.
#include "base/bytes.hpp"
#include "format/fast_patch.hpp"
#include "weights/fast/fast_kernels.hpp"
#include "weights/vectors_avx512.hpp"

namespace glyd::fast {
namespace {

using namespace avx512;

using Vector = __m512i;
constexpr uint32_t kGroupLanes = 16;

// Low and high bytes of a step's weights 0-3 and 4-7 a lane.
struct StepBytes {
  __m512i low[2], high[2];
};

void join_step(const StepBytes& bytes, __m512i offset, uint16_t* rows) {
  __m512i r[4];  // register r of each lane: two weights
  for (int half = 0; half < 2; ++half) {
    const __m512i front = _mm512_unpacklo_epi8(bytes.low[half], bytes.high[half]);
    const __m512i back = _mm512_unpackhi_epi8(bytes.low[half], bytes.high[half]);
    r[2 * half] = _mm512_add_epi16(evens(front, back), offset);
    r[2 * half + 1] = _mm512_add_epi16(odds(front, back), offset);
  }
  store_rows(r, rows);
}

StepBytes split_step(const uint16_t* rows, __m512i offset) {
  const __m512i lefts = _mm512_set_epi64(13, 12, 9, 8, 5, 4, 1, 0),
                rights = _mm512_set_epi64(15, 14, 11, 10, 7, 6, 3, 2);
  const __m512i byte = _mm512_set1_epi16(0xff);
  const __m512i a = _mm512_sub_epi16(load_two_rows(rows), offset),
                b = _mm512_sub_epi16(load_two_rows(rows + 2 * kTileStride), offset);
  const __m512i c = _mm512_sub_epi16(load_two_rows(rows + 8 * kTileStride), offset);
  const __m512i d = _mm512_sub_epi16(load_two_rows(rows + 10 * kTileStride), offset);
  const __m512i r[4] = {_mm512_permutex2var_epi64(a, lefts, b), _mm512_permutex2var_epi64(c, lefts, d),
                        _mm512_permutex2var_epi64(a, rights, b), _mm512_permutex2var_epi64(c, rights, d)};
  StepBytes bytes;
  for (int half = 0; half < 2; ++half) {
    const __m512i front = _mm512_unpacklo_epi32(r[2 * half], r[2 * half + 1]);
    const __m512i back = _mm512_unpackhi_epi32(r[2 * half], r[2 * half + 1]);
    bytes.low[half] = _mm512_packus_epi16(_mm512_and_si512(front, byte), _mm512_and_si512(back, byte));
    bytes.high[half] = _mm512_packus_epi16(_mm512_srli_epi16(front, 8), _mm512_srli_epi16(back, 8));
  }
  return bytes;
}

// Twins of unpack_high and pack_high.
void unpack_high(const __m512i (&x)[3], StepBytes (&steps)[4]) {
  const __m512i mask = _mm512_set1_epi32(static_cast<int>(kHighMask));
  for (int i = 0; i < 3; ++i) {
    steps[i].high[0] = _mm512_and_si512(x[i], mask);
    steps[i].high[1] = _mm512_and_si512(_mm512_ror_epi32(x[i], 3), mask);
  }
  const __m512i t0 = _mm512_and_si512(x[0], _mm512_set1_epi32(0x60606060));
  const __m512i t1 = _mm512_and_si512(_mm512_srli_epi32(x[1], 2), _mm512_set1_epi32(0x18181818));
  const __m512i t2 = _mm512_and_si512(_mm512_srli_epi32(x[2], 4), _mm512_set1_epi32(0x06060606));
  const __m512i t = _mm512_or_si512(t0, _mm512_or_si512(t1, t2));
  steps[3].high[0] = _mm512_and_si512(_mm512_ror_epi32(t, 5), mask);
  steps[3].high[1] = _mm512_and_si512(_mm512_ror_epi32(t, 2), mask);
}

void pack_high(const StepBytes (&steps)[4], __m512i (&x)[3]) {
  const __m512i spare = _mm512_set1_epi32(0x60606060);
  const __m512i t = _mm512_or_si512(_mm512_rol_epi32(steps[3].high[0], 5), _mm512_rol_epi32(steps[3].high[1], 2));
  const __m512i shares[3] = {t, _mm512_slli_epi32(t, 2), _mm512_slli_epi32(t, 4)};
  for (int i = 0; i < 3; ++i) {
    const __m512i own = _mm512_or_si512(steps[i].high[0], _mm512_rol_epi32(steps[i].high[1], 3));
    x[i] = _mm512_or_si512(own, _mm512_and_si512(shares[i], spare));
  }
}

__m512i window_offset(uint32_t base) { return _mm512_set1_epi16(static_cast<int16_t>(base << 7)); }

#include "weights/fast/fast_planes_body.hpp"

void window_masks(const uint16_t* rows, uint64_t stride, uint32_t steps, uint32_t base, uint64_t* masks) {
  const __m512i window = _mm512_set1_epi16(static_cast<int16_t>(base)), exponents = _mm512_set1_epi16(0xff);
  for (uint32_t chunk = 0; chunk < 2; ++chunk) {
    const uint32_t cols = chunk_steps(steps, chunk) * kStepCols;
    // Columns that are not there read what stands there and are masked off.
    const uint64_t present = cols == 0 ? 0 : ~uint64_t{0} >> (64 - cols);
    for (uint32_t row = 0; row < kStripRows; ++row) {
      const uint16_t* values = rows + row * stride + chunk * 64;
      uint64_t outside = 0;
      for (uint32_t half = 0; half < 2; ++half) {
        const __m512i v = _mm512_loadu_si512(values + 32 * half);
        const __m512i code = _mm512_sub_epi16(_mm512_and_si512(_mm512_srli_epi16(v, 7), exponents), window);
        outside |= uint64_t{_mm512_cmpge_epu16_mask(code, _mm512_set1_epi16(kWindow))} << 32 * half;
      }
      masks[chunk * kStripRows + row] = outside & present;
    }
  }
}

}  // namespace

const Kernels kAvx512Kernels = {window_masks, encode_planes, decode_planes};

}  // namespace glyd::fast
