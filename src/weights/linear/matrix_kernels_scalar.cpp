// matrix_kernels_scalar.cpp - what a matrix unit does, said by loops: for tests, on any CPU.
#include <cfloat>
#include <cmath>
#include <cstring>

#include "format/fast_patch.hpp"
#include "weights/linear/linear_parts.hpp"
#include "weights/linear/matrix_kernels.hpp"
#include "weights/linear/shifted_record.hpp"

namespace glyd {
namespace {

float flush(float value) { return std::abs(value) < FLT_MIN ? std::copysign(0.0f, value) : value; }

void arrange_x(PairOrder order, const uint16_t* x, size_t x_stride, size_t tokens, size_t cols, uint16_t* out) {
  const size_t token_tiles = ceil_div(tokens, kUnitTokens), steps = ceil_div(cols, kUnitCols);
  std::memset(out, 0, steps * token_tiles * kXTileValues * sizeof(uint16_t));
  for (size_t t = 0; t < tokens; ++t) {
    for (size_t c = 0; c < cols; ++c) {
      const size_t tile = c / kUnitCols * token_tiles + t / kUnitTokens;
      const size_t pair = place_of_pair(order, c % kUnitCols / 2);
      out[tile * kXTileValues + (pair * kUnitTokens + t % kUnitTokens) * 2 + c % 2] = x[t * x_stride + c];
    }
  }
}

void multiply(const MultiplyArgs& args);

void decode_chunk(const DecodeArgs& args, const MultiplyArgs& meanwhile) {
  const uint8_t* high = args.chunk + fast::low_plane_bytes(fast::kChunkSteps);
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    uint32_t x[3], words[8];
    for (uint32_t i = 0; i < 3; ++i) x[i] = load_le<uint32_t>(high + i * 128 + lane * 4);
    fast::unpack_high(x, words);
    for (uint32_t step = 0; step < fast::kChunkSteps; ++step) {
      for (uint32_t j = 0; j < kLaneWeights; ++j) {
        const uint32_t place = fast::place_of(step, lane, j), top = words[2 * step + j / 4] >> j % 4 * 8 & 0xff;
        const uint32_t shifted = (top | upper_byte(fast::kWindowUpper)) << 8 | args.chunk[place];
        args.tile[place_in_unit_tile(place)] = static_cast<uint16_t>(shifted + args.offset);
      }
    }
  }
  multiply(meanwhile);
}

void patch(const uint8_t* entries, uint32_t first, uint32_t all, const PatchAdditions& additions, uint16_t* tile) {
  for (uint32_t i = 0; i < all; ++i) {
    const uint32_t entry = fast::read_slot_entry(entries - fast::kSlotHeaderBytes, i);
    uint16_t& value = tile[place_in_unit_tile(fast::entry_place(entry)) + (i < first ? 0 : kUnitChunkCols)];
    const uint32_t row = fast::entry_class(entry) & 3;
    value = static_cast<uint16_t>(value + additions.of_code[row * 8 + (value >> kExponentBit & 7u)]);
  }
}

// One instruction: 16 rows of a step times an x tile.
void multiply_step(const uint16_t* tile, size_t tile_cols, const uint16_t* x, float* sums) {
  for (size_t r = 0; r < kStripRows; ++r) {
    for (size_t t = 0; t < kUnitTokens; ++t) {
      float part[2] = {0, 0};
      for (size_t c = 0; c < kUnitCols; ++c) {
        const float weight = flush(widen_bf16(tile[r * tile_cols + c]));
        const float value = flush(widen_bf16(x[(c / 2 * kUnitTokens + t) * 2 + c % 2]));
        part[c % 2] = flush(std::fma(weight, value, part[c % 2]));
      }
      float& sum = sums[r * kUnitTokens + t];
      sum = flush(sum + flush(part[0] + part[1]));
    }
  }
}

void multiply(const MultiplyArgs& args) {
  for (size_t s = 0; s < args.steps; ++s) {
    for (size_t t = 0; t < args.token_tiles; ++t) {
      multiply_step(args.tile + s * kUnitCols, args.tile_cols, args.x + (s * args.token_tiles + t) * kXTileValues,
                    args.sums + (args.strip * args.token_tiles + t) * kSumTileValues);
    }
  }
}

void finish(const FinishArgs& args) {
  for (size_t t = 0; t < args.tokens; ++t) {
    for (size_t r = 0; r < args.rows; ++r) {
      const float sum = args.sums[t / kUnitTokens * kSumTileValues + r * kUnitTokens + t % kUnitTokens];
      args.y[t * args.y_stride + r] = round_to_bf16(args.bias == nullptr ? sum : sum + widen_bf16(args.bias[r]));
    }
  }
}

}  // namespace

const MatrixKernels& matrix_kernels_scalar() {
  static constexpr MatrixKernels kernels{.open = [] {},
                                         .close = [] {},
                                         .arrange_x = arrange_x,
                                         .decode_chunk = decode_chunk,
                                         .patch = patch,
                                         .load_sums = [](const float*) {},
                                         .multiply = multiply,
                                         .store_sums = [](float*) {},
                                         .finish = finish};
  return kernels;
}

const MatrixKernels* matrix_kernels(Isa isa) { return isa >= Isa::kAmx ? matrix_kernels_amx() : nullptr; }

}  // namespace glyd
