// glyd_reference.cpp - decodes one pack: its header, and layout `raw`. Section numbers are those of
// docs/spec/weights.md.
#include "glyd_reference.hpp"

#include <algorithm>
#include <cstring>

#include "reference_basics.hpp"
#include "reference_pack.hpp"

namespace glyd_reference {
namespace {

constexpr std::uint64_t kMaxSide = 0x7fffffff;
constexpr std::uint64_t kMaxValues = std::uint64_t{1} << 40;
constexpr std::uint64_t kMaxTiles = std::uint64_t{1} << 36;

// 3-5: what each array's size must be; array 2 of `fast` and array 1 of `small` are bounded by the tables inside them.
void check_array_sizes(const Header& header) {
  const Grid grid = grid_of(header);
  const std::uint64_t strips = grid.strips(), steps = grid.steps();
  std::array<std::uint64_t, 4> expected{};
  if (header.layout == Layout::kRaw) {
    expected[0] = 2 * header.stack * header.rows * header.cols;
  } else if (header.layout == Layout::kFast) {
    expected[0] = strips * (steps / 8 * FastSizes::record(8) + FastSizes::record(steps % 8));
    expected[1] = strips * (steps / 8 * header.slot_bytes + FastSizes::slot(header.slot_bytes, steps % 8));
    expected[2] = header.array_bytes[2];
    require(expected[2] % 4 == 0, "fast: overflow array is not a multiple of 4 bytes");
  } else {
    expected[0] = strips * steps * 256;
    expected[1] = header.array_bytes[1];
    expected[2] = round_up(8 * (strips + 1), 16) + 4 * strips * ceil_div(steps, 16);
    expected[3] = 144;
    require(expected[1] % 4 == 0, "small: codes are not a multiple of 4 bytes");
  }
  require(header.array_bytes == expected, "array sizes do not follow from the shape");
}

void read_parameters(Header& header, Bytes bytes) {
  switch (header.layout) {
    case Layout::kRaw:
      require(all_zero(bytes.subspan(72, 8)), "raw: parameters are not zero");
      require(!header.fusible, "raw: flag `fusible` is set");
      break;
    case Layout::kFast:
      header.base = bytes[72];
      header.slot_bytes = static_cast<std::uint32_t>(load(bytes, 74, 2));
      require(header.base >= 1 && header.base <= 247, "fast: base is not 1-247");
      require(header.slot_bytes % 16 == 0 && header.slot_bytes <= 384,
              "fast: slot_bytes is not a multiple of 16 up to 384");
      require(bytes[73] == 0 && all_zero(bytes.subspan(76, 4)), "fast: unused parameters are not zero");
      break;
    case Layout::kSmall:
      header.min_bits = static_cast<std::uint32_t>(load(bytes, 72, 2));
      header.symbols = bytes[74];
      require(header.min_bits <= 704, "small: min_bits above 704");
      require(header.symbols >= 1 && header.symbols <= 16, "small: symbols is not 1-16");
      require(all_zero(bytes.subspan(75, 5)), "small: unused parameters are not zero");
      break;
  }
}

// The arrays lie one behind the other, each followed by zeros up to a multiple of 128, and fill the pack.
void check_arrays_fill_pack(const Header& header, Bytes pack) {
  std::uint64_t at = kLine;
  for (const std::uint64_t bytes : header.array_bytes) {
    require(bytes <= pack.size() - at, "an array ends past the pack");
    const std::uint64_t end = at + bytes;
    at = round_up(end, kLine);
    require(at <= pack.size(), "an array's padding ends past the pack");
    require(all_zero(pack.subspan(end, at - end)), "padding behind an array is not zero");
  }
  require(at == pack.size(), "the pack has bytes behind its last array");
}

}  // namespace

Header read_header(Bytes pack) {
  require(pack.size() >= kLine, "pack shorter than its header");
  require(std::memcmp(pack.data(), "GLYW", 4) == 0, "no magic GLYW");
  require(load(pack, 4, 2) == 1, "version is not 1");
  require(crc32c(pack.first(124)) == load32(pack, 124), "header checksum is wrong");
  require(pack[6] <= 2, "unknown layout");
  require((pack[7] & ~3) == 0, "unknown flags");
  Header header;
  header.layout = static_cast<Layout>(pack[6]);
  header.transposed = (pack[7] & 1) != 0;
  header.fusible = (pack[7] & 2) != 0;
  header.stack = load(pack, 8, 8);
  header.rows = load(pack, 16, 8);
  header.cols = load(pack, 24, 8);
  header.pack_bytes = load(pack, 32, 8);
  for (unsigned i = 0; i < 4; ++i) header.array_bytes[i] = load(pack, 40 + 8 * i, 8);
  require(all_zero(pack.subspan(80, 44)), "unused header bytes are not zero");
  require(std::max({header.stack, header.rows, header.cols}) <= kMaxSide, "a dimension is above 2^31 - 1");
  require(product_at_most(header.stack, header.rows, header.cols, kMaxValues), "more than 2^40 values");
  require(product_at_most(header.stack, ceil_div(header.rows, 16), ceil_div(header.cols, 16), kMaxTiles),
          "more than 2^36 tiles");
  require(header.layout == Layout::kRaw || header.stack * header.rows * header.cols > 0,
          "a tensor without values is not in layout raw");
  require(header.pack_bytes == pack.size(), "pack is not as long as its header says");
  read_parameters(header, pack);
  check_array_sizes(header);
  check_arrays_fill_pack(header, pack);
  return header;
}

Tensor decode_pack(Bytes pack) {
  Tensor tensor{read_header(pack), {}};
  const Header& header = tensor.header;
  tensor.values.resize(header.stack * header.rows * header.cols);
  switch (header.layout) {
    case Layout::kRaw:
      for (std::uint64_t i = 0; i < tensor.values.size(); ++i)
        tensor.values[i] = static_cast<std::uint16_t>(load(pack, kLine + 2 * i, 2));
      break;
    case Layout::kFast:
      decode_fast(header, pack, tensor.values);
      break;
    case Layout::kSmall:
      decode_small(header, pack, tensor.values);
      break;
  }
  return tensor;
}

}  // namespace glyd_reference
