// search_body.hpp - the search of level max. Included once for each instruction set; all find the same sequences.
//
// Two tables of one candidate each, of hashes of five and of eight bytes, and one position of lookahead. An entry holds
// some more bits of its hash beside the position, so that most candidates that do not match are never loaded. What a
// sequence costs is waiting for tables and candidates, and branches that go the other way: the next position is looked
// up before this one is judged, a length up to 32 is found without a branch, and what can be done without a second
// candidate is.
#pragma once

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "codec/format.hpp"
#include "codec/kernels/basics.hpp"
#include "codec/kernels/kernels.hpp"

namespace glyd::codec {
namespace {

constexpr uint64_t kHashPrime = 0x9e3779b185ebca87u;
constexpr uint32_t kSearchMargin = 32;  // bytes of the block that may be loaded at a position which is searched
constexpr int kSearchStepShift = 9;     // one position more is skipped for every 512 bytes without a match
constexpr uint32_t kLookBelow = 32;     // a match this long is taken without looking at the next position
constexpr uint32_t kFarMatch = 8;       // what the table of eight bytes promises
constexpr uint32_t kEnoughRepeat = 5;   // such a match of the last offset is taken without looking for others
constexpr uint32_t kLeastMatch = 4;
// About what things cost, in bits.
constexpr int kBitsOfLiteral = 5, kBitsOfNew = 10, kBitsOfRepeat = 6;

#if defined(__AVX2__)
// A bit for each of 32 bytes that differs.
GLYD_KERNEL_INLINE uint32_t differing(const uint8_t* a, const uint8_t* b) {
  const __m256i same = _mm256_cmpeq_epi8(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(a)),
                                         _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b)));
  return ~static_cast<uint32_t>(_mm256_movemask_epi8(same));
}

// Where the first 32 bytes are the same: out of the way, the loop would cost the others registers. 32 bytes a step: in
// logs every second match comes here, and the end of a loop is guessed wrong once a match.
__attribute__((noinline)) uint32_t common_from_32(const uint8_t* a, const uint8_t* b, const uint8_t* a_end) {
  uint32_t done = 32;
  for (; a_end - a >= static_cast<ptrdiff_t>(done) + 32; done += 32) {
    const uint32_t differ = differing(a + done, b + done);
    if (differ != 0) return done + static_cast<uint32_t>(__builtin_ctz(differ));
  }
  return done + static_cast<uint32_t>(match_length(a + done, b + done, a_end));
}
#endif

// Length of the common prefix; kSearchMargin bytes may be loaded at a, and none of a counts from `a_end` on.
GLYD_KERNEL_INLINE uint32_t common_bytes(const uint8_t* a, const uint8_t* b, const uint8_t* a_end) {
#if defined(__AVX2__)
  const uint32_t differ = differing(a, b);
  return GLYD_LIKELY(differ != 0) ? static_cast<uint32_t>(__builtin_ctz(differ)) : common_from_32(a, b, a_end);
#else
  return static_cast<uint32_t>(match_length(a, b, a_end));
#endif
}

struct Found {
  uint32_t length, offset;
  int value;  // about what it saves, in bits
};

template <int kNearLog, int kFarLog, int kPositionBits>
GLYD_KERNEL_INLINE Sequence* search_tables(const MaxSearch& in) {
  constexpr int kTagBits = 32 - kPositionBits;
  constexpr uint32_t kPositionMask = (uint32_t{1} << kPositionBits) - 1;
  const uint8_t* const base = in.unit;
  const uint8_t* const stop = base + in.end;
  Sequence* out = in.out;
  uint32_t *const near_table = in.tables, *const far_table = near_table + (1 << kNearLog);
  const auto near_hash = [](uint64_t word) {
    return static_cast<uint32_t>(((word << 24) * kHashPrime) >> (64 - kNearLog - kTagBits));
  };
  const auto far_hash = [](uint64_t word) {
    return static_cast<uint32_t>((word * kHashPrime) >> (64 - kFarLog - kTagBits));
  };
  // Puts a position in; gives the one that was there, or the position itself if that has another hash.
  const auto swap = [](uint32_t* table, uint32_t hash, uint32_t position) {
    uint32_t& slot = table[hash >> kTagBits];
    const uint32_t old = slot, tag = hash << kPositionBits;
    slot = tag | position;
    return (old ^ tag) >> kPositionBits == 0 ? old & kPositionMask : position;
  };
  struct Candidates {
    uint32_t near, far;
  };
  const auto look_up = [=](uint32_t position) {
    const uint64_t word = load64(base + position);
    return Candidates{swap(near_table, near_hash(word), position), swap(far_table, far_hash(word), position)};
  };
  const auto put_in_far = [=](uint32_t position) {
    const uint32_t far = far_hash(load64(base + position));
    far_table[far >> kTagBits] = far << kPositionBits | position;
  };
  const auto put_in = [=](uint32_t position) {
    const uint32_t near = near_hash(load64(base + position));
    near_table[near >> kTagBits] = near << kPositionBits | position;
    put_in_far(position);
  };
  uint32_t recent = kFirstOffsets[0], recent1 = kFirstOffsets[1];
  // The near candidate counts where the far one does not match. One at `known` is passed over.
  const auto best_at = [&](uint32_t at, Candidates candidates, uint32_t known) {
    const uint8_t* const here = base + at;
    Found best{0, 0, 0};
    if (GLYD_UNLIKELY(load32(here) == load32(here - recent))) {
      const uint32_t length = common_bytes(here, here - recent, stop);
      best = {length, recent, static_cast<int>(length) * kBitsOfLiteral - kBitsOfRepeat};
      if (length >= kEnoughRepeat) return best;
    }
    const auto judge = [&](uint32_t from) {
      const uint32_t length = common_bytes(here, base + from, stop), offset = at - from;
      const int value = static_cast<int>(length) * kBitsOfLiteral - kBitsOfNew - log2_floor(offset);
      if (value > best.value && length >= kLeastMatch) best = {length, offset, value};
    };
    if (candidates.far != at && candidates.far != known) judge(candidates.far);
    if (best.length < kFarMatch && candidates.near != at && candidates.near != known &&
        candidates.near != candidates.far)
      judge(candidates.near);
    return best;
  };

  const uint32_t limit = in.end - kSearchMargin;
  uint32_t anchor = in.begin;
  uint32_t at = in.begin == 0 ? kFirstOffsets[2] : in.begin;  // the first offsets lie in the unit
  if (at >= limit) return out;
  Candidates here = look_up(at);
  while (at < limit) {
    Candidates after = look_up(at + 1);
    Found best = best_at(at, here, at);
    if (best.value <= 0) {
      const uint32_t step = (at - anchor) >> kSearchStepShift;
      ++at;
      here = after;
      if (GLYD_UNLIKELY(step != 0)) {
        at += step;
        if (at >= limit) break;
        here = look_up(at);
      }
      continue;
    }
    const auto fetch_after = [&] {
      if (at + best.length >= limit) return;
      for (uint32_t k = 0; k < 2; ++k) {
        const uint64_t word = load64(base + at + best.length + k);
        __builtin_prefetch(near_table + (near_hash(word) >> kTagBits));
        __builtin_prefetch(far_table + (far_hash(word) >> kTagBits));
      }
    };
    fetch_after();
    while (best.length < kLookBelow && at + 1 < limit && after.far != at + 1) {
      // Only eight bytes in common are worth leaving it; the same match is no better from there.
      const Found next = best_at(at + 1, {at + 1, after.far}, at + 1 - best.offset);
      if (next.value <= best.value + 1) break;
      best = next;
      ++at;
      fetch_after();
      after = look_up(at + 1);
    }
    uint32_t from = at;
    while (from > anchor && from > best.offset && base[from - 1] == base[from - 1 - best.offset]) --from, ++best.length;
    *out++ = {from - anchor, best.length, best.offset};
    if (best.offset != recent) recent1 = recent, recent = best.offset;
    anchor = from + best.length;
    if (anchor >= limit) break;
    // Three positions of the match, of any length: a loop's end would be guessed wrong. One of them far only: a short
    // match from there is mostly found from the others.
    put_in_far(at + 2);
    put_in(anchor - 2);
    put_in(at + (anchor - at) / 2);
    at = anchor;
    while (at < limit) {
      const uint32_t length = common_bytes(base + at, base + at - recent1, stop);
      if (length < kLeastMatch) break;
      const uint32_t offset = recent1;
      recent1 = recent;
      recent = offset;
      put_in(at);
      *out++ = {0, length, offset};
      at += length;
      anchor = at;
    }
    if (at >= limit) break;
    here = look_up(at);
  }
  return out;
}

inline Sequence* search_max(const MaxSearch& in) {
  switch (in.size) {
    case MaxSearch::kSmall:
      return search_tables<12, 13, 16>(in);
    case MaxSearch::kMiddle:
      return search_tables<14, 17, 23>(in);
    case MaxSearch::kLarge:
      break;
  }
  return search_tables<17, 18, kMaxUnitLog>(in);
}

}  // namespace
}  // namespace glyd::codec
