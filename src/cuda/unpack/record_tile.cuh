// record_tile.cuh - one decoded record in shared memory, [16 rows][its columns] of bf16, and its way to the output.
#pragma once

#include <cstdint>

#include "unpack/pack_arrays.hpp"

namespace glyd::cuda {

template <uint32_t kCols_>
struct RecordTile {
  static constexpr uint32_t kCols = kCols_;
  static constexpr uint32_t kStride = kCols + 8;  // fragments of 8 rows by 4 pairs fall into 32 banks

  alignas(16) uint16_t values[kStripRows * kStride];

  __device__ __forceinline__ uint16_t& at(uint32_t row, uint32_t col) { return values[row * kStride + col]; }
  // A pair of neighbours in k, the lower column even.
  __device__ __forceinline__ uint32_t& pair(uint32_t row, uint32_t col) {
    return *reinterpret_cast<uint32_t*>(&values[row * kStride + col]);
  }
};

// Writes the part of a tile that exists to its place in the source's order. By one warp.
template <class Tile>
__device__ __forceinline__ void store_tile(const PackArrays& pack, Tile& tile, uint64_t strip, uint64_t first_col,
                                           uint16_t* out, uint32_t lane) {
  const uint64_t strips = pack.grid.strips_a_matrix(), rows = pack.grid.rows, cols = pack.grid.cols;
  const uint64_t first_row = strip % strips * kStripRows;
  const uint32_t height = static_cast<uint32_t>(min(uint64_t{kStripRows}, rows - first_row));
  const uint32_t width = static_cast<uint32_t>(min(uint64_t{Tile::kCols}, cols - first_col));
  uint16_t* const matrix = out + strip / strips * rows * cols;
  if (pack.transposed) {
    for (uint32_t i = lane; i < width * kStripRows; i += 32) {
      const uint32_t row = i % kStripRows, col = i / kStripRows;
      if (row < height) matrix[(first_col + col) * rows + first_row + row] = tile.at(row, col);
    }
  } else if (cols % 8 == 0 && reinterpret_cast<uintptr_t>(out) % 16 == 0) {
    const uint32_t pieces = width / 8;
    for (uint32_t i = lane; i < pieces * height; i += 32) {
      const uint32_t row = i / pieces, col = i % pieces * 8;
      *reinterpret_cast<uint4*>(&matrix[(first_row + row) * cols + first_col + col]) =
          *reinterpret_cast<const uint4*>(&tile.at(row, col));
    }
  } else {
    for (uint32_t i = lane; i < width * height; i += 32) {
      const uint32_t row = i / width, col = i % width;
      matrix[(first_row + row) * cols + first_col + col] = tile.at(row, col);
    }
  }
}

// Writes one row of a tile to out[0 .. width). By one warp.
template <class Tile>
__device__ __forceinline__ void store_row(const PackArrays& pack, Tile& tile, uint32_t row, uint64_t first_col,
                                          uint16_t* out, uint32_t lane) {
  const uint32_t width = static_cast<uint32_t>(min(uint64_t{Tile::kCols}, pack.grid.cols - first_col));
  for (uint32_t col = lane; col < width; col += 32) out[first_col + col] = tile.at(row, col);
}

}  // namespace glyd::cuda
