// linear_kernels.hpp - the inner loops of `linear`, a set for each instruction set. Pure loops over memory, no
// allocation.
//
// Weights stand in rows of bf16 values, either a decoded tile (16 rows, kTileStride apart) or a raw matrix itself, and
// are multiplied by rows of x in the same column order. Partial sums stay vectors of `width` floats until `reduce`.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/cpu.hpp"
#include "format/geometry.hpp"
#include "weights/registry.hpp"

namespace glyd {

// A strip's weights in fragment order: 8 rows, one for each g (weights.md 1.1), kTileStride apart. Row g holds, for
// each step, the weights j = 0-7 of lanes 4g to 4g+3: pairs of strip row g and of row g + 8 by turns. x stands in the
// same order, each of its pairs twice.
inline constexpr uint32_t kFragmentRows = 8;
inline constexpr uint32_t kFragmentStep = 32;  // values of such a row in one step
static_assert(kFragmentStep * fast::kRecordSteps == kTileStride);

// Where in a fragment tile the weight at each place of a chunk (weights.md 4.3) stands.
using PlaceTable = std::array<uint16_t, fast::kChunkSteps * kStepWeights>;
consteval PlaceTable make_place_table() {
  PlaceTable table{};
  for (uint32_t place = 0; place < table.size(); ++place) {
    const uint32_t lane = fast::place_lane(place);
    table[place] = static_cast<uint16_t>(lane / 4 * kTileStride + fast::place_step(place) * kFragmentStep +
                                         lane % 4 * kLaneWeights + fast::place_index(place));
  }
  return table;
}
inline constexpr PlaceTable kPlaces = make_place_table();

// An exponent's upper part where the high byte of a bf16 value has it.
constexpr uint8_t upper_byte(uint32_t upper) { return static_cast<uint8_t>(upper << 2); }

// One strip of weights by some columns, times some tokens.
struct DotArgs {
  const uint8_t* weights;    // bf16 values at any alignment
  size_t rows;               // 8 or 16
  const size_t* row_offset;  // the rows' places behind `weights`, in bytes
  size_t tile_cols;          // the columns are cut into tiles of this many, a multiple of 32 ...
  size_t tile_bytes;         // ... this far apart
  size_t cols;               // in all; the last tile may be shorter
  const uint16_t* x;         // tokens rows of at least `cols` values
  size_t x_stride;
  size_t tokens;
  float* sums;  // [tokens][16][width], added to
};

// A chunk's two planes are read by turns, which no hardware prefetcher follows (without these a product takes twice as
// long): kernels fetch what lies this far ahead, line by line. Of 1 to 12 records, 4 did best on a Zen 3, by a little.
inline constexpr size_t kPrefetchAhead = 4 * fast::kRecordBytes;

// Kernels may read (never write) the kReadBefore bytes before `weights`.
inline constexpr size_t kReadBefore = 2;

// Slots are read by whole vectors, past their end.
inline constexpr uint32_t kSlotReadAhead = 16;
inline constexpr size_t kUpperBytes = 2 * fast::kChunkSteps * kStepWeights + 64;  // one behind the last is written

struct LinearKernels {
  uint32_t width;  // floats of a partial sum
  void (*dot)(const DotArgs& args);
  // sums[16][width] to 16 floats.
  void (*reduce)(const float* sums, float* out);
  // The same of a fragment tile's sums[8][width]: row g in the even floats, row g + 8 in the odd ones.
  void (*reduce_fragments)(const float* sums, float* out);
  // Decodes a full chunk of layout `fast` to the first 4 steps of a fragment tile, exponents shifted, patches not
  // applied. Null: no such kernel.
  void (*decode_chunk)(const uint8_t* chunk, uint16_t* tile);
  // A full record of layout `fast` times one token, without a tile between. `upper` has the exponents' upper parts (see
  // upper_byte), 1,024 a chunk in the order of places, and is left full of the window's; x, the record's 8 steps of a
  // scaled x, is widened or, where widen_x is null, bf16 as it is. sums[8][2][width]: row g as reduce_fragments has it,
  // in two parts. Null: no such kernel.
  void (*dot_record)(const uint8_t* record, uint8_t* upper, const void* x, float* sums);
  // Scaled x as fp32, in dot_record's own order. `count`: a multiple of 16. `out` may begin 2 * count bytes before x.
  void (*widen_x)(const uint16_t* x, size_t count, float* out);
  // Where there is dot_record: sets the upper parts of a slot's entries, `first` of chunk 0 and all - first of chunk 1.
  // Reads up to kSlotReadAhead bytes behind the last entry and may write upper[2048].
  void (*set_upper)(const uint8_t* entries, uint32_t first, uint32_t all, uint8_t* upper);
};

const LinearKernels& linear_kernels(Isa isa);
const LinearKernels& linear_kernels_scalar();
const LinearKernels& linear_kernels_avx2();    // the scalar ones where the build has no AVX2
const LinearKernels& linear_kernels_avx512();  // likewise

}  // namespace glyd
