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
#include "format/geometry.hpp"

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

// Four strips, a quad, are multiplied together: one x tile serves all four, and the units work on one's sums while they
// wait for another's. A quad's sums: [token tiles][strips of the quad] sum tiles.
inline constexpr size_t kQuadStrips = 4;
inline constexpr size_t kQuadSums = kQuadStrips * kSumTileValues;  // of a token tile

// Decoded records of a quad's strips times a token tile.
struct MultiplyArgs {
  const uint16_t* tiles;     // [strips][16][tile_cols] weights
  size_t strips, tile_cols;  // 1-4; a multiple of kUnitCols
  size_t steps;              // of kUnitCols columns; at most tile_cols holds
  const uint16_t* x;         // the first step's x tile
  size_t x_step;             // values between the steps' x tiles
  const uint8_t* ahead;      // bytes to ask the caches for meanwhile, kAheadBytes a step; or null
  float* sums;               // the token tile's, where load_sums had them
};
inline constexpr size_t kAheadBytes = 6 * 64;
static_assert(4 * kAheadBytes >= fast::kChunkBytes);

inline constexpr size_t kUnitTileCols = fast::kRecordSteps * kStepCols;  // of decoded records of `fast`

// Where in a tile of kUnitTileCols columns, order kFours, the weight at a place of a chunk (weights.md 4.3) stands; the
// second chunk's, kUnitChunkCols further. A place's bits: j (3), odd step, q (2), g (3), second pair of steps.
constexpr uint32_t place_in_unit_tile(uint32_t place) {
  return (place & 0x001) | (place >> 1 & 0x01e) | (place >> 4 & 0x020) | (place << 1 & 0x380) | (place << 9 & 0x400);
}
inline constexpr uint32_t kUnitChunkCols = kUnitTileCols / 2;
inline constexpr uint32_t kExponentBit = 7;  // of a bf16 value, the lowest

struct FinishArgs {
  const float* sums;  // the strip's of the first token tile; kQuadSums apart
  size_t tokens, rows;
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
  // A full chunk of layout `fast`, patches not applied, to two steps of a tile of kUnitTileCols columns, in the order
  // kFours. `offset`, the shift of the exponents where they stand in a value, is added to each. Asks the caches for the
  // kChunkBytes at `ahead`.
  void (*decode_chunk)(const uint8_t* chunk, const uint8_t* ahead, uint16_t offset, uint16_t* tile);
  // Adds to the values of such a tile what makes them those of their patches: a slot's entries, `first` of the first
  // chunk's and all - first of the second's. additions[class][the exponent's lowest three bits]; a fifth class is zero.
  void (*patch)(const uint8_t* entries, uint32_t first, uint32_t all, const uint16_t* additions, uint16_t* tile);
  // The units hold the sums of a quad and token tile from load_sums to store_sums, which name the same memory.
  void (*load_sums)(const float* sums);
  void (*multiply)(const MultiplyArgs& args);
  void (*store_sums)(float* sums);
  // The bias added, rounded to y.
  void (*finish)(const FinishArgs& args);
};

// Null where `isa` or the build has no matrix units.
const MatrixKernels* matrix_kernels(Isa isa);
const MatrixKernels& matrix_kernels_scalar();
const MatrixKernels* matrix_kernels_amx();  // likewise null

}  // namespace glyd
