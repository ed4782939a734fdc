// Eight lanes a vector: two row groups g, g + 1 of a step (spec 1.1), the even group's four lanes in the low half.
#include "base/bytes.hpp"
#include "format/fast_patch.hpp"
#include "weights/fast/fast_kernels.hpp"
#include "weights/vectors_avx2.hpp"

namespace glyd::fast {
namespace {

using namespace avx2;

using Vector = __m256i;
constexpr uint32_t kGroupLanes = 8;

// Low and high bytes of a step's weights 0-3 and 4-7 a lane.
struct StepBytes {
  __m256i low[2], high[2];
};

void join_step(const StepBytes& bytes, __m256i offset, uint16_t* rows) {
  __m256i r[4];  // register r of each lane: two weights
  for (int half = 0; half < 2; ++half) {
    const __m256i front = _mm256_unpacklo_epi8(bytes.low[half], bytes.high[half]);
    const __m256i back = _mm256_unpackhi_epi8(bytes.low[half], bytes.high[half]);
    r[2 * half] = _mm256_add_epi16(evens(front, back), offset);
    r[2 * half + 1] = _mm256_add_epi16(odds(front, back), offset);
  }
  store_rows(r, rows);
}

StepBytes split_step(const uint16_t* rows, __m256i offset) {
  const __m256i byte = _mm256_set1_epi16(0xff);
  StepBytes bytes;
  const __m256i a = _mm256_sub_epi16(load(rows), offset), b = _mm256_sub_epi16(load(rows + kTileStride), offset);
  const __m256i c = _mm256_sub_epi16(load(rows + 8 * kTileStride), offset);
  const __m256i d = _mm256_sub_epi16(load(rows + 9 * kTileStride), offset);
  const __m256i r[4] = {_mm256_permute2x128_si256(a, b, 0x20), _mm256_permute2x128_si256(c, d, 0x20),
                        _mm256_permute2x128_si256(a, b, 0x31), _mm256_permute2x128_si256(c, d, 0x31)};
  for (int half = 0; half < 2; ++half) {
    const __m256i front = _mm256_unpacklo_epi32(r[2 * half], r[2 * half + 1]);
    const __m256i back = _mm256_unpackhi_epi32(r[2 * half], r[2 * half + 1]);
    bytes.low[half] = _mm256_packus_epi16(_mm256_and_si256(front, byte), _mm256_and_si256(back, byte));
    bytes.high[half] = _mm256_packus_epi16(_mm256_srli_epi16(front, 8), _mm256_srli_epi16(back, 8));
  }
  return bytes;
}

// Twins of unpack_high and pack_high.
void unpack_high(const __m256i (&x)[3], StepBytes (&steps)[4]) {
  const __m256i mask = _mm256_set1_epi32(static_cast<int>(kHighMask));
  for (int i = 0; i < 3; ++i) {
    steps[i].high[0] = _mm256_and_si256(x[i], mask);
    steps[i].high[1] = _mm256_and_si256(rotl<29>(x[i]), mask);
  }
  const __m256i t0 = _mm256_and_si256(x[0], _mm256_set1_epi32(0x60606060));
  const __m256i t1 = _mm256_and_si256(_mm256_srli_epi32(x[1], 2), _mm256_set1_epi32(0x18181818));
  const __m256i t2 = _mm256_and_si256(_mm256_srli_epi32(x[2], 4), _mm256_set1_epi32(0x06060606));
  const __m256i t = _mm256_or_si256(t0, _mm256_or_si256(t1, t2));
  steps[3].high[0] = _mm256_and_si256(rotl<27>(t), mask);
  steps[3].high[1] = _mm256_and_si256(rotl<30>(t), mask);
}

void pack_high(const StepBytes (&steps)[4], __m256i (&x)[3]) {
  const __m256i spare = _mm256_set1_epi32(0x60606060);
  const __m256i t = _mm256_or_si256(rotl<5>(steps[3].high[0]), rotl<2>(steps[3].high[1]));
  const __m256i shares[3] = {t, _mm256_slli_epi32(t, 2), _mm256_slli_epi32(t, 4)};
  for (int i = 0; i < 3; ++i) {
    const __m256i own = _mm256_or_si256(steps[i].high[0], rotl<3>(steps[i].high[1]));
    x[i] = _mm256_or_si256(own, _mm256_and_si256(shares[i], spare));
  }
}

__m256i window_offset(uint32_t base) { return _mm256_set1_epi16(static_cast<int16_t>(base << 7)); }

#include "weights/fast/fast_planes_body.hpp"

// All ones where the exponent of each of 16 values lies in the window.
__m256i inside(const uint16_t* values, __m256i base) {
  const __m256i exponent = _mm256_and_si256(_mm256_srli_epi16(load(values), 7), _mm256_set1_epi16(0xff));
  const __m256i code = _mm256_sub_epi16(exponent, base);
  return _mm256_cmpeq_epi16(_mm256_and_si256(code, _mm256_set1_epi16(static_cast<int16_t>(~7))),
                            _mm256_setzero_si256());
}
uint32_t outside_of_32(const uint16_t* values, __m256i base) {
  const __m256i bytes = _mm256_packs_epi16(inside(values, base), inside(values + 16, base));
  return ~static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_permute4x64_epi64(bytes, 0xd8)));
}

void window_masks(const uint16_t* rows, uint64_t stride, uint32_t steps, uint32_t base, uint64_t* masks) {
  const __m256i window = _mm256_set1_epi16(static_cast<int16_t>(base));
  for (uint32_t chunk = 0; chunk < 2; ++chunk) {
    const uint32_t cols = chunk_steps(steps, chunk) * kStepCols;
    // Columns that are not there read what stands there and are masked off.
    const uint64_t present = cols == 0 ? 0 : ~uint64_t{0} >> (64 - cols);
    for (uint32_t row = 0; row < kStripRows; ++row) {
      const uint16_t* values = rows + row * stride + chunk * 64;
      const uint64_t outside = outside_of_32(values, window) | uint64_t{outside_of_32(values + 32, window)} << 32;
      masks[chunk * kStripRows + row] = outside & present;
    }
  }
}

}  // namespace

const Kernels kAvx2Kernels = {window_masks, encode_planes, decode_planes};

}  // namespace glyd::fast
