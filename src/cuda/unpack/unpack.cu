#include <algorithm>

#include "unpack/fast_source.cuh"
#include "unpack/small_source.cuh"
#include "unpack/unpack.hpp"

namespace glyd::cuda {
namespace {

constexpr uint32_t kWarps = 4;  // a block; each has a tile of its own
// Blocks that a multiprocessor holds at once (shared memory limits them).
constexpr uint32_t kFastResident = 12, kSmallResident = 5;

template <class Source>
struct Storage {
  typename Source::Shared shared;
  typename Source::Tile tiles[kWarps];
};

// The records of `strips` strips from pack.first_strip on, to `out` as store_tile places them.
template <class Source>
__global__ void __launch_bounds__(kWarps * 32)
    unpack_records(const __grid_constant__ PackArrays pack, uint64_t strips, uint16_t* __restrict__ out) {
  __shared__ Storage<Source> storage;
  const Source source(pack, storage.shared);
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  typename Source::Tile& tile = storage.tiles[warp];
  const uint64_t records = Source::records(pack);
  for (uint64_t i = static_cast<uint64_t>(blockIdx.x) * kWarps + warp; i < strips * records;
       i += static_cast<uint64_t>(gridDim.x) * kWarps) {
    const uint64_t strip = i / records, record = i % records;
    source.decode(pack.first_strip + strip, record, lane, tile);
    store_tile(pack, tile, strip, record * Source::Tile::kCols, out, lane);
    __syncwarp();
  }
}

template <class Source>
__global__ void __launch_bounds__(kWarps * 32)
    look_up_rows(const __grid_constant__ PackArrays pack, const int64_t* __restrict__ indices, uint64_t count,
                 uint16_t* __restrict__ out) {
  __shared__ Storage<Source> storage;
  const Source source(pack, storage.shared);
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  typename Source::Tile& tile = storage.tiles[warp];
  const uint64_t records = Source::records(pack), cols = pack.grid.cols;
  for (uint64_t i = static_cast<uint64_t>(blockIdx.x) * kWarps + warp; i < count * records;
       i += static_cast<uint64_t>(gridDim.x) * kWarps) {
    const uint64_t at = i / records, record = i % records, first_col = record * Source::Tile::kCols;
    const int64_t index = indices[at];
    uint16_t* const row = out + at * cols;
    if (index < 0 || static_cast<uint64_t>(index) >= pack.grid.rows) {
      for (uint64_t c = first_col + lane; c < min(cols, first_col + Source::Tile::kCols); c += 32) row[c] = 0;
      continue;
    }
    source.decode(static_cast<uint64_t>(index) / kStripRows, record, lane, tile);
    store_row(pack, tile, static_cast<uint32_t>(index % kStripRows), first_col, row, lane);
    __syncwarp();
  }
}

__global__ void look_up_raw_rows(const __grid_constant__ PackArrays pack, const int64_t* __restrict__ indices,
                                 uint64_t count, uint16_t* __restrict__ out) {
  const uint16_t* const values = reinterpret_cast<const uint16_t*>(pack.arrays[0]);
  const uint64_t rows = pack.grid.rows, cols = pack.grid.cols;
  for (uint64_t i = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count * cols;
       i += static_cast<uint64_t>(gridDim.x) * blockDim.x) {
    const int64_t index = indices[i / cols];
    const uint64_t col = i % cols, row = static_cast<uint64_t>(index);
    out[i] = index < 0 || row >= rows ? 0 : pack.transposed ? values[col * rows + row] : values[row * cols + col];
  }
}

__global__ void transpose_raw(const uint16_t* __restrict__ in, uint64_t rows, uint64_t cols,
                              uint16_t* __restrict__ out) {
  for (uint64_t i = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < rows * cols;
       i += static_cast<uint64_t>(gridDim.x) * blockDim.x) {
    out[i] = in[i % cols * rows + i / cols];
  }
}

// Enough blocks to fill the GPU, no more than there is work for.
uint32_t blocks_for(uint64_t work, uint32_t a_block, uint32_t multiprocessors, uint32_t resident) {
  return static_cast<uint32_t>(
      std::min<uint64_t>((work + a_block - 1) / a_block, uint64_t{multiprocessors} * resident));
}

template <class Source>
cudaError_t launch_records(const PackArrays& arrays, uint64_t strips, uint16_t* out, uint32_t multiprocessors,
                           uint32_t resident, cudaStream_t stream) {
  const uint64_t steps = arrays.grid.steps();
  const uint64_t records = (steps * kStepCols + Source::Tile::kCols - 1) / Source::Tile::kCols;
  if (strips * records == 0) return cudaSuccess;
  unpack_records<Source><<<blocks_for(strips * records, kWarps, multiprocessors, resident), kWarps * 32, 0, stream>>>(
      arrays, strips, out);
  return cudaGetLastError();
}

cudaError_t launch_strips(const PackArrays& arrays, uint64_t strips, uint16_t* out, uint32_t multiprocessors,
                          cudaStream_t stream) {
  return arrays.coding == Coding::kFast
             ? launch_records<FastSource>(arrays, strips, out, multiprocessors, kFastResident, stream)
             : launch_records<SmallSource>(arrays, strips, out, multiprocessors, kSmallResident, stream);
}

}  // namespace

cudaError_t launch_unpack(const PackArrays& arrays, uint16_t* out, uint32_t multiprocessors, cudaStream_t stream) {
  const uint64_t values = arrays.grid.stack * arrays.grid.rows * arrays.grid.cols;
  if (values == 0) return cudaSuccess;
  if (arrays.coding == Coding::kRaw) {
    return cudaMemcpyAsync(out, arrays.arrays[0], values * 2, cudaMemcpyDeviceToDevice, stream);
  }
  return launch_strips(arrays, arrays.grid.strips(), out, multiprocessors, stream);
}

cudaError_t launch_unpack_matrix(const PackArrays& arrays, uint64_t matrix, uint16_t* out, uint32_t multiprocessors,
                                 cudaStream_t stream) {
  const uint64_t rows = arrays.grid.rows, cols = arrays.grid.cols, values = rows * cols;
  if (values == 0) return cudaSuccess;
  if (arrays.coding == Coding::kRaw) {
    const uint16_t* const source = reinterpret_cast<const uint16_t*>(arrays.arrays[0]) + matrix * values;
    if (!arrays.transposed) return cudaMemcpyAsync(out, source, values * 2, cudaMemcpyDeviceToDevice, stream);
    transpose_raw<<<blocks_for(values, 256, multiprocessors, 8), 256, 0, stream>>>(source, rows, cols, out);
    return cudaGetLastError();
  }
  PackArrays one = arrays;
  one.transposed = false;
  one.first_strip = matrix * arrays.grid.strips_a_matrix();
  return launch_strips(one, arrays.grid.strips_a_matrix(), out, multiprocessors, stream);
}

cudaError_t launch_rows(const PackArrays& arrays, const int64_t* indices, uint64_t count, uint16_t* out,
                        uint32_t multiprocessors, cudaStream_t stream) {
  if (count == 0 || arrays.grid.cols == 0) return cudaSuccess;
  const uint64_t steps = arrays.grid.steps();
  constexpr uint32_t kThreads = kWarps * 32;
  if (arrays.coding == Coding::kRaw || arrays.grid.stack * arrays.grid.rows == 0) {
    const uint32_t blocks = blocks_for(count * arrays.grid.cols, 256, multiprocessors, 8);
    look_up_raw_rows<<<blocks, 256, 0, stream>>>(arrays, indices, count, out);
  } else if (arrays.coding == Coding::kFast) {
    const uint32_t blocks = blocks_for(count * fast::records_a_strip(steps), kWarps, multiprocessors, kFastResident);
    look_up_rows<FastSource><<<blocks, kThreads, 0, stream>>>(arrays, indices, count, out);
  } else {
    const uint32_t blocks = blocks_for(count * small::records_a_strip(steps), kWarps, multiprocessors, kSmallResident);
    look_up_rows<SmallSource><<<blocks, kThreads, 0, stream>>>(arrays, indices, count, out);
  }
  return cudaGetLastError();
}

}  // namespace glyd::cuda
