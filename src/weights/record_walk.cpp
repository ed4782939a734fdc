#include "weights/record_walk.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/parallel.hpp"
#include "weights/tile.hpp"

namespace glyd {
namespace {

// Outputs from this size are written past the caches.
constexpr uint64_t kStreamBytes = uint64_t{8} << 20;

// A tile's worth of a strip, decoded.
struct Piece {
  uint64_t strip, col, cols;
  const uint16_t* tile;
};

// Runs `use(piece, scratch)` on every strip's pieces, in order, a strip's on one thread; `scratch` is the thread's own.
template <typename Scratch, typename Use>
Result<void> walk(const RecordDecoder& decoder, const PackHeader& header, int threads, Use use) {
  FirstError failure;
  const Grid& grid = header.grid;
  const uint64_t record_cols = uint64_t{layout_ops(header.layout).record_steps} * kStepCols;
  parallel_for(grid.strips(), strip_grain(grid), threads, [&](uint64_t begin, uint64_t end) {
    alignas(64) uint16_t tile[kStripRows * kTileStride] = {};
    Scratch scratch;
    for (uint64_t strip = begin; strip < end; ++strip) {
      for (uint64_t col = 0; col < grid.cols; col += kTileStride) {
        const uint64_t cols = std::min<uint64_t>(kTileStride, grid.cols - col);
        for (uint64_t c = 0; c < cols; c += record_cols) {
          if (auto result = decoder.decode(strip, (col + c) / record_cols, tile + c); !result) {
            failure.keep(strip, std::move(result));
            return;
          }
        }
        use(Piece{strip, col, cols, tile}, scratch);
      }
    }
    finish_streaming();
  });
  return failure.result();
}

struct Rows {
  StreamedRow streamed[kStripRows];
};

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
  const bool stream = out.size_bytes() >= kStreamBytes;
  return walk<Rows>(decoder, header, threads, [&](const Piece& piece, Rows& in_hand) {
    const StripRows rows = rows_of_strip(grid, piece.strip);
    if (header.transposed) {
      uint16_t* matrix = out.data() + piece.strip / grid.strips_a_matrix() * grid.rows * grid.cols;
      transpose_tile(piece.tile, kTileStride, rows.count, piece.cols, matrix + piece.col * grid.rows + rows.first,
                     grid.rows);
      return;
    }
    const bool first = piece.col == 0, last = piece.col + piece.cols == grid.cols;
    for (uint64_t r = 0; r < rows.count; ++r) {
      uint16_t* to = out.data() + rows.begin + r * grid.cols + piece.col;
      if (stream) {
        in_hand.streamed[r].add(piece.tile + r * kTileStride, piece.cols, to, first, last);
      } else {
        std::memcpy(to, piece.tile + r * kTileStride, 2 * piece.cols);
      }
    }
  });
}

Result<bool> compare_records(const RecordDecoder& decoder, const PackHeader& header, int threads,
                             std::span<const uint16_t> values) {
  struct Expected {
    alignas(64) uint16_t tile[kStripRows * kTileStride];
  };
  const Grid& grid = header.grid;
  const TensorSource source{values, grid, header.transposed};
  std::atomic<bool> same{true};
  GLYD_CHECK(walk<Expected>(decoder, header, threads, [&](const Piece& piece, Expected& expected) {
    const StripRows rows = rows_of_strip(grid, piece.strip);
    const uint16_t* wanted = values.data() + rows.begin + piece.col;
    uint64_t stride = grid.cols;
    if (header.transposed) {
      load_tile(source, piece.strip, piece.col / kStepCols,
                static_cast<uint32_t>(ceil_div<uint64_t>(piece.cols, kStepCols)), TileFill{}, expected.tile);
      wanted = expected.tile;
      stride = kTileStride;
    }
    bool equal = true;
    for (uint64_t r = 0; r < rows.count; ++r, wanted += stride) {
      if (!header.transposed) fetch_next_piece(wanted, 2 * piece.cols);
      equal &= std::memcmp(piece.tile + r * kTileStride, wanted, 2 * piece.cols) == 0;
    }
    if (!equal) same.store(false, std::memory_order_relaxed);
  }));
  return same.load();
}

Result<void> visit_records(const RecordDecoder& decoder, const PackHeader& header, int threads) {
  struct None {};
  return walk<None>(decoder, header, threads, [](const Piece&, None&) {});
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
