// execute_coded_body.hpp - turns tokens, literals, offsets and lengths into bytes (spec 6.1). Included once for each
// instruction set.
//
// Sequences are read a batch at a time, then copied. Both loops stay in registers then, neither has a branch on a
// token's fields, and the sources of matches, often out of the nearest caches, are fetched while the batch is read.
#pragma once

#if defined(__SSE4_1__)
#include <immintrin.h>
#endif

#include "codec/kernels/execute_body.hpp"

namespace glyd::codec {
namespace {

constexpr uint32_t kKindScale = 16;

// The last three offsets; take(kind * kKindScale, next) gives the offset of a sequence, `next` if that is a new one,
// and moves it to the front.
class RecentOffsets {
 public:
#if defined(__SSE4_1__)
  RecentOffsets()
      : lanes_(_mm_set_epi32(0, static_cast<int>(kFirstOffsets[2]), static_cast<int>(kFirstOffsets[1]),
                             static_cast<int>(kFirstOffsets[0]))) {}
  __attribute__((always_inline)) uint32_t take(uint32_t scaled_kind, uint32_t next) {
    alignas(16) static constexpr uint8_t kMoves[4 * kKindScale] = {
        0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 4, 5, 6,  7, 0, 1,
        2,  3,  8,  9,  10, 11, 12, 13, 14, 15, 8,  9,  10, 11, 0,  1,  2, 3, 4,  5, 6, 7,
        12, 13, 14, 15, 12, 13, 14, 15, 0,  1,  2,  3,  4,  5,  6,  7,  8, 9, 10, 11};
    lanes_ = _mm_shuffle_epi8(_mm_insert_epi32(lanes_, static_cast<int>(next), 3),
                              _mm_load_si128(reinterpret_cast<const __m128i*>(kMoves + scaled_kind)));
    return static_cast<uint32_t>(_mm_cvtsi128_si32(lanes_));
  }

 private:
  __m128i lanes_;
#else
  __attribute__((always_inline)) uint32_t take(uint32_t scaled_kind, uint32_t next) {
    const uint32_t kind = scaled_kind / kKindScale;
    recent_[3] = next;
    const uint32_t offset = recent_[kind];
    recent_[2] = recent_[kind >= 2 ? 1 : 2];
    recent_[1] = recent_[kind >= 1 ? 0 : 1];
    recent_[0] = offset;
    return offset;
  }

 private:
  uint32_t recent_[4] = {kFirstOffsets[0], kFirstOffsets[1], kFirstOffsets[2], 0};
#endif
};

constexpr size_t kBatch = 64;

// Sequences with everything known, field by field.
struct Batch {
  alignas(64) uint32_t runs[kBatch];
  uint32_t lengths[kBatch];
  uint32_t scaled_kinds[kBatch];
  uint32_t news[kBatch];  // 1: takes a new offset
  uint32_t from[kBatch];  // where the match's source is, in the unit
};

// Sequences whose run or length has an escape, lowest bit first.
struct Escapes {
  uint64_t runs, lengths;
};

// Fields of a batch's tokens, without what escapes add.
GLYD_KERNEL_INLINE Escapes split_tokens(const uint8_t* tokens, Batch& batch) {
  static_assert(kMinNewLength == kMinRepeatLength + 1);
  for (size_t i = 0; i < kBatch; ++i) {
    const uint32_t t = tokens[i];
    const uint32_t is_new = t >= kTokenNew << 6;
    batch.runs[i] = t & 3;
    batch.lengths[i] = ((t >> 2) & 15) + kMinRepeatLength + is_new;
    batch.scaled_kinds[i] = (t >> 6) * kKindScale;
    batch.news[i] = is_new;
  }
  static_assert(kTokenLiteralEscape == 3 && kTokenLengthEscape == 15);  // all bits of their fields
#if defined(__AVX2__)
  static_assert(kBatch == 64);
  const auto has = [&](const uint8_t* from, uint32_t bits) {
    const __m256i mask = _mm256_set1_epi8(static_cast<char>(bits));
    const __m256i some = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    return static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_and_si256(some, mask), mask)));
  };
  const auto all_with = [&](uint32_t bits) { return has(tokens, bits) | uint64_t{has(tokens + 32, bits)} << 32; };
  return {all_with(kTokenLiteralEscape), all_with(kTokenLengthEscape << 2)};
#else
  Escapes escapes{0, 0};
  for (size_t i = 0; i < kBatch; ++i) {
    escapes.runs |= uint64_t{(tokens[i] & 3u) == kTokenLiteralEscape} << i;
    escapes.lengths |= uint64_t{(tokens[i] >> 2 & 15u) == kTokenLengthEscape} << i;
  }
  return escapes;
#endif
}

class BatchReader {
 public:
  explicit BatchReader(const CodedBlock& in)
      : window_(in.window_begin),
        tokens_(in.tokens),
        offsets_(in.offsets),
        runs_(in.runs),
        lengths_(in.lengths),
        at_(static_cast<uint32_t>(in.out - in.window_begin)) {}

  // False if a match begins before the unit.
  __attribute__((always_inline)) bool read(Batch& batch, size_t count) {
    const Escapes escapes = split_tokens(tokens_, batch);
    tokens_ += count;
    add(escapes.runs, count, batch.runs, runs_);
    add(escapes.lengths, count, batch.lengths, lengths_);
    const uint32_t* offsets = offsets_;
    const uint8_t* const window = window_;
    uint32_t at = at_, below = 0;
    RecentOffsets recent = recent_;
    for (size_t i = 0; i < count; ++i) {
      const uint32_t offset = recent.take(batch.scaled_kinds[i], *offsets);
      offsets += batch.news[i];
      at += batch.runs[i];
      const uint32_t from = at - offset;
      below |= from;
      __builtin_prefetch(window + from);
      batch.from[i] = from;
      at += batch.lengths[i];
    }
    offsets_ = offsets, at_ = at, recent_ = recent;
    // Offsets are below 2^31, and so are places: a batch that fits begins in a unit of at most 2^30 bytes, and adds
    // less than 64 times 2 * 2^20.
    return below >> 31 == 0;
  }
  // Where the last sequence that was read ends, in the unit.
  uint32_t end() const { return at_; }
  bool at_ends_of(const CodedBlock& in) const {
    return offsets_ == in.offsets_end && runs_ == in.runs_end && lengths_ == in.lengths_end;
  }

 private:
  __attribute__((always_inline)) static void add(uint64_t which, size_t count, uint32_t* values,
                                                 const uint32_t*& more) {
    for (which &= UINT64_MAX >> (kBatch - count); which != 0; which &= which - 1)
      values[__builtin_ctzll(which)] += *more++;
  }

  const uint8_t *const window_, *tokens_;
  const uint32_t *offsets_, *runs_, *lengths_;
  uint32_t at_;  // not trusted, only fetched from, until it is compared
  RecentOffsets recent_;
};

inline bool execute_coded(const CodedBlock& in) {
  const uint8_t* literals = in.literals;
  const uint8_t* const literals_end = in.literals_end;
  const uint8_t* const window = in.window_begin;
  uint8_t* out = in.out;
  const size_t fast_end = static_cast<size_t>(in.out - window) + bytes_before_overshoot(in);
  BatchReader reader(in);
  Batch batch;
  for (size_t left = static_cast<size_t>(in.tokens_end - in.tokens); left != 0;) {
    const size_t count = left < kBatch ? left : kBatch;
    left -= count;
    if (!reader.read(batch, count)) return false;
    if (GLYD_LIKELY(reader.end() <= fast_end)) {
      // Runs that are longer than the literals are noticed at the end: no more than the block's bytes are ever read.
      for (size_t i = 0; i < count; ++i) {
        copy_run(out, literals, batch.runs[i]);
        literals += batch.runs[i];
        out += batch.runs[i];
        copy_match(out, window + batch.from[i], batch.lengths[i]);
        out += batch.lengths[i];
      }
      continue;
    }
    for (size_t i = 0; i < count; ++i) {
      const size_t run = batch.runs[i], length = batch.lengths[i];
      const size_t offset = static_cast<size_t>(out - window) + run - batch.from[i];
      if (literals > literals_end ||
          !finish_sequence(out, in.out_end, window, literals, literals_end, run, length, offset))
        return false;
      literals += run;
      out += run + length;
    }
  }
  if (literals > literals_end || !reader.at_ends_of(in)) return false;
  const size_t run = static_cast<size_t>(literals_end - literals);
  if (run != static_cast<size_t>(in.out_end - out)) return false;
  std::memcpy(out, literals, run);
  return true;
}

}  // namespace
}  // namespace glyd::codec
