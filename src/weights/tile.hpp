// tile.hpp - moves tiles of bf16 values between tensors and scratch memory. Pure loops, no allocation.
#pragma once

#include <algorithm>
#include <cstdint>

#include "weights/registry.hpp"

namespace glyd {

// Asks for what follows `bytes` of a row, as much again: sixteen rows at once, a piece of each, are more than hardware
// follows. Past the end of memory it does nothing.
inline void fetch_next_piece(const void* row, uint64_t bytes) {
  const auto next = reinterpret_cast<uintptr_t>(row) + bytes;
  for (uint64_t b = 0; b < bytes; b += 64) __builtin_prefetch(reinterpret_cast<const void*>(next + b));
}

// A strip's rows, by its number over the stack.
struct StripRows {
  uint64_t first, count;  // in its matrix
  uint64_t begin;         // where the first stands among the stack's values, if these are row-major
};
inline StripRows rows_of_strip(const Grid& grid, uint64_t strip) {
  const uint64_t strips = grid.strips_a_matrix(), first = strip % strips * kStripRows;
  return {first, std::min<uint64_t>(kStripRows, grid.rows - first), (strip / strips * grid.rows + first) * grid.cols};
}

// out[c * out_stride + r] = from[r * from_stride + c], cache-friendly at any size. `from` holds bf16 values at any
// alignment.
void transpose_tile(const void* from, uint64_t from_stride, uint64_t rows, uint64_t cols, uint16_t* out,
                    uint64_t out_stride);

// Where padding weights stand in a tile that is to be packed, their values by the column's parity.
struct TileFill {
  uint16_t even = 0, odd = 0;
};

// The 16 rows of a strip by `steps` steps from `step_begin`, as packed (rows are outputs), to out[16][kTileStride];
// padding filled.
void load_tile(const TensorSource& source, uint64_t strip, uint64_t step_begin, uint32_t steps, TileFill fill,
               uint16_t* out);

// Writes one row of a large output past the caches: a line that is not read first, and rows a power of two apart do not
// evict each other. The row comes in pieces, in order; whole lines are streamed whatever the output's alignment, what
// lies over the row's ends is copied. finish_streaming() before another thread may read.
class StreamedRow {
 public:
  static constexpr uint64_t kLineValues = 32;
  // The next `count` values, to `to`. Every piece but the last has a multiple of kLineValues; kLineValues can be read
  // at `from` of the last too.
  void add(const uint16_t* from, uint64_t count, uint16_t* to, bool first, bool last);

 private:
  alignas(64) uint16_t kept_[2 * kLineValues];  // the last line's worth of the piece before, then the next's first
};
void finish_streaming();

// Strips that a thread takes at a time.
uint64_t strip_grain(const Grid& grid);
// The pack's size in layout `raw`: what another layout must beat.
uint64_t raw_pack_bytes(const Grid& grid);
// Zero bytes behind each array of a new pack.
void clear_array_padding(const PackHeader& header, uint8_t* pack);

}  // namespace glyd
