#include "weights/record_walk.hpp"

#include <algorithm>
#include <cstring>

#include "base/parallel.hpp"
#include "weights/tile.hpp"

namespace glyd {
namespace {

// Outputs from this size are written past the caches: a line that is not read first, and rows a power of two apart do
// not evict each other.
constexpr uint64_t kStreamBytes = uint64_t{8} << 20;

uint64_t records_of(const PackHeader& header) {
  const uint64_t steps = layout_ops(header.layout).record_steps;
  return ceil_div(header.grid.steps(), steps);
}

// Runs `use(strip, record, tile)` on every record.
template <typename Use>
Result<void> walk(const RecordDecoder& decoder, const PackHeader& header, int threads, Use use) {
  FirstError failure;
  const uint64_t records = records_of(header);
  parallel_for(header.grid.strips(), strip_grain(header.grid), threads, [&](uint64_t begin, uint64_t end) {
    alignas(64) uint16_t tile[kStripRows * kTileStride] = {};
    for (uint64_t strip = begin; strip < end; ++strip) {
      for (uint64_t record = 0; record < records; ++record) {
        if (auto result = decoder.decode(strip, record, tile); !result) {
          failure.keep(strip, std::move(result));
          return;
        }
        use(strip, record, tile);
      }
    }
    finish_streaming();
  });
  return failure.result();
}

}  // namespace

void FirstError::keep(uint64_t place, Result<void> result) {
  if (result) return;
  const std::lock_guard lock(mutex_);
  if (place >= place_) return;
  place_ = place;
  error_ = std::move(result).error();
}

Result<void> FirstError::result() const {
  if (error_) return *error_;
  return Ok{};
}

Result<void> decode_records(const RecordDecoder& decoder, const PackHeader& header, int threads,
                            std::span<uint16_t> out) {
  const Grid& grid = header.grid;
  const uint64_t record_cols = uint64_t{layout_ops(header.layout).record_steps} * kStepCols;
  // Lines that are written in two parts would cost more than they save.
  const bool whole_lines = reinterpret_cast<uintptr_t>(out.data()) % 64 == 0 && grid.cols * sizeof(uint16_t) % 64 == 0;
  const bool stream = whole_lines && out.size_bytes() >= kStreamBytes;
  return walk(decoder, header, threads, [&](uint64_t strip, uint64_t record, const uint16_t* tile) {
    const uint64_t row = strip % grid.strips_a_matrix() * kStripRows;
    const uint64_t col = record * record_cols;
    const uint64_t rows = std::min<uint64_t>(kStripRows, grid.rows - row);
    const uint64_t cols = std::min(record_cols, grid.cols - col);
    uint16_t* matrix = out.data() + strip / grid.strips_a_matrix() * grid.rows * grid.cols;
    if (header.transposed) {
      transpose_tile(tile, kTileStride, rows, cols, matrix + col * grid.rows + row, grid.rows);
    } else {
      for (uint64_t r = 0; r < rows; ++r) {
        uint16_t* to = matrix + (row + r) * grid.cols + col;
        if (stream) {
          stream_values(tile + r * kTileStride, cols, to);
        } else {
          std::memcpy(to, tile + r * kTileStride, 2 * cols);
        }
      }
    }
  });
}

Result<void> visit_records(const RecordDecoder& decoder, const PackHeader& header, int threads) {
  return walk(decoder, header, threads, [](uint64_t, uint64_t, const uint16_t*) {});
}

Result<void> decode_records_of(const RecordDecoder& decoder, const PackHeader& header, const Block& block, int threads,
                               uint16_t* out, uint64_t stride) {
  const uint64_t record_cols = uint64_t{layout_ops(header.layout).record_steps} * kStepCols;
  const uint64_t strip_begin = block.row_begin / kStripRows, strip_end = ceil_div<uint64_t>(block.row_end, kStripRows);
  FirstError failure;
  parallel_for(strip_end - strip_begin, 1, threads, [&](uint64_t begin, uint64_t end) {
    alignas(64) uint16_t tile[kStripRows * kTileStride] = {};
    for (uint64_t s = strip_begin + begin; s < strip_begin + end; ++s) {
      const uint64_t row_begin = std::max(block.row_begin, s * kStripRows);
      const uint64_t row_end = std::min(block.row_end, (s + 1) * kStripRows);
      for (uint64_t c = block.col_begin; c < block.col_end;) {
        const uint64_t record = c / record_cols;
        const uint64_t c_end = std::min(block.col_end, (record + 1) * record_cols);
        if (auto result = decoder.decode(block.matrix * header.grid.strips_a_matrix() + s, record, tile); !result) {
          failure.keep(s, std::move(result));
          return;
        }
        for (uint64_t r = row_begin; r < row_end; ++r) {
          std::memcpy(out + (r - block.row_begin) * stride + c - block.col_begin,
                      tile + r % kStripRows * kTileStride + c % record_cols, 2 * (c_end - c));
        }
        c = c_end;
      }
    }
  });
  return failure.result();
}

}  // namespace glyd
