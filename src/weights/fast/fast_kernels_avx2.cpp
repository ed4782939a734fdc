// Eight lanes a vector: two row groups g, g + 1 of a step (spec 1.1), the even group's four lanes in the low half.
#include <immintrin.h>

#include "base/bytes.hpp"
#include "format/fast_patch.hpp"
#include "weights/fast/fast_kernels.hpp"
#include "weights/registry.hpp"

namespace glyd::fast {
namespace {

constexpr uint32_t kGroupLanes = 8;

__m256i load(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
void store(void* p, __m256i v) { _mm256_storeu_si256(static_cast<__m256i*>(p), v); }
// 16 bytes at each of two places.
__m256i load_halves(const uint8_t* low, const uint8_t* high) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(low))),
                                 _mm_loadu_si128(reinterpret_cast<const __m128i*>(high)), 1);
}
void store_halves(uint8_t* low, uint8_t* high, __m256i v) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(low), _mm256_castsi256_si128(v));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(high), _mm256_extracti128_si256(v, 1));
}
template <int kPick>
__m256i pick(__m256i a, __m256i b) {
  return _mm256_castps_si256(_mm256_shuffle_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), kPick));
}
__m256i evens(__m256i a, __m256i b) { return pick<0x88>(a, b); }
__m256i odds(__m256i a, __m256i b) { return pick<0xdd>(a, b); }
template <int kBits>
__m256i rotl(__m256i v) {
  return _mm256_or_si256(_mm256_slli_epi32(v, kBits), _mm256_srli_epi32(v, 32 - kBits));
}
// Words 4 x 4 in each half: its own inverse.
void transpose(__m256i (&v)[4]) {
  const __m256i a = _mm256_unpacklo_epi32(v[0], v[1]), b = _mm256_unpackhi_epi32(v[0], v[1]);
  const __m256i c = _mm256_unpacklo_epi32(v[2], v[3]), d = _mm256_unpackhi_epi32(v[2], v[3]);
  v[0] = _mm256_unpacklo_epi64(a, c);
  v[1] = _mm256_unpackhi_epi64(a, c);
  v[2] = _mm256_unpacklo_epi64(b, d);
  v[3] = _mm256_unpackhi_epi64(b, d);
}

// Low and high bytes of a step's weights 0-3 and 4-7 a lane.
struct StepBytes {
  __m256i low[2], high[2];
};

// `rows`: row group g of the step; the others stand 1, 8 and 9 rows on.
void join_step(const StepBytes& bytes, __m256i offset, uint16_t* rows) {
  __m256i r[4];  // register r of each lane: two weights
  for (int half = 0; half < 2; ++half) {
    const __m256i front = _mm256_unpacklo_epi8(bytes.low[half], bytes.high[half]);
    const __m256i back = _mm256_unpackhi_epi8(bytes.low[half], bytes.high[half]);
    r[2 * half] = _mm256_add_epi16(evens(front, back), offset);
    r[2 * half + 1] = _mm256_add_epi16(odds(front, back), offset);
  }
  store(rows, _mm256_permute2x128_si256(r[0], r[2], 0x20));
  store(rows + kTileStride, _mm256_permute2x128_si256(r[0], r[2], 0x31));
  store(rows + 8 * kTileStride, _mm256_permute2x128_si256(r[1], r[3], 0x20));
  store(rows + 9 * kTileStride, _mm256_permute2x128_si256(r[1], r[3], 0x31));
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

void load_low(const uint8_t* low, uint32_t group, uint32_t present, StepBytes& first, StepBytes& second) {
  if (present >= 2) {
    const uint8_t* p = low + group * kGroupLanes * 16;
    __m256i v[4];
    for (int k = 0; k < 4; ++k) v[k] = load_halves(p + 16 * k, p + 16 * (k + 4));
    transpose(v);
    first.low[0] = v[0];
    first.low[1] = v[1];
    second.low[0] = v[2];
    second.low[1] = v[3];
  } else {
    const uint8_t* p = low + group * kGroupLanes * 8;
    const __m256i a = load_halves(p, p + 32), b = load_halves(p + 16, p + 48);
    first.low[0] = evens(a, b);
    first.low[1] = odds(a, b);
  }
}

void store_low(uint8_t* low, uint32_t group, uint32_t present, const StepBytes& first, const StepBytes& second) {
  if (present >= 2) {
    uint8_t* p = low + group * kGroupLanes * 16;
    __m256i v[4] = {first.low[0], first.low[1], second.low[0], second.low[1]};
    transpose(v);
    for (int k = 0; k < 4; ++k) store_halves(p + 16 * k, p + 16 * (k + 4), v[k]);
  } else {
    uint8_t* p = low + group * kGroupLanes * 8;
    store_halves(p, p + 32, _mm256_unpacklo_epi32(first.low[0], first.low[1]));
    store_halves(p + 16, p + 48, _mm256_unpackhi_epi32(first.low[0], first.low[1]));
  }
}

void decode_chunk(const uint8_t* planes, uint32_t steps, __m256i offset, uint16_t* tile) {
  const uint8_t* high = planes + low_plane_bytes(steps);
  for (uint32_t group = 0; group < kLanes / kGroupLanes; ++group) {
    __m256i x[3] = {};
    for (uint32_t i = 0; i < 3 && i < steps; ++i) x[i] = load(high + i * 128 + group * 32);
    StepBytes bytes[4];
    unpack_high(x, bytes);
    uint16_t* rows = tile + 2 * group * kTileStride;
    for (uint32_t step = 0; step < steps; step += 2) {
      load_low(planes + step * 256, group, steps - step, bytes[step], bytes[step + 1]);
      join_step(bytes[step], offset, rows + step * kStepCols);
      if (step + 1 < steps) join_step(bytes[step + 1], offset, rows + (step + 1) * kStepCols);
    }
  }
}

void encode_chunk(const uint16_t* tile, uint32_t steps, __m256i offset, uint8_t* planes) {
  uint8_t* high = planes + low_plane_bytes(steps);
  for (uint32_t group = 0; group < kLanes / kGroupLanes; ++group) {
    StepBytes bytes[4] = {};
    const uint16_t* rows = tile + 2 * group * kTileStride;
    for (uint32_t step = 0; step < steps; ++step) bytes[step] = split_step(rows + step * kStepCols, offset);
    for (uint32_t step = 0; step < steps; step += 2) {
      store_low(planes + step * 256, group, steps - step, bytes[step], bytes[step + 1]);
    }
    __m256i x[3];
    pack_high(bytes, x);
    for (uint32_t i = 0; i < 3 && i < steps; ++i) store(high + i * 128 + group * 32, x[i]);
  }
}

__m256i window_offset(uint32_t base) { return _mm256_set1_epi16(static_cast<int16_t>(base << 7)); }

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

void window_masks(const uint16_t* tile, uint32_t steps, uint32_t base, uint64_t* masks) {
  const __m256i window = _mm256_set1_epi16(static_cast<int16_t>(base));
  for (uint32_t chunk = 0; chunk < 2; ++chunk) {
    const uint32_t cols = chunk_steps(steps, chunk) * kStepCols;
    // Columns that are not there read the tile's own memory and are masked off.
    const uint64_t present = cols == 0 ? 0 : ~uint64_t{0} >> (64 - cols);
    for (uint32_t row = 0; row < kStripRows; ++row) {
      const uint16_t* values = tile + row * kTileStride + chunk * 64;
      const uint64_t outside = outside_of_32(values, window) | uint64_t{outside_of_32(values + 32, window)} << 32;
      masks[chunk * kStripRows + row] = outside & present;
    }
  }
}

}  // namespace

const Kernels kAvx2Kernels = {window_masks, encode_planes, decode_planes};

}  // namespace glyd::fast
