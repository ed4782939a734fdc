// Sixteen lanes a vector: four row groups g ... g + 3 of a step (spec 1.1), a quarter of four lanes each. As the AVX2
// kernels otherwise.
#include <immintrin.h>

#include "base/bytes.hpp"
#include "format/fast_patch.hpp"
#include "weights/fast/fast_kernels.hpp"
#include "weights/registry.hpp"

namespace glyd::fast {
namespace {

constexpr uint32_t kGroupLanes = 16;

__m512i evens(__m512i a, __m512i b) {
  return _mm512_castps_si512(_mm512_shuffle_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b), 0x88));
}
__m512i odds(__m512i a, __m512i b) {
  return _mm512_castps_si512(_mm512_shuffle_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b), 0xdd));
}
// 16 bytes at each of four places, `apart` bytes apart.
__m512i load_quarters(const uint8_t* p, uint32_t apart) {
  const auto at = [&](uint32_t i) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + i * apart)); };
  const __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(at(0)), at(1), 1);
  const __m256i high = _mm256_inserti128_si256(_mm256_castsi128_si256(at(2)), at(3), 1);
  return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}
void store_quarters(uint8_t* p, uint32_t apart, __m512i v) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_castsi512_si128(v));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p + apart), _mm512_extracti64x2_epi64(v, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p + 2 * apart), _mm512_extracti64x2_epi64(v, 2));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p + 3 * apart), _mm512_extracti64x2_epi64(v, 3));
}
// Words 4 x 4 in each quarter: its own inverse.
void transpose(__m512i (&v)[4]) {
  const __m512i a = _mm512_unpacklo_epi32(v[0], v[1]), b = _mm512_unpackhi_epi32(v[0], v[1]);
  const __m512i c = _mm512_unpacklo_epi32(v[2], v[3]), d = _mm512_unpackhi_epi32(v[2], v[3]);
  v[0] = _mm512_unpacklo_epi64(a, c);
  v[1] = _mm512_unpackhi_epi64(a, c);
  v[2] = _mm512_unpacklo_epi64(b, d);
  v[3] = _mm512_unpackhi_epi64(b, d);
}

// Low and high bytes of a step's weights 0-3 and 4-7 a lane.
struct StepBytes {
  __m512i low[2], high[2];
};

void store_rows(uint16_t* rows, __m512i two) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(rows), _mm512_castsi512_si256(two));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(rows + kTileStride), _mm512_extracti64x4_epi64(two, 1));
}
__m512i load_rows(const uint16_t* rows) {
  return _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows))),
                            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows + kTileStride)), 1);
}

void join_step(const StepBytes& bytes, __m512i offset, uint16_t* rows) {
  const __m512i front_rows = _mm512_set_epi64(11, 10, 3, 2, 9, 8, 1, 0),
                back_rows = _mm512_set_epi64(15, 14, 7, 6, 13, 12, 5, 4);
  __m512i r[4];  // register r of each lane: two weights
  for (int half = 0; half < 2; ++half) {
    const __m512i front = _mm512_unpacklo_epi8(bytes.low[half], bytes.high[half]);
    const __m512i back = _mm512_unpackhi_epi8(bytes.low[half], bytes.high[half]);
    r[2 * half] = _mm512_add_epi16(evens(front, back), offset);
    r[2 * half + 1] = _mm512_add_epi16(odds(front, back), offset);
  }
  store_rows(rows, _mm512_permutex2var_epi64(r[0], front_rows, r[2]));
  store_rows(rows + 2 * kTileStride, _mm512_permutex2var_epi64(r[0], back_rows, r[2]));
  store_rows(rows + 8 * kTileStride, _mm512_permutex2var_epi64(r[1], front_rows, r[3]));
  store_rows(rows + 10 * kTileStride, _mm512_permutex2var_epi64(r[1], back_rows, r[3]));
}

StepBytes split_step(const uint16_t* rows, __m512i offset) {
  const __m512i lefts = _mm512_set_epi64(13, 12, 9, 8, 5, 4, 1, 0),
                rights = _mm512_set_epi64(15, 14, 11, 10, 7, 6, 3, 2);
  const __m512i byte = _mm512_set1_epi16(0xff);
  const __m512i a = _mm512_sub_epi16(load_rows(rows), offset),
                b = _mm512_sub_epi16(load_rows(rows + 2 * kTileStride), offset);
  const __m512i c = _mm512_sub_epi16(load_rows(rows + 8 * kTileStride), offset);
  const __m512i d = _mm512_sub_epi16(load_rows(rows + 10 * kTileStride), offset);
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

void load_low(const uint8_t* low, uint32_t group, uint32_t present, StepBytes& first, StepBytes& second) {
  if (present >= 2) {
    const uint8_t* p = low + group * kGroupLanes * 16;
    __m512i v[4];
    for (uint32_t k = 0; k < 4; ++k) v[k] = load_quarters(p + 16 * k, 64);
    transpose(v);
    first.low[0] = v[0];
    first.low[1] = v[1];
    second.low[0] = v[2];
    second.low[1] = v[3];
  } else {
    const uint8_t* p = low + group * kGroupLanes * 8;
    const __m512i a = load_quarters(p, 32), b = load_quarters(p + 16, 32);
    first.low[0] = evens(a, b);
    first.low[1] = odds(a, b);
  }
}

void store_low(uint8_t* low, uint32_t group, uint32_t present, const StepBytes& first, const StepBytes& second) {
  if (present >= 2) {
    uint8_t* p = low + group * kGroupLanes * 16;
    __m512i v[4] = {first.low[0], first.low[1], second.low[0], second.low[1]};
    transpose(v);
    for (uint32_t k = 0; k < 4; ++k) store_quarters(p + 16 * k, 64, v[k]);
  } else {
    uint8_t* p = low + group * kGroupLanes * 8;
    store_quarters(p, 32, _mm512_unpacklo_epi32(first.low[0], first.low[1]));
    store_quarters(p + 16, 32, _mm512_unpackhi_epi32(first.low[0], first.low[1]));
  }
}

void decode_chunk(const uint8_t* planes, uint32_t steps, __m512i offset, uint16_t* tile) {
  const uint8_t* high = planes + low_plane_bytes(steps);
  for (uint32_t group = 0; group < kLanes / kGroupLanes; ++group) {
    __m512i x[3] = {};
    for (uint32_t i = 0; i < 3 && i < steps; ++i) x[i] = _mm512_loadu_si512(high + i * 128 + group * 64);
    StepBytes bytes[4];
    unpack_high(x, bytes);
    uint16_t* rows = tile + 4 * group * kTileStride;
    for (uint32_t step = 0; step < steps; step += 2) {
      load_low(planes + step * 256, group, steps - step, bytes[step], bytes[step + 1]);
      join_step(bytes[step], offset, rows + step * kStepCols);
      if (step + 1 < steps) join_step(bytes[step + 1], offset, rows + (step + 1) * kStepCols);
    }
  }
}

void encode_chunk(const uint16_t* tile, uint32_t steps, __m512i offset, uint8_t* planes) {
  uint8_t* high = planes + low_plane_bytes(steps);
  for (uint32_t group = 0; group < kLanes / kGroupLanes; ++group) {
    StepBytes bytes[4] = {};
    const uint16_t* rows = tile + 4 * group * kTileStride;
    for (uint32_t step = 0; step < steps; ++step) bytes[step] = split_step(rows + step * kStepCols, offset);
    for (uint32_t step = 0; step < steps; step += 2) {
      store_low(planes + step * 256, group, steps - step, bytes[step], bytes[step + 1]);
    }
    __m512i x[3];
    pack_high(bytes, x);
    for (uint32_t i = 0; i < 3 && i < steps; ++i) _mm512_storeu_si512(high + i * 128 + group * 64, x[i]);
  }
}

__m512i window_offset(uint32_t base) { return _mm512_set1_epi16(static_cast<int16_t>(base << 7)); }

void encode_planes(const uint16_t* tile, uint32_t steps, uint32_t base, uint8_t* planes) {
  const uint32_t first = chunk_steps(steps, 0), second = chunk_steps(steps, 1);
  encode_chunk(tile, first, window_offset(base), planes);
  encode_chunk(tile + kChunkSteps * kStepCols, second, window_offset(base), planes + chunk_bytes(first));
}

void decode_planes(const uint8_t* planes, uint32_t steps, uint32_t base, uint16_t* tile) {
  const uint32_t first = chunk_steps(steps, 0), second = chunk_steps(steps, 1);
  if (first == kChunkSteps) {
    decode_chunk(planes, kChunkSteps, window_offset(base), tile);  // unrolled
  } else {
    decode_chunk(planes, first, window_offset(base), tile);
  }
  if (second == kChunkSteps) {
    decode_chunk(planes + kChunkBytes, kChunkSteps, window_offset(base), tile + kChunkSteps * kStepCols);
  } else {
    decode_chunk(planes + chunk_bytes(first), second, window_offset(base), tile + kChunkSteps * kStepCols);
  }
}

void window_masks(const uint16_t* tile, uint32_t steps, uint32_t base, uint64_t* masks) {
  const __m512i window = _mm512_set1_epi16(static_cast<int16_t>(base)), exponents = _mm512_set1_epi16(0xff);
  for (uint32_t chunk = 0; chunk < 2; ++chunk) {
    const uint32_t cols = chunk_steps(steps, chunk) * kStepCols;
    // Columns that are not there read the tile's own memory and are masked off.
    const uint64_t present = cols == 0 ? 0 : ~uint64_t{0} >> (64 - cols);
    for (uint32_t row = 0; row < kStripRows; ++row) {
      const uint16_t* values = tile + row * kTileStride + chunk * 64;
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
