#include "weights/tile.hpp"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include <algorithm>
#include <cstring>

namespace glyd {
namespace {

constexpr uint64_t kGrainValues = uint64_t{1} << 17;
constexpr uint64_t kBlock = 32;  // a square of 32 x 32 values: 64-byte lines both ways, 4 KiB in all

}  // namespace

void transpose_tile(const void* from, uint64_t from_stride, uint64_t rows, uint64_t cols, uint16_t* out,
                    uint64_t out_stride) {
  const auto* bytes = static_cast<const uint8_t*>(from);
  for (uint64_t c0 = 0; c0 < cols; c0 += kBlock) {
    const uint64_t c1 = std::min(c0 + kBlock, cols);
    for (uint64_t r0 = 0; r0 < rows; r0 += kBlock) {
      const uint64_t r1 = std::min(r0 + kBlock, rows);
      for (uint64_t r = r0; r < r1; ++r) {
        const uint8_t* row = bytes + 2 * r * from_stride;
        for (uint64_t c = c0; c < c1; ++c) out[c * out_stride + r] = load_le<uint16_t>(row + 2 * c);
      }
    }
  }
}

void load_tile(const TensorSource& source, uint64_t strip, uint64_t step_begin, uint32_t steps, TileFill fill,
               uint16_t* out) {
  const Grid& grid = source.grid;
  const uint64_t matrix = strip / grid.strips_a_matrix();
  const uint64_t row_begin = strip % grid.strips_a_matrix() * kStripRows;
  const uint64_t col_begin = step_begin * kStepCols;
  const uint64_t rows = std::min<uint64_t>(kStripRows, grid.rows - row_begin);
  const uint64_t padded_cols = steps * kStepCols;
  const uint64_t cols = std::min<uint64_t>(padded_cols, grid.cols - col_begin);
  const uint16_t* values = source.values.data() + matrix * grid.rows * grid.cols;
  if (source.transposed) {
    transpose_tile(values + col_begin * grid.rows + row_begin, grid.rows, cols, rows, out, kTileStride);
  } else {
    for (uint64_t r = 0; r < rows; ++r) {
      const uint16_t* from = values + (row_begin + r) * grid.cols + col_begin;
      fetch_next_piece(from, 2 * cols);
      std::memcpy(out + r * kTileStride, from, 2 * cols);
    }
  }
  for (uint64_t r = 0; r < kStripRows; ++r) {
    for (uint64_t c = r < rows ? cols : 0; c < padded_cols; ++c)
      out[r * kTileStride + c] = c % 2 == 0 ? fill.even : fill.odd;
  }
}

namespace {

void stream_line(const uint16_t* from, uint16_t* to) {
#if defined(__x86_64__)
  const auto* source = reinterpret_cast<const __m128i*>(from);
  auto* line = reinterpret_cast<__m128i*>(to);
  for (int k = 0; k < 4; ++k) _mm_stream_si128(line + k, _mm_loadu_si128(source + k));
#else
  std::memcpy(to, from, 64);
#endif
}

}  // namespace

void StreamedRow::add(const uint16_t* from, uint64_t count, uint16_t* to, bool first, bool last) {
  // Values of the line in which `to` lies that come before it, and from it on.
  const uint64_t before = reinterpret_cast<uintptr_t>(to) % 64 / sizeof(uint16_t), rest = kLineValues - before;
  uint64_t done = 0;
  if (before > 0 && (first || count < rest)) {
    if (!first) std::memcpy(to - before, kept_ + kLineValues - before, 2 * before);
    done = std::min(count, rest);
    std::memcpy(to, from, 2 * done);
  } else if (before > 0) {
    std::memcpy(kept_ + kLineValues, from, 2 * kLineValues);
    stream_line(kept_ + kLineValues - before, to - before);
    done = rest;
  }
  for (; done + kLineValues <= count; done += kLineValues) stream_line(from + done, to + done);
  if (last) {
    std::memcpy(to + done, from + done, 2 * (count - done));
  } else {
    std::memcpy(kept_, from + count - kLineValues, 2 * kLineValues);
  }
}

void finish_streaming() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

uint64_t strip_grain(const Grid& grid) {
  const uint64_t strips = kGrainValues / (kStripRows * std::max<uint64_t>(grid.cols, 1));
  return std::clamp<uint64_t>(strips / 4 * 4, 4, 4096);  // 4 strips: whole cache lines where the tensor is transposed
}

uint64_t raw_pack_bytes(const Grid& grid) {
  return kPackHeaderBytes + round_up(2 * grid.stack * grid.rows * grid.cols, kPackAlignment);
}

void clear_array_padding(const PackHeader& header, uint8_t* pack) {
  for (uint32_t i = 0; i < kPackArrays; ++i) {
    const uint64_t end = header.array_offset(i) + header.array_bytes[i];
    std::memset(pack + end, 0, header.array_offset(i + 1) - end);
  }
}

}  // namespace glyd
