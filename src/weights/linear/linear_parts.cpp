#include "weights/linear/linear_parts.hpp"

#include <algorithm>
#include <cstring>

#include "base/parallel.hpp"
#include "weights/tile.hpp"

namespace glyd {
namespace {

constexpr size_t kMargin = 64;  // before the tiles: kReadBefore
constexpr size_t kWorkspaceBytes = kMargin + kWidenedBytes + 2 * kUpperBytes;
static_assert(kWorkspaceBytes <= 256 << 10 && kMargin >= kReadBefore && kPackHeaderBytes >= kReadBefore);

constexpr uint64_t kThreadProducts = uint64_t{1}
                                     << 17;  // weights times tokens that are worth waking another thread for

// Rows of a raw matrix, a piece of each.
void copy_rows(const uint8_t* from, uint64_t row_bytes, uint64_t rows, uint64_t bytes, uint16_t* out) {
  for (uint64_t r = 0; r < rows; ++r) {
    const uint8_t* row = from + r * row_bytes;
    fetch_next_piece(row, bytes);
    std::memcpy(out + r * kTileStride, row, bytes);
  }
}

}  // namespace

void clear_uppers(uint8_t* uppers) { std::memset(uppers, upper_byte(fast::kWindowUpper), 2 * kUpperBytes); }

Workspace workspace() {
  thread_local AlignedBuffer memory = [] {
    AlignedBuffer fresh(kWorkspaceBytes);
    clear_uppers(fresh.data() + kMargin + kWidenedBytes);
    return fresh;
  }();
  uint8_t* p = memory.data() + kMargin;
  return {reinterpret_cast<uint16_t*>(p), reinterpret_cast<float*>(p + kTiles * kTileBytes),
          reinterpret_cast<uint16_t*>(p + kTiles * kTileBytes + kSumBytes), reinterpret_cast<float*>(p),
          p + kWidenedBytes};
}

TileSource::TileSource(const OpenPack& pack, uint64_t matrix, const RecordDecoder* decoder)
    : pack_(pack),
      matrix_(matrix),
      decoder_(decoder),
      record_cols_(decoder == nullptr ? kTileStride : layout_ops(pack.header.layout).record_steps * kStepCols) {}

Result<void> TileSource::load(uint64_t strip, uint64_t record, uint16_t* out) const {
  if (decoder_ != nullptr) return decoder_->decode(matrix_ * grid().strips_a_matrix() + strip, record, out);
  const uint64_t row = strip * kStripRows, rows = std::min<uint64_t>(kStripRows, grid().rows - row);
  const uint64_t col = record * record_cols_, cols = std::min<uint64_t>(record_cols_, grid().cols - col);
  const uint8_t* values = pack_.array(raw::kData).data() + 2 * matrix_ * grid().rows * grid().cols;
  if (pack_.header.transposed) {
    transpose_tile(values + 2 * (col * grid().rows + row), grid().rows, cols, rows, out, kTileStride);
  } else {
    copy_rows(values + 2 * (row * grid().cols + col), 2 * grid().cols, rows, 2 * cols, out);
  }
  return Ok{};
}

int useful_threads(const Grid& grid, uint64_t tokens, int threads) {
  // At most 2^40 weights: no overflow.
  const uint64_t products = grid.rows * std::max<uint64_t>(grid.cols, 1) * std::min(tokens, kTokenBlock);
  return std::min(resolve_threads(threads),
                  static_cast<int>(std::clamp<uint64_t>(products / kThreadProducts, 1, 1024)));
}

}  // namespace glyd
