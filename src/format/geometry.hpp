// geometry.hpp - sizes and places of records in the arrays of a pack. Spec: docs/spec/weights.md 1, 4, 5. All callers
// hold checked shapes (pack_header.hpp), so nothing overflows.
#pragma once

#include <cstdint>

#include "format/fragment.hpp"
#include "format/host_device.hpp"

namespace glyd {

inline constexpr uint64_t kPackAlignment = 128;

// Strips and steps of a shape.
struct Grid {
  uint64_t stack = 0, rows = 0, cols = 0;
  GLYD_HD constexpr uint64_t strips_a_matrix() const { return (rows + kStripRows - 1) / kStripRows; }
  GLYD_HD constexpr uint64_t strips() const { return stack * strips_a_matrix(); }
  GLYD_HD constexpr uint64_t steps() const { return (cols + kStepCols - 1) / kStepCols; }
};

namespace fast {

inline constexpr uint32_t kRecordSteps = 8, kChunkSteps = 4;
inline constexpr uint32_t kChunkBytes = 1408, kRecordBytes = 2 * kChunkBytes;
inline constexpr uint32_t kMostSlotBytes = 384;
inline constexpr uint32_t kSlotHeaderBytes = 2, kSlotOverflowBytes = 4;
inline constexpr uint32_t kMostSlotEntries = 127;  // a chunk
inline constexpr uint32_t kWindow = 8, kWindowUpper = 15;
inline constexpr uint32_t kMostBase = 247;

GLYD_HD constexpr uint32_t chunk_bytes(uint32_t steps) { return 256 * steps + 128 * (steps < 3 ? steps : 3); }
GLYD_HD constexpr uint32_t low_plane_bytes(uint32_t steps) { return 256 * steps; }
GLYD_HD constexpr uint32_t chunk_steps(uint32_t record_steps, uint32_t chunk) {
  return chunk == 0 ? (record_steps < kChunkSteps ? record_steps : kChunkSteps)
                    : (record_steps > kChunkSteps ? record_steps - kChunkSteps : 0);
}
GLYD_HD constexpr uint32_t record_bytes(uint32_t steps) {
  return chunk_bytes(chunk_steps(steps, 0)) + chunk_bytes(chunk_steps(steps, 1));
}
static_assert(chunk_bytes(4) == kChunkBytes && record_bytes(8) == kRecordBytes && record_bytes(7) == 2560);

GLYD_HD constexpr uint64_t records_a_strip(uint64_t steps) { return (steps + kRecordSteps - 1) / kRecordSteps; }
GLYD_HD constexpr uint32_t steps_of_record(uint64_t steps, uint64_t record) {
  const uint64_t left = steps - record * kRecordSteps;
  return left < kRecordSteps ? static_cast<uint32_t>(left) : kRecordSteps;
}
GLYD_HD constexpr uint64_t strip_bytes(uint64_t steps) {
  return steps / kRecordSteps * kRecordBytes + record_bytes(static_cast<uint32_t>(steps % kRecordSteps));
}
// Bytes of the patch slot of a record of `steps` steps.
GLYD_HD constexpr uint32_t slot_bytes_of(uint32_t slot_bytes, uint32_t steps) {
  return (slot_bytes * steps + 127) / 128 * 16;
}
GLYD_HD constexpr uint64_t strip_slot_bytes(uint32_t slot_bytes, uint64_t steps) {
  return steps / kRecordSteps * slot_bytes + slot_bytes_of(slot_bytes, static_cast<uint32_t>(steps % kRecordSteps));
}
static_assert(slot_bytes_of(64, 8) == 64 && slot_bytes_of(64, 4) == 32 && slot_bytes_of(64, 7) == 64 &&
              slot_bytes_of(48, 1) == 16);

// Place of a weight in its chunk (spec 4.3), and back.
GLYD_HD constexpr uint32_t place_of(uint32_t step, uint32_t lane, uint32_t j) {
  return step / 2 * 512 + lane * 16 + step % 2 * 8 + j;
}
GLYD_HD constexpr uint32_t place_step(uint32_t place) { return place / 512 * 2 + place / 8 % 2; }
GLYD_HD constexpr uint32_t place_lane(uint32_t place) { return place / 16 % 32; }
GLYD_HD constexpr uint32_t place_index(uint32_t place) { return place % 8; }
static_assert(place_step(place_of(3, 17, 6)) == 3 && place_lane(place_of(3, 17, 6)) == 17 &&
              place_index(place_of(3, 17, 6)) == 6);

// Upper parts that a slot entry can name (spec 4.3).
GLYD_HD constexpr uint32_t upper_of_class(uint32_t patch_class) {
  return patch_class == 0 ? 14 : patch_class == 1 ? 13 : patch_class == 2 ? 16 : 0;
}
// 4 where no class has it.
GLYD_HD constexpr uint32_t class_of_upper(uint32_t upper) {
  return upper == 14 ? 0 : upper == 13 ? 1 : upper == 16 ? 2 : upper == 0 ? 3 : 4;
}

// Shifted exponents (spec 4.1), and back.
GLYD_HD constexpr uint32_t shift_exponent(uint32_t exponent, uint32_t base) {
  return exponent == 0 || exponent == 255 ? exponent : 1 + (exponent + 120 + 253 - base) % 254;
}
GLYD_HD constexpr uint32_t unshift_exponent(uint32_t shifted, uint32_t base) {
  return shifted == 0 || shifted == 255 ? shifted : 1 + (shifted + base + 133) % 254;
}
static_assert(shift_exponent(113, 113) == 120 && shift_exponent(120, 113) == 127 && shift_exponent(1, 120) == 1 &&
              shift_exponent(1, 247) == 128);
static_assert(unshift_exponent(shift_exponent(1, 247), 247) == 1 && unshift_exponent(shift_exponent(254, 1), 1) == 254);

// The high plane (spec 4.2). `words` are H0..H7 of one lane, `x` its X0..X2.
GLYD_HD constexpr uint32_t rotl32(uint32_t value, uint32_t bits) { return value << bits | value >> (32 - bits); }
GLYD_HD constexpr uint32_t rotr32(uint32_t value, uint32_t bits) { return value >> bits | value << (32 - bits); }
inline constexpr uint32_t kHighMask = 0x83838383u;

GLYD_HD constexpr void pack_high(const uint32_t (&words)[8], uint32_t (&x)[3]) {
  const uint32_t t = rotl32(words[6], 5) | rotl32(words[7], 2);
  x[0] = words[0] | rotl32(words[1], 3) | (t & 0x60606060u);
  x[1] = words[2] | rotl32(words[3], 3) | ((t << 2) & 0x60606060u);
  x[2] = words[4] | rotl32(words[5], 3) | ((t << 4) & 0x60606060u);
}
GLYD_HD constexpr void unpack_high(const uint32_t (&x)[3], uint32_t (&words)[8]) {
  const uint32_t t = (x[0] & 0x60606060u) | ((x[1] >> 2) & 0x18181818u) | ((x[2] >> 4) & 0x06060606u);
  words[0] = x[0] & kHighMask;
  words[1] = rotr32(x[0], 3) & kHighMask;
  words[2] = x[1] & kHighMask;
  words[3] = rotr32(x[1], 3) & kHighMask;
  words[4] = x[2] & kHighMask;
  words[5] = rotr32(x[2], 3) & kHighMask;
  words[6] = rotr32(t, 5) & kHighMask;
  words[7] = rotr32(t, 2) & kHighMask;
}

}  // namespace fast

namespace small {

inline constexpr uint32_t kRecordSteps = 16, kStreamSteps = 8, kRegions = 16;
inline constexpr uint32_t kStepPlaneBytes = 256;
inline constexpr uint32_t kMostCodeBits = 11, kMostStepBits = 32;
inline constexpr uint32_t kMostSymbols = 16, kPairs = 256;
inline constexpr uint32_t kTableBytes = 144;
inline constexpr uint32_t kMostPatches = 255;
inline constexpr uint32_t kMostMinBits = 704;  // 2 lanes x 32 pairs x 11 bits

GLYD_HD constexpr uint64_t records_a_strip(uint64_t steps) { return (steps + kRecordSteps - 1) / kRecordSteps; }
GLYD_HD constexpr uint32_t steps_of_record(uint64_t steps, uint64_t record) {
  const uint64_t left = steps - record * kRecordSteps;
  return left < kRecordSteps ? static_cast<uint32_t>(left) : kRecordSteps;
}
GLYD_HD constexpr uint32_t streams_of_record(uint32_t steps) { return steps > kStreamSteps ? 2 : 1; }
GLYD_HD constexpr uint32_t stream_steps(uint32_t record_steps, uint32_t stream) {
  return stream == 0 ? (record_steps < kStreamSteps ? record_steps : kStreamSteps) : record_steps - kStreamSteps;
}
GLYD_HD constexpr uint32_t least_region_bits(uint32_t min_bits, uint32_t steps) {
  return min_bits * steps / kStreamSteps;
}
GLYD_HD constexpr uint64_t offsets_table_start(uint64_t strips) { return ((strips + 1) * 8 + 15) / 16 * 16; }
GLYD_HD constexpr uint64_t offsets_bytes(uint64_t strips, uint64_t steps) {
  return offsets_table_start(strips) + 4 * strips * records_a_strip(steps);
}
GLYD_HD constexpr uint64_t planes_bytes(uint64_t strips, uint64_t steps) { return strips * steps * kStepPlaneBytes; }

inline constexpr uint32_t kPairMask = 0x807f807fu;  // signs and mantissas of a pair in bf16 place

}  // namespace small

}  // namespace glyd
