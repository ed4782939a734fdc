#include "base/bytes.hpp"
#include "format/bf16.hpp"
#include "format/fast_patch.hpp"
#include "weights/fast/fast_kernels.hpp"
#include "weights/registry.hpp"

namespace glyd::fast {
namespace {

// A weight in the window less base << 7 is sign, five zeros, code, mantissa: its low byte is the low plane's, its high
// byte the high plane's.
uint32_t window_offset(uint32_t base) { return base << 7; }

uint32_t tile_index(uint32_t step, uint32_t lane, uint32_t j) {
  return fragment_row(lane, j) * kTileStride + step * kStepCols + fragment_col(lane, j);
}

void window_masks(const uint16_t* rows, uint64_t stride, uint32_t steps, uint32_t base, uint64_t* masks) {
  for (uint32_t i = 0; i < 2 * kStripRows; ++i) masks[i] = 0;
  for (uint32_t row = 0; row < kStripRows; ++row) {
    for (uint32_t c = 0; c < steps * kStepCols; ++c) {
      const bool outside = bf16_exponent(rows[row * stride + c]) - base >= kWindow;
      masks[c / 64 * kStripRows + row] |= uint64_t{outside} << c % 64;
    }
  }
}

void encode_chunk(const uint16_t* tile, uint32_t steps, uint32_t base, uint8_t* planes) {
  const uint32_t offset = window_offset(base);
  uint8_t* high = planes + low_plane_bytes(steps);
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    uint32_t words[8] = {};
    for (uint32_t step = 0; step < steps; ++step) {
      // The low plane's place of a full chunk, but a lone last step takes 8 bytes a lane.
      const bool alone = step % 2 == 0 && step + 1 == steps;
      uint8_t* low = planes + (alone ? step / 2 * 512 + lane * 8 : place_of(step, lane, 0));
      for (uint32_t j = 0; j < kLaneWeights; ++j) {
        const uint32_t value = tile[tile_index(step, lane, j)] - offset;
        low[j] = static_cast<uint8_t>(value);
        words[2 * step + j / 4] |= (value >> 8 & 0xff) << j % 4 * 8;
      }
    }
    uint32_t x[3];
    pack_high(words, x);
    for (uint32_t i = 0; i < 3 && i < steps; ++i) store_le<uint32_t>(high + i * 128 + lane * 4, x[i]);
  }
}

void decode_chunk(const uint8_t* planes, uint32_t steps, uint32_t base, uint16_t* tile) {
  const uint32_t offset = window_offset(base);
  const uint8_t* high = planes + low_plane_bytes(steps);
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    uint32_t x[3] = {};
    for (uint32_t i = 0; i < 3 && i < steps; ++i) x[i] = load_le<uint32_t>(high + i * 128 + lane * 4);
    uint32_t words[8];
    unpack_high(x, words);
    for (uint32_t step = 0; step < steps; ++step) {
      const bool alone = step % 2 == 0 && step + 1 == steps;
      const uint8_t* low = planes + (alone ? step / 2 * 512 + lane * 8 : place_of(step, lane, 0));
      for (uint32_t j = 0; j < kLaneWeights; ++j) {
        const uint32_t top = words[2 * step + j / 4] >> j % 4 * 8 & 0xff;
        tile[tile_index(step, lane, j)] = static_cast<uint16_t>((top << 8 | low[j]) + offset);
      }
    }
  }
}

void encode_planes(const uint16_t* tile, uint32_t steps, uint32_t base, uint8_t* planes) {
  const uint32_t first = chunk_steps(steps, 0), second = chunk_steps(steps, 1);
  encode_chunk(tile, first, base, planes);
  encode_chunk(tile + kChunkSteps * kStepCols, second, base, planes + chunk_bytes(first));
}

void decode_planes(const uint8_t* planes, uint32_t steps, uint32_t base, uint16_t* tile) {
  const uint32_t first = chunk_steps(steps, 0), second = chunk_steps(steps, 1);
  decode_chunk(planes, first, base, tile);
  decode_chunk(planes + chunk_bytes(first), second, base, tile + kChunkSteps * kStepCols);
}

}  // namespace

const Kernels kScalarKernels = {window_masks, encode_planes, decode_planes};

}  // namespace glyd::fast
