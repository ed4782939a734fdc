// execute_body.hpp - turns tokens, literals, offsets and lengths into bytes (spec 6.4, 7.3). Included once for each
// instruction set.
//
// The loops copy 16 or 32 bytes whatever the length, and read escapes and offsets without a branch on the token: what
// is left to mispredict is a long literal run, a match above 32 bytes and an offset below 16. Overshoot stays within
// the unit's own bytes, which later sequences overwrite; where it would not, and for anything malformed, the sequence
// goes through `finish_sequence`, which checks every byte.
#pragma once

#if defined(__SSSE3__)
#include <immintrin.h>
#endif

#include "codec/format.hpp"
#include "codec/kernels/basics.hpp"
#include "codec/kernels/kernels.hpp"

namespace glyd::codec {
namespace {

constexpr size_t kOvershoot = 64;

// The last three offsets and the next new one; take(kind, next) gives the offset of a sequence and moves it to the
// front.
class RecentOffsets {
 public:
#if defined(__SSSE3__)
  GLYD_KERNEL_INLINE __m128i start() {
    return _mm_set_epi32(0, static_cast<int>(kFirstOffsets[2]), static_cast<int>(kFirstOffsets[1]),
                         static_cast<int>(kFirstOffsets[0]));
  }
  RecentOffsets() : lanes_(start()) {}
  __attribute__((always_inline)) uint32_t take(uint32_t kind, uint32_t next) {
    alignas(16) static constexpr uint8_t kMoves[4][16] = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
                                                          {4, 5, 6, 7, 0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15},
                                                          {8, 9, 10, 11, 0, 1, 2, 3, 4, 5, 6, 7, 12, 13, 14, 15},
                                                          {12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}};
    const __m128i with_next = _mm_unpacklo_epi64(
        _mm_shuffle_epi32(lanes_, 0x44),
        _mm_unpacklo_epi32(_mm_shuffle_epi32(lanes_, 0xaa), _mm_cvtsi32_si128(static_cast<int>(next))));
    lanes_ = _mm_shuffle_epi8(with_next, _mm_load_si128(reinterpret_cast<const __m128i*>(kMoves[kind])));
    return static_cast<uint32_t>(_mm_cvtsi128_si32(lanes_));
  }

 private:
  __m128i lanes_;
#else
  __attribute__((always_inline)) uint32_t take(uint32_t kind, uint32_t next) {
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

// A match of offset below 16: widens the period to at least 8, then copies eights. Writes up to 15 bytes past the end.
GLYD_KERNEL_INLINE void copy_near(uint8_t* out, uint32_t offset, size_t length) {
  const uint8_t* from = out - offset;
  if (offset < 8) {
    for (int k = 0; k < 8; ++k) out[k] = from[k];
    static constexpr uint8_t kPeriod[8] = {8, 8, 8, 9, 8, 10, 12, 14};  // smallest multiple of the offset from 8 on
    from = out + 8 - kPeriod[offset];
    for (size_t done = 8; done < length; done += 8, from += 8) copy8(out + done, from);
    return;
  }
  for (size_t done = 0; done < length; done += 8, from += 8) copy8(out + done, from);
}

// One sequence with every check; never writes outside out..out_end.
__attribute__((noinline)) bool finish_sequence(uint8_t* out, const uint8_t* out_end, const uint8_t* window_begin,
                                               const uint8_t* literals, const uint8_t* literals_end, size_t run,
                                               size_t length, size_t offset) {
  if (run > static_cast<size_t>(literals_end - literals) || run > static_cast<size_t>(out_end - out)) return false;
  std::memcpy(out, literals, run);
  out += run;
  if (length > static_cast<size_t>(out_end - out) || offset == 0 || offset > static_cast<size_t>(out - window_begin))
    return false;
  const uint8_t* from = out - offset;
  for (size_t k = 0; k < length; ++k) out[k] = from[k];
  return true;
}

GLYD_KERNEL_INLINE void copy_run(uint8_t* out, const uint8_t* from, size_t length) {
  copy16(out, from);
  if (GLYD_UNLIKELY(length > 16)) {
    copy16(out + 16, from + 16);
    for (size_t done = 32; GLYD_UNLIKELY(done < length); done += 32) {
      copy16(out + done, from + done);
      copy16(out + done + 16, from + done + 16);
    }
  }
}

GLYD_KERNEL_INLINE void copy_match(uint8_t* out, size_t offset, size_t length) {
  if (GLYD_UNLIKELY(offset < 16)) {
    copy_near(out, static_cast<uint32_t>(offset), length);
    return;
  }
  const uint8_t* from = out - offset;
  copy16(out, from);
  copy16(out + 16, from + 16);
  if (GLYD_UNLIKELY(length > 32)) {
    copy16(out + 32, from + 32);
    copy16(out + 48, from + 48);
    for (size_t done = 64; GLYD_UNLIKELY(done < length); done += 32) {
      copy16(out + done, from + done);
      copy16(out + done + 16, from + done + 16);
    }
  }
}

// One sequence with everything known.
struct Step {
  uint32_t run, length, offset;
};
// A match's source is often out of the nearest caches, and waiting for it was two thirds of the time: sources are
// fetched this many sequences ahead.
constexpr size_t kAhead = 16;

class StepReader {
 public:
  explicit StepReader(const CodedBlock& in)
      : token_(in.tokens), offsets_(in.offsets), runs_(in.runs), lengths_(in.lengths), at_(in.out) {}

  __attribute__((always_inline)) void read(Step& step) {
    const uint32_t t = *token_++;
    const uint32_t is_new = t >= kTokenNew << 6;
    uint32_t run = t & 3;
    const uint32_t run_escape = run == kTokenLiteralEscape;
    run += *runs_ & (0 - run_escape);
    runs_ += run_escape;
    uint32_t length = (t >> 2) & 15;
    const uint32_t length_escape = length == kTokenLengthEscape;
    length += *lengths_ & (0 - length_escape);
    lengths_ += length_escape;
    length += kMinRepeatLength + is_new;
    static_assert(kMinNewLength == kMinRepeatLength + 1);
    const uint32_t offset = recent_.take(t >> 6, *offsets_);
    offsets_ += is_new;
    at_ += run;
    __builtin_prefetch(at_ - offset);
    at_ += length;
    step = {run, length, offset};
  }
  bool at_ends_of(const CodedBlock& in) const {
    return offsets_ == in.offsets_end && runs_ == in.runs_end && lengths_ == in.lengths_end;
  }

 private:
  const uint8_t* token_;
  const uint32_t *offsets_, *runs_, *lengths_;
  const uint8_t* at_;  // where the step will write; not trusted, only fetched from
  RecentOffsets recent_;
};

inline bool execute_coded(const CodedBlock& in) {
  const uint8_t* literals = in.literals;
  const uint8_t* const literals_end = in.literals_end;
  const uint8_t* const window_begin = in.window_begin;
  uint8_t* out = in.out;
  // Fast while a sequence ends at least kOvershoot before the unit's end.
  const size_t unit_left = static_cast<size_t>(in.writable_end - in.out);
  const size_t block_bytes = static_cast<size_t>(in.out_end - in.out);
  const size_t fast_bytes = unit_left < kOvershoot                 ? 0
                            : unit_left - kOvershoot < block_bytes ? unit_left - kOvershoot
                                                                   : block_bytes;
  const uint8_t* const fast_end = in.out + fast_bytes;
  StepReader reader(in);
  Step ring[kAhead];
  const auto execute = [&](const Step step) __attribute__((always_inline)) {
    const size_t run = step.run, length = step.length, offset = step.offset;
    uint8_t* const match = out + run;
    // Runs that are longer than the literals are noticed at the end: no more than the block's bytes are ever read.
    if (GLYD_LIKELY(match + length <= fast_end && offset <= static_cast<size_t>(match - window_begin))) {
      copy_run(out, literals, run);
      copy_match(match, offset, length);
    } else if (literals > literals_end ||
               !finish_sequence(out, in.out_end, window_begin, literals, literals_end, run, length, offset)) {
      return false;
    }
    literals += run;
    out = match + length;
    return true;
  };
  const size_t count = static_cast<size_t>(in.tokens_end - in.tokens);
  const size_t first = count < kAhead ? count : kAhead;
  for (size_t i = 0; i < first; ++i) reader.read(ring[i]);
  size_t at = 0;
  for (size_t left = count - first; left != 0; --left) {
    const Step step = ring[at];
    reader.read(ring[at]);
    at = (at + 1) % kAhead;
    if (!execute(step)) return false;
  }
  for (size_t i = 0; i < first; ++i, at = (at + 1) % first) {
    if (!execute(ring[at])) return false;
  }
  if (literals > literals_end || !reader.at_ends_of(in)) return false;
  const size_t run = static_cast<size_t>(literals_end - literals);
  if (run != static_cast<size_t>(in.out_end - out)) return false;
  std::memcpy(out, literals, run);
  return true;
}

// Escapes of the byte-aligned blocks: one byte, or 254 and two more, or 255 and four more.
GLYD_KERNEL_INLINE bool read_length(const uint8_t*& at, const uint8_t* end, size_t& value) {
  if (at >= end) return false;
  const uint32_t first = *at++;
  if (GLYD_LIKELY(first < 254)) {
    value += first;
    return true;
  }
  const size_t bytes = first == 254 ? 2 : 4;
  if (static_cast<size_t>(end - at) < bytes) return false;
  value += bytes == 2 ? load16(at) : load32(at);
  at += bytes;
  return true;
}

inline bool execute_bytes(const BytesBlock& in) {
  const uint8_t* token = in.tokens;
  const uint8_t* literals = in.literals;
  const uint8_t* offsets = in.offsets;
  const uint8_t* lengths = in.lengths;
  uint8_t* out = in.out;
  const size_t unit_left = static_cast<size_t>(in.writable_end - in.out);
  const size_t block_bytes = static_cast<size_t>(in.out_end - in.out);
  const size_t fast_bytes = unit_left < kOvershoot                 ? 0
                            : unit_left - kOvershoot < block_bytes ? unit_left - kOvershoot
                                                                   : block_bytes;
  const uint8_t* const fast_end = in.out + fast_bytes;
  // A run's copy loads 16 bytes at a time from the literals.
  const size_t literal_room = static_cast<size_t>(in.readable - in.literals);
  const size_t literal_bytes = static_cast<size_t>(in.literals_end - in.literals);
  const size_t fast_literals = literal_room < 32                   ? 0
                               : literal_room - 32 < literal_bytes ? literal_room - 32
                                                                   : literal_bytes;
  const uint8_t* const literals_fast_end = in.literals + fast_literals;
  size_t offset = 1;
  while (token < in.tokens_end) {
    const uint32_t t = *token++;
    size_t run = (t >> 4) & 7;
    size_t length = t & 15;
    const uint32_t fresh = t >> 7;
    if (GLYD_UNLIKELY(offsets > in.offsets_end - 2 * fresh)) return false;
    const size_t next = load16(offsets);
    offset = fresh != 0 ? next : offset;
    offsets += 2 * fresh;
    if (GLYD_UNLIKELY(run == kBytesLiteralEscape) && !read_length(lengths, in.lengths_end, run)) return false;
    if (GLYD_UNLIKELY(length == kBytesLengthEscape) && !read_length(lengths, in.lengths_end, length)) return false;
    length += kBytesMinLength;
    if (run > kMaxBlockBytes || length > kMaxBlockBytes) return false;

    uint8_t* const match = out + run;
    if (GLYD_LIKELY(match + length <= fast_end && literals + run <= literals_fast_end &&
                    offset - 1 < static_cast<size_t>(match - in.window_begin))) {
      copy_run(out, literals, run);
      copy_match(match, offset, length);
    } else if (!finish_sequence(out, in.out_end, in.window_begin, literals, in.literals_end, run, length, offset)) {
      return false;
    }
    literals += run;
    out = match + length;
  }
  const size_t run = static_cast<size_t>(in.literals_end - literals);
  if (run != static_cast<size_t>(in.out_end - out) || offsets != in.offsets_end || lengths != in.lengths_end)
    return false;
  std::memcpy(out, literals, run);
  return true;
}

inline bool expand_bits(const uint8_t* codes, size_t count, const Bucket* buckets, int shift, const uint8_t* bits,
                        size_t bits_bytes, const uint8_t* readable, uint32_t* values) {
  // Eight bytes are loaded at a value's first bit: 25 + 7 bits at most are used, so four would do, but one load is one
  // load.
  const size_t room = static_cast<size_t>(readable - bits);
  const uint64_t fast_bits = room < 8 ? 0 : (room - 7) * 8;  // positions below it have 8 bytes to load
  uint64_t position = 0;
  uint32_t all = 0;  // bit 31: a bucket that there is not
  size_t i = 0;
  for (; i < count && position < fast_bits; ++i) {
    const Bucket bucket = buckets[codes[i]];
    const uint32_t n = bucket.bits, least = bucket.base;
    const uint64_t word = load64(bits + (position >> 3)) >> (position & 7);
    all |= least;
    values[i] = least + (static_cast<uint32_t>(word & ((uint64_t{1} << n) - 1)) << shift);
    position += n;
  }
  for (; i < count; ++i) {
    const uint32_t n = buckets[codes[i]].bits, least = buckets[codes[i]].base;
    uint64_t word = 0;
    if (position + n > bits_bytes * 8) return false;
    for (size_t k = 0; k < 5 && (position >> 3) + k < bits_bytes; ++k)
      word |= uint64_t{bits[(position >> 3) + k]} << (8 * k);
    word >>= position & 7;
    all |= least;
    values[i] = least + (static_cast<uint32_t>(word & ((uint64_t{1} << n) - 1)) << shift);
    position += n;
  }
  return (position + 7) / 8 == bits_bytes && all >> 31 == 0;
}

// Four tables: a byte that repeats would else wait for its own last count.
inline void histogram(const uint8_t* bytes, size_t count, uint32_t* counts) {
  uint32_t part[4][256] = {};
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const uint64_t w = load64(bytes + i);
    ++part[0][w & 255], ++part[1][(w >> 8) & 255], ++part[2][(w >> 16) & 255], ++part[3][(w >> 24) & 255];
    ++part[0][(w >> 32) & 255], ++part[1][(w >> 40) & 255], ++part[2][(w >> 48) & 255], ++part[3][w >> 56];
  }
  for (; i < count; ++i) ++part[0][bytes[i]];
  for (int s = 0; s < 256; ++s) counts[s] = part[0][s] + part[1][s] + part[2][s] + part[3][s];
}

}  // namespace
}  // namespace glyd::codec
