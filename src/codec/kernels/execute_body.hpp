// execute_body.hpp - copies of literals and matches; byte-aligned blocks (spec 7). Included once for each instruction
// set.
//
// The loops copy 16 or 32 bytes whatever the length: what is left to mispredict is a long literal run, a match above 32
// bytes and an offset below 16. Overshoot stays within the unit's own bytes, which later sequences overwrite; where it
// would not, and for anything malformed, the sequence goes through `finish_sequence`, which checks every byte.
#pragma once

#include "codec/format.hpp"
#include "codec/kernels/basics.hpp"
#include "codec/kernels/kernels.hpp"

namespace glyd::codec {
namespace {

constexpr size_t kOvershoot = 64;

// How much of a block may be written by whole vectors: what ends at least kOvershoot before the unit's end.
template <typename Block>
GLYD_KERNEL_INLINE size_t bytes_before_overshoot(const Block& in) {
  const auto unit_left = static_cast<size_t>(in.writable_end - in.out);
  const auto block_bytes = static_cast<size_t>(in.out_end - in.out);
  return unit_left < kOvershoot ? 0 : unit_left - kOvershoot < block_bytes ? unit_left - kOvershoot : block_bytes;
}

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

GLYD_KERNEL_INLINE void copy_match(uint8_t* out, const uint8_t* from, size_t length) {
  if (const auto offset = static_cast<size_t>(out - from); GLYD_UNLIKELY(offset < 16)) {
    copy_near(out, static_cast<uint32_t>(offset), length);
    return;
  }
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
  const uint8_t* const fast_end = in.out + bytes_before_overshoot(in);
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
      copy_match(match, match - offset, length);
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

}  // namespace
}  // namespace glyd::codec
