// Look-ups stay scalar (AVX2's gathers are slower than loads on half of the CPUs), four lanes at once; tiles move eight
// lanes a vector.
#include <immintrin.h>

#include "base/bytes.hpp"
#include "weights/registry.hpp"
#include "weights/small/small_scalar_loops.hpp"

namespace glyd::small {
namespace {

constexpr uint32_t kGroupLanes = 8, kGroups = kLanes / kGroupLanes;

bool look_up(const LookupTables& tables, const StreamBits& bits, uint32_t steps, StreamEntries& out) {
  uint32_t flags = 0;
  for (uint32_t region = 0; region < kRegions; region += 2)
    flags |= look_up_regions<2>(tables, bits, region, steps, out);
  return flags == 0;
}

__m256i load(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
void store(void* p, __m256i v) { _mm256_storeu_si256(static_cast<__m256i*>(p), v); }
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
template <int kBits>
__m256i rotl(__m256i v) {
  return _mm256_or_si256(_mm256_slli_epi32(v, kBits), _mm256_srli_epi32(v, 32 - kBits));
}
__m256i mask() { return _mm256_set1_epi32(static_cast<int>(kPairMask)); }

void join(const StreamEntries& entries, const uint8_t* planes, uint32_t steps, uint16_t* tile) {
  for (uint32_t step = 0; step < steps; ++step) {
    for (uint32_t group = 0; group < kGroups; ++group) {
      const uint8_t* p = planes + step * kStepPlaneBytes + group * kGroupLanes * 8;
      const __m256i a = load_halves(p, p + 32), b = load_halves(p + 16, p + 48);
      const __m256i words[2] = {pick<0x88>(a, b), pick<0xdd>(a, b)};
      __m256i r[4];
      for (int pair = 0; pair < 4; ++pair) {
        const __m256i own = pair % 2 == 0 ? words[pair / 2] : rotl<24>(words[pair / 2]);
        const __m256i entry = load(entries.entries[step][pair] + group * kGroupLanes);
        r[pair] = _mm256_or_si256(_mm256_and_si256(own, mask()), _mm256_andnot_si256(mask(), entry));
      }
      uint16_t* rows = tile + 2 * group * kTileStride + step * kStepCols;
      store(rows, _mm256_permute2x128_si256(r[0], r[2], 0x20));
      store(rows + kTileStride, _mm256_permute2x128_si256(r[0], r[2], 0x31));
      store(rows + 8 * kTileStride, _mm256_permute2x128_si256(r[1], r[3], 0x20));
      store(rows + 9 * kTileStride, _mm256_permute2x128_si256(r[1], r[3], 0x31));
    }
  }
}

void split(const uint16_t* tile, uint32_t steps, uint8_t* planes) {
  for (uint32_t step = 0; step < steps; ++step) {
    for (uint32_t group = 0; group < kGroups; ++group) {
      const uint16_t* rows = tile + 2 * group * kTileStride + step * kStepCols;
      const __m256i a = _mm256_and_si256(load(rows), mask()), b = _mm256_and_si256(load(rows + kTileStride), mask());
      const __m256i c = _mm256_and_si256(load(rows + 8 * kTileStride), mask());
      const __m256i d = _mm256_and_si256(load(rows + 9 * kTileStride), mask());
      const __m256i first =
          _mm256_or_si256(_mm256_permute2x128_si256(a, b, 0x20), rotl<8>(_mm256_permute2x128_si256(c, d, 0x20)));
      const __m256i second =
          _mm256_or_si256(_mm256_permute2x128_si256(a, b, 0x31), rotl<8>(_mm256_permute2x128_si256(c, d, 0x31)));
      uint8_t* p = planes + step * kStepPlaneBytes + group * kGroupLanes * 8;
      store_halves(p, p + 32, _mm256_unpacklo_epi32(first, second));
      store_halves(p + 16, p + 48, _mm256_unpackhi_epi32(first, second));
    }
  }
}

}  // namespace

const Kernels kAvx2Kernels = {look_up, join, split, number_pairs};

}  // namespace glyd::small
