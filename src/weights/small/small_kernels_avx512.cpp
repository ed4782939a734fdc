// Look-ups by gathers, one lane a region a vector; tiles as with AVX2 but sixteen lanes a vector.
#include "base/bytes.hpp"
#include "weights/small/small_scalar_loops.hpp"
#include "weights/vectors_avx512.hpp"

namespace glyd::small {
namespace {

using namespace avx512;

constexpr uint32_t kGroupLanes = 16, kGroups = kLanes / kGroupLanes;
static_assert(kRegions == 16);

// 32 bits from bit `place` of `string`, a lane each.
__m512i gather_bits(const uint8_t* string, __m512i place) {
  const __m512i byte = _mm512_srli_epi32(place, 3), bit = _mm512_and_si512(place, _mm512_set1_epi32(7));
  const __m512i low = _mm512_i32gather_epi32(byte, string, 1), high = _mm512_i32gather_epi32(byte, string + 4, 1);
  return _mm512_or_si512(_mm512_srlv_epi32(low, bit),
                         _mm512_sllv_epi32(high, _mm512_sub_epi32(_mm512_set1_epi32(32), bit)));
}

// A window of 32 bits is enough: a step of more is refused, and zeros in place of the bits behind it cannot make a
// longer code look like one that still fits.
bool look_up(const LookupTables& tables, const StreamBits& bits, uint32_t steps, StreamEntries& out) {
  const uint8_t* base = bits.bits - kReachBytes;
  const __m512i reach = _mm512_set1_epi32(8 * kReachBytes),
                length = _mm512_set1_epi32(static_cast<int>(kEntryLengthMask));
  const __m512i index = _mm512_set1_epi32(static_cast<int>(kLookups - 1)), word = _mm512_set1_epi32(32);
  const __m512i front = _mm512_set_epi32(23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  const __m512i back = _mm512_add_epi32(front, _mm512_set1_epi32(8));
  const __m512i up_start = _mm512_add_epi32(_mm512_loadu_si512(bits.begin), reach);
  const __m512i down_start = _mm512_add_epi32(_mm512_loadu_si512(bits.begin + 1), reach);
  __m512i up = up_start, down = down_start, flags = _mm512_setzero_si512();
  __mmask16 too_long = 0;
  for (uint32_t step = 0; step < steps; ++step) {
    __m512i up_window = gather_bits(base, up), down_window = gather_bits(base, _mm512_sub_epi32(down, word));
    __m512i up_bits = _mm512_setzero_si512(), down_bits = _mm512_setzero_si512();
    for (uint32_t pair = 0; pair < 4; ++pair) {
      const __m512i even = _mm512_i32gather_epi32(_mm512_and_si512(up_window, index), tables.up, 4);
      const __m512i odd = _mm512_i32gather_epi32(_mm512_srli_epi32(down_window, 32 - kMostCodeBits), tables.down, 4);
      const __m512i even_length = _mm512_and_si512(even, length), odd_length = _mm512_and_si512(odd, length);
      flags = _mm512_or_si512(flags, _mm512_or_si512(even, odd));
      up_window = _mm512_srlv_epi32(up_window, even_length);
      down_window = _mm512_sllv_epi32(down_window, odd_length);
      up_bits = _mm512_add_epi32(up_bits, even_length);
      down_bits = _mm512_add_epi32(down_bits, odd_length);
      uint32_t* entries = out.entries[step][pair];
      _mm512_storeu_si512(entries, _mm512_permutex2var_epi32(even, front, odd));
      _mm512_storeu_si512(entries + 16, _mm512_permutex2var_epi32(even, back, odd));
    }
    too_long = static_cast<__mmask16>(too_long | _mm512_cmpgt_epu32_mask(up_bits, word) |
                                      _mm512_cmpgt_epu32_mask(down_bits, word));
    up = _mm512_add_epi32(up, up_bits);
    down = _mm512_sub_epi32(down, down_bits);
  }
  const __m512i up_used = _mm512_sub_epi32(up, up_start), down_used = _mm512_sub_epi32(down_start, down);
  _mm512_storeu_si512(out.used, _mm512_permutex2var_epi32(up_used, front, down_used));
  _mm512_storeu_si512(out.used + 16, _mm512_permutex2var_epi32(up_used, back, down_used));
  return too_long == 0 && _mm512_test_epi32_mask(flags, _mm512_set1_epi32(static_cast<int>(kNoCode))) == 0;
}

__m512i mask() { return _mm512_set1_epi32(static_cast<int>(kPairMask)); }

void join(const StreamEntries& entries, const uint8_t* planes, uint32_t steps, uint16_t* tile) {
  const __m512i evens = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
  const __m512i odds = _mm512_add_epi32(evens, _mm512_set1_epi32(1));
  for (uint32_t step = 0; step < steps; ++step) {
    for (uint32_t group = 0; group < kGroups; ++group) {
      const uint8_t* p = planes + step * kStepPlaneBytes + group * kGroupLanes * 8;
      const __m512i a = _mm512_loadu_si512(p), b = _mm512_loadu_si512(p + 64);
      const __m512i words[2] = {_mm512_permutex2var_epi32(a, evens, b), _mm512_permutex2var_epi32(a, odds, b)};
      __m512i r[4];
      for (int pair = 0; pair < 4; ++pair) {
        const __m512i own = pair % 2 == 0 ? words[pair / 2] : _mm512_rol_epi32(words[pair / 2], 24);
        const __m512i entry = _mm512_loadu_si512(entries.entries[step][pair] + group * kGroupLanes);
        r[pair] = _mm512_ternarylogic_epi32(mask(), own, entry, 0xca);  // mask ? own : entry
      }
      store_rows(r, tile + 4 * group * kTileStride + step * kStepCols);
    }
  }
}

void split(const uint16_t* tile, uint32_t steps, uint8_t* planes) {
  // The inverse of store_rows: all left halves, all right halves.
  const __m512i lefts = _mm512_set_epi64(13, 12, 9, 8, 5, 4, 1, 0),
                rights = _mm512_set_epi64(15, 14, 11, 10, 7, 6, 3, 2);
  const __m512i front = _mm512_set_epi32(23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  const __m512i back = _mm512_add_epi32(front, _mm512_set1_epi32(8));
  for (uint32_t step = 0; step < steps; ++step) {
    for (uint32_t group = 0; group < kGroups; ++group) {
      const uint16_t* rows = tile + 4 * group * kTileStride + step * kStepCols;
      const __m512i a = _mm512_and_si512(load_two_rows(rows), mask()),
                    b = _mm512_and_si512(load_two_rows(rows + 2 * kTileStride), mask());
      const __m512i c = _mm512_and_si512(load_two_rows(rows + 8 * kTileStride), mask());
      const __m512i d = _mm512_and_si512(load_two_rows(rows + 10 * kTileStride), mask());
      const __m512i first = _mm512_or_si512(_mm512_permutex2var_epi64(a, lefts, b),
                                            _mm512_rol_epi32(_mm512_permutex2var_epi64(c, lefts, d), 8));
      const __m512i second = _mm512_or_si512(_mm512_permutex2var_epi64(a, rights, b),
                                             _mm512_rol_epi32(_mm512_permutex2var_epi64(c, rights, d), 8));
      uint8_t* p = planes + step * kStepPlaneBytes + group * kGroupLanes * 8;
      _mm512_storeu_si512(p, _mm512_permutex2var_epi32(first, front, second));
      _mm512_storeu_si512(p + 64, _mm512_permutex2var_epi32(first, back, second));
    }
  }
}

}  // namespace

const Kernels kAvx512Kernels = {look_up, join, split, number_pairs};

}  // namespace glyd::small
