// Look-ups stay scalar (AVX2's gathers are slower than loads on half of the CPUs), four lanes at once; tiles move eight
// lanes a vector.
#include "base/bytes.hpp"
#include "weights/small/small_scalar_loops.hpp"
#include "weights/vectors_avx2.hpp"

namespace glyd::small {
namespace {

using namespace avx2;

constexpr uint32_t kGroupLanes = 8, kGroups = kLanes / kGroupLanes;

bool look_up(const LookupTables& tables, const StreamBits& bits, uint32_t steps, StreamEntries& out) {
  uint32_t flags = 0;
  for (uint32_t region = 0; region < kRegions; region += 2)
    flags |= look_up_regions<2>(tables, bits, region, steps, out);
  return flags == 0;
}

__m256i mask() { return _mm256_set1_epi32(static_cast<int>(kPairMask)); }

void join(const StreamEntries& entries, const uint8_t* planes, uint32_t steps, uint16_t* tile) {
  for (uint32_t step = 0; step < steps; ++step) {
    for (uint32_t group = 0; group < kGroups; ++group) {
      const uint8_t* p = planes + step * kStepPlaneBytes + group * kGroupLanes * 8;
      const __m256i a = load_groups(p, 32), b = load_groups(p + 16, 32);
      const __m256i words[2] = {evens(a, b), odds(a, b)};
      __m256i r[4];
      for (int pair = 0; pair < 4; ++pair) {
        const __m256i own = pair % 2 == 0 ? words[pair / 2] : rotl<24>(words[pair / 2]);
        const __m256i entry = load(entries.entries[step][pair] + group * kGroupLanes);
        r[pair] = _mm256_or_si256(_mm256_and_si256(own, mask()), _mm256_andnot_si256(mask(), entry));
      }
      store_rows(r, tile + 2 * group * kTileStride + step * kStepCols);
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
      store_groups(p, 32, weave_front(first, second));
      store_groups(p + 16, 32, weave_back(first, second));
    }
  }
}

}  // namespace

const Kernels kAvx2Kernels = {look_up, join, split, number_pairs};

}  // namespace glyd::small
