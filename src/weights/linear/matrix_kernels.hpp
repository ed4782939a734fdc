// matrix_kernels.hpp - the inner loops of products on a CPU's matrix units: 16 rows of weights by 32 columns, times 16
// tokens, at a time. Pure loops over memory, no allocation.
//
// Both sets do the arithmetic that Intel documents for TDPBF16PS, so they are held to equal bits (but for the payloads
// of NaN): in a step of 32 columns, the even columns' products are added to 0 one after the other, each time rounded to
// fp32, the odd columns' likewise; then the two are added and their sum is added to the sum so far. Everywhere
// subnormal numbers, in or out, count as zero.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/cpu.hpp"

namespace glyd {

inline constexpr size_t kUnitCols = 32;    // columns of one step: 16 pairs
inline constexpr size_t kUnitTokens = 16;  // tokens of a token tile
inline constexpr size_t kMostTokenTiles = 4;
inline constexpr size_t kXTileValues = kUnitCols * kUnitTokens;  // x of a step and token tile: [16 pairs][16 tokens][2]
inline constexpr size_t kSumTileValues = 16 * kUnitTokens;       // sums: [16 rows][16 tokens]

// The order of a step's 16 pairs of columns. Any will do where weights and x agree; layout `fast` decodes soonest to
// kFours: pair 4i + q of the columns stands at 4q + i.
enum class PairOrder { kColumns, kFours };
constexpr size_t place_of_pair(PairOrder order, size_t pair) {
  return order == PairOrder::kColumns ? pair : pair % 4 * 4 + pair / 4;
}

// A product waits 52 cycles for the one before it in the same sums, and another could start every 16. So sums of few
// tokens are kept in parts, steps going to them by turns. [parts][token tiles] sum tiles are a strip's sums.
constexpr size_t sum_parts(size_t token_tiles) { return token_tiles == 1 ? 4 : token_tiles == 2 ? 2 : 1; }
inline constexpr size_t kStripSums = kMostTokenTiles * kSumTileValues;

struct FinishArgs {
  const float* sums;
  size_t token_tiles, tokens, rows;
  const uint16_t* bias;  // of the rows, or null
  uint16_t* y;
  size_t y_stride;
};

struct MatrixKernels {
  // Around all that follows, on the thread that does it. Between the two a thread must not use the units otherwise.
  void (*open)();
  void (*close)();
  // x[tokens][cols] to out[steps][token tiles] x tiles; zero where there is no column or no token.
  void (*arrange_x)(PairOrder order, const uint16_t* x, size_t x_stride, size_t tokens, size_t cols, uint16_t* out);
  // A full chunk of layout `fast`, patches not applied, to two steps of a tile, in the order kFours. `offset`, the
  // shift of the exponents where they stand in a value, is added to each.
  void (*decode_chunk)(const uint8_t* chunk, uint16_t offset, uint16_t* tile);
  // The units hold a strip's sums from load_sums to store_sums, which name the same memory; `multiply`, too, is told
  // where that is.
  void (*load_sums)(size_t token_tiles, const float* sums);
  // Adds a tile's first `steps` steps ([16][kTileStride] weights) times x's.
  void (*multiply)(size_t token_tiles, const uint16_t* tile, size_t steps, const uint16_t* x, float* sums);
  void (*store_sums)(size_t token_tiles, float* sums);
  // The parts added, the bias too, rounded to y.
  void (*finish)(const FinishArgs& args);
};

// Null where `isa` or the build has no matrix units.
const MatrixKernels* matrix_kernels(Isa isa);
const MatrixKernels& matrix_kernels_scalar();
const MatrixKernels* matrix_kernels_amx();  // likewise null

}  // namespace glyd
