// reference_pack.hpp - what the decoders of the layouts share: little-endian numbers, the grid of strips, steps and
// lanes, the arrays of a pack. Section numbers are those of docs/spec/weights.md.
#pragma once

#include <algorithm>

#include "glyd_reference.hpp"

namespace glyd_reference {

inline constexpr std::uint64_t kLine = 128;

inline void require(bool holds, const char* rule) {
  if (!holds) throw Corrupt(rule);
}

inline std::uint64_t load(Bytes bytes, std::uint64_t at, int count) {
  std::uint64_t value = 0;
  for (int i = 0; i < count; ++i) value |= std::uint64_t{bytes[at + static_cast<std::uint64_t>(i)]} << (8 * i);
  return value;
}
inline std::uint32_t load32(Bytes bytes, std::uint64_t at) { return static_cast<std::uint32_t>(load(bytes, at, 4)); }

inline std::uint64_t ceil_div(std::uint64_t a, std::uint64_t b) { return a / b + (a % b != 0); }
inline std::uint64_t round_up(std::uint64_t a, std::uint64_t n) { return ceil_div(a, n) * n; }

inline bool all_zero(Bytes bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::uint8_t byte) { return byte == 0; });
}

inline bool bit_at(Bytes bytes, std::uint64_t bit) { return (bytes[bit / 8] >> (bit % 8) & 1) != 0; }

// a * b * c <= limit, without overflow.
inline bool product_at_most(std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t limit) {
  if (a == 0 || b == 0 || c == 0) return true;
  return a <= limit && b <= limit / a && c <= limit / (a * b);
}

// 1.1: the tensor cut into strips and steps, and where lane `l`'s weight `j` of a strip and step stands.
struct Grid {
  std::uint64_t stack, rows, cols;
  bool transposed;

  std::uint64_t strips_per_matrix() const { return ceil_div(rows, 16); }
  std::uint64_t strips() const { return stack * strips_per_matrix(); }
  std::uint64_t steps() const { return ceil_div(cols, 16); }

  struct Place {
    bool padding;
    std::uint64_t index;  // in the source's order
  };
  Place place(std::uint64_t strip, std::uint64_t step, unsigned lane, unsigned j) const {
    const unsigned g = lane / 4, q = lane % 4, r = j / 2, h = j % 2;
    const std::uint64_t row = strip % strips_per_matrix() * 16 + g + 8 * (r % 2);
    const std::uint64_t col = step * 16 + 2 * q + 8 * (r / 2) + h;
    if (row >= rows || col >= cols) return {true, 0};
    const std::uint64_t matrix = strip / strips_per_matrix();
    return {false, matrix * rows * cols + (transposed ? col * rows + row : row * cols + col)};
  }
};

inline Grid grid_of(const Header& header) { return {header.stack, header.rows, header.cols, header.transposed}; }

inline std::uint16_t join(unsigned sign, unsigned exponent, unsigned mantissa) {
  return static_cast<std::uint16_t>(sign << 15 | exponent << 7 | mantissa);
}

// 2: an array's bytes. Array 0 starts at 128, each next one at a multiple of 128.
inline Bytes array_of(const Header& header, Bytes pack, unsigned number) {
  std::uint64_t at = kLine;
  for (unsigned i = 0; i < number; ++i) at += round_up(header.array_bytes[i], kLine);
  return pack.subspan(at, header.array_bytes[number]);
}

// 4.2, 4.3: sizes of `fast`, in bytes.
struct FastSizes {
  static std::uint64_t chunk_low(std::uint64_t steps) { return 256 * steps; }
  static std::uint64_t chunk(std::uint64_t steps) { return 256 * steps + 128 * std::min<std::uint64_t>(steps, 3); }
  static std::uint64_t record(std::uint64_t steps) {
    return chunk(std::min<std::uint64_t>(steps, 4)) + chunk(steps > 4 ? steps - 4 : 0);
  }
  static std::uint64_t slot(std::uint64_t slot_bytes, std::uint64_t steps) {
    return round_up(slot_bytes * steps / 8, 16);
  }
};

// Each checks the rules of its layout over the whole pack, whose header has been checked, and fills `out`.
void decode_fast(const Header& header, Bytes pack, std::vector<std::uint16_t>& out);
void decode_small(const Header& header, Bytes pack, std::vector<std::uint16_t>& out);

}  // namespace glyd_reference
