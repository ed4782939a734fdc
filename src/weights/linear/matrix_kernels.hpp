// matrix_kernels.hpp - the inner loops of products on a CPU's matrix units: 16 rows of weights by 32 columns, times 16
// tokens, at a time. Pure loops over memory, no allocation.
//
// Both sets do the arithmetic that Intel documents for TDPBF16PS, so they are held to equal bits (but for the payloads
// of NaN): in a step of 32 columns, the even columns' products are added to 0 one after the other, each time rounded to
// fp32, the odd columns' likewise; then the two are added and their sum is added to the sum so far. Everywhere
// subnormal numbers, in or out, count as zero.
#pragma once

#include <array>
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

// The units hold four sum tiles, those of a set of strips: one strip's of up to four token tiles, two strips' of two,
// or four strips' of one. In memory: [strips of the set][token tiles] sum tiles, and always the place of four.
inline constexpr size_t kSetTiles = 4, kSetSums = kSetTiles * kSumTileValues;
static_assert(kMostTokenTiles == kSetTiles);
constexpr size_t strips_of_set(size_t token_tiles) { return kSetTiles / token_tiles; }

// Steps of a strip's decoded record times all token tiles.
struct MultiplyArgs {
  const uint16_t* tile;  // [16][tile_cols] weights
  size_t tile_cols;      // a multiple of kUnitCols
  size_t steps;          // of kUnitCols columns; at most tile_cols holds
  const uint16_t* x;     // [steps][token_tiles] x tiles
  size_t token_tiles;    // 1-4
  size_t strip;          // which of the set's, whose sums load_sums took
  float* sums;           // the set's
};

// The first of the steps, at most `count`, which `args` has no longer.
inline MultiplyArgs take_steps(MultiplyArgs& args, size_t count) {
  MultiplyArgs taken = args;
  taken.steps = args.steps < count ? args.steps : count;
  args.tile += taken.steps * kUnitCols;
  args.x += taken.steps * args.token_tiles * kXTileValues;
  args.steps -= taken.steps;
  return taken;
}

inline constexpr size_t kUnitTileCols = fast::kRecordSteps * kStepCols;  // of decoded records of `fast`

// Where in a tile of kUnitTileCols columns, order kFours, the weight at a place of a chunk (weights.md 4.3) stands; the
// second chunk's, kUnitChunkCols further. A place's bits: j (3), odd step, q (2), g (3), second pair of steps.
constexpr uint32_t place_in_unit_tile(uint32_t place) {
  return (place & 0x001) | (place >> 1 & 0x01e) | (place >> 4 & 0x020) | (place << 1 & 0x380) | (place << 9 & 0x400);
}
inline constexpr uint32_t kUnitChunkCols = kUnitTileCols / 2;
inline constexpr uint32_t kExponentBit = 7;  // of a bf16 value, the lowest

// A full chunk of layout `fast` to kStepsOfChunk steps of a tile of kUnitTileCols columns, in the order kFours, patches
// not applied.
struct DecodeArgs {
  const uint8_t* chunk;
  const uint8_t *soon, *ahead;  // kChunkBytes to ask the first-level and the second-level cache for
  uint16_t offset;              // added to each value: the shift of the exponents where they stand in it
  uint16_t* tile;
};
inline constexpr size_t kStepsOfChunk = kUnitChunkCols / kUnitCols;

// What makes an unshifted value of the window a patch's: added, modulo 2^16.
struct PatchAdditions {
  std::array<uint16_t, 5 * 8> of_code;  // [class][the exponent's lowest three bits]; a fifth class adds nothing
  // Of the classes whose addition is the same whatever the bits, all but kZeroClass as a rule, that one.
  std::array<uint16_t, 4> of_class;
  bool by_class;  // all but kZeroClass are such
};
inline constexpr uint32_t kZeroClass = fast::class_of_upper(0);

struct FinishArgs {
  const float* sums;  // the strip's
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
  // A full chunk decoded; meanwhile, steps of another tile multiplied, as many as a chunk has or fewer: vector
  // instructions and units work at once only where they stand close together.
  void (*decode_chunk)(const DecodeArgs& args, const MultiplyArgs& meanwhile);
  // Adds to the values of such a tile what makes them those of their patches: a slot's entries, `first` of the first
  // chunk's and all - first of the second's.
  void (*patch)(const uint8_t* entries, uint32_t first, uint32_t all, const PatchAdditions& additions, uint16_t* tile);
  // The units hold a set's sums from load_sums to store_sums, which name the same memory.
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
