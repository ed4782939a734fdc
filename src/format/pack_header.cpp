#include "format/pack_header.hpp"

#include <cstring>

#include "base/crc32c.hpp"

namespace glyd {
namespace {

constexpr char kMagic[4] = {'G', 'L', 'Y', 'W'};
// Offsets of spec 2's table.
constexpr size_t kVersionAt = 4, kLayoutAt = 6, kFlagsAt = 7, kStackAt = 8, kRowsAt = 16, kColsAt = 24,
                 kPackBytesAt = 32, kArraysAt = 40, kParametersAt = 72, kZeroAt = 80, kChecksumAt = 124;
constexpr uint8_t kFlagTransposed = 1, kFlagFusible = 2;
constexpr uint64_t kMostSide = (uint64_t{1} << 31) - 1, kMostValues = uint64_t{1} << 40, kMostTiles = uint64_t{1} << 36;

Result<void> check_array(const PackHeader& header, uint32_t i, uint64_t expected, const char* name) {
  if (header.array_bytes[i] == expected) return Ok{};
  return corrupt("pack: array {} ({}) has {} bytes, the shape and parameters make it {}", i, name,
                 header.array_bytes[i], expected);
}

Result<void> check_fast(const PackHeader& header) {
  const uint64_t strips = header.grid.strips(), steps = header.grid.steps();
  if (header.base < 1 || header.base > fast::kMostBase)
    return corrupt("pack: fast: base {} is outside 1-247", header.base);
  if (header.slot_bytes % 16 != 0 || header.slot_bytes > fast::kMostSlotBytes) {
    return corrupt("pack: fast: slot_bytes {} is not a multiple of 16 up to 384", header.slot_bytes);
  }
  GLYD_CHECK(check_array(header, fast::kPlanes, strips * fast::strip_bytes(steps), "planes"));
  GLYD_CHECK(check_array(header, fast::kPatches, strips * fast::strip_slot_bytes(header.slot_bytes, steps), "patches"));
  // A record's group has at most one entry a weight.
  const uint64_t most = strips * steps * (kStepWeights + 1) * 4;
  if (header.array_bytes[fast::kOverflow] % 4 != 0 || header.array_bytes[fast::kOverflow] > most) {
    return corrupt("pack: fast: {} bytes of overflow", header.array_bytes[fast::kOverflow]);
  }
  return check_array(header, 3, 0, "none");
}

Result<void> check_small(const PackHeader& header) {
  const uint64_t strips = header.grid.strips(), steps = header.grid.steps();
  if (header.min_bits > small::kMostMinBits)
    return corrupt("pack: small: min_bits {} is more than 704", header.min_bits);
  if (header.symbols < 1 || header.symbols > small::kMostSymbols)
    return corrupt("pack: small: symbols {} is outside 1-16", header.symbols);
  GLYD_CHECK(check_array(header, small::kPlanes, small::planes_bytes(strips, steps), "planes"));
  GLYD_CHECK(check_array(header, small::kOffsets, small::offsets_bytes(strips, steps), "offsets"));
  GLYD_CHECK(check_array(header, small::kTable, small::kTableBytes, "table"));
  // 16 length bytes a stream, regions of at most 704 + 255 bits, 255 patches a record.
  const uint64_t most = strips * small::records_a_strip(steps) * (32 + 2 * 16 * 120 + 4 + 4 * 255);
  if (header.array_bytes[small::kCodes] % 4 != 0 || header.array_bytes[small::kCodes] > most) {
    return corrupt("pack: small: {} bytes of codes", header.array_bytes[small::kCodes]);
  }
  return Ok{};
}

Result<void> check_raw(const PackHeader& header) {
  GLYD_CHECK(check_array(header, raw::kData, header.bf16_bytes(), "data"));
  for (uint32_t i = 1; i < kPackArrays; ++i) GLYD_CHECK(check_array(header, i, 0, "none"));
  if (header.fusible) return corrupt("pack: raw: the flag fusible is set");
  return Ok{};
}

Result<void> read_parameters(const uint8_t* p, PackHeader& header) {
  ByteSpan unused;
  switch (header.layout) {
    case Layout::kRaw:
      unused = {p, 8};
      break;
    case Layout::kFast:
      header.base = p[0];
      header.slot_bytes = load_le<uint16_t>(p + 2);
      if (p[1] != 0) return corrupt("pack: fast: byte 73 is not zero");
      unused = {p + 4, 4};
      break;
    case Layout::kSmall:
      header.min_bits = load_le<uint16_t>(p);
      header.symbols = p[2];
      unused = {p + 3, 5};
      break;
  }
  if (!all_zero(unused)) return corrupt("pack: unused parameter bytes are not zero");
  return Ok{};
}

}  // namespace

Result<void> check_shape(const Grid& grid) {
  if (grid.rows > kMostSide || grid.cols > kMostSide || grid.stack > kMostSide) {
    return invalid_argument("shape {} x {} x {}: no side may exceed 2^31 - 1", grid.stack, grid.rows, grid.cols);
  }
  uint64_t values = 0, tiles = 0;
  const bool fits = checked_mul(grid.rows * grid.cols, grid.stack, values) && values <= kMostValues &&
                    checked_mul(grid.strips_a_matrix() * grid.steps(), grid.stack, tiles) && tiles <= kMostTiles;
  if (!fits)
    return invalid_argument("shape {} x {} x {}: more than 2^40 values, or 2^36 tiles of 16 x 16", grid.stack,
                            grid.rows, grid.cols);
  return Ok{};
}

void finish_sizes(PackHeader& header) { header.pack_bytes = header.array_offset(kPackArrays); }

void write_pack_header(const PackHeader& header, uint8_t* out) {
  std::memset(out, 0, kPackHeaderBytes);
  std::memcpy(out, kMagic, sizeof kMagic);
  store_le<uint16_t>(out + kVersionAt, kPackVersion);
  out[kLayoutAt] = static_cast<uint8_t>(header.layout);
  out[kFlagsAt] = static_cast<uint8_t>((header.transposed ? kFlagTransposed : 0) | (header.fusible ? kFlagFusible : 0));
  store_le<uint64_t>(out + kStackAt, header.grid.stack);
  store_le<uint64_t>(out + kRowsAt, header.grid.rows);
  store_le<uint64_t>(out + kColsAt, header.grid.cols);
  store_le<uint64_t>(out + kPackBytesAt, header.pack_bytes);
  for (uint32_t i = 0; i < kPackArrays; ++i) store_le<uint64_t>(out + kArraysAt + 8 * i, header.array_bytes[i]);
  if (header.layout == Layout::kFast) {
    out[kParametersAt] = static_cast<uint8_t>(header.base);
    store_le<uint16_t>(out + kParametersAt + 2, static_cast<uint16_t>(header.slot_bytes));
  } else if (header.layout == Layout::kSmall) {
    store_le<uint16_t>(out + kParametersAt, static_cast<uint16_t>(header.min_bits));
    out[kParametersAt + 2] = static_cast<uint8_t>(header.symbols);
  }
  store_le<uint32_t>(out + kChecksumAt, crc32c({out, kChecksumAt}));
}

Result<PackHeader> read_pack_header(ByteSpan bytes, uint64_t pack_bytes) {
  if (bytes.size() < kPackHeaderBytes || pack_bytes < kPackHeaderBytes)
    return corrupt("pack: {} bytes, shorter than its header of 128", pack_bytes);
  const uint8_t* p = bytes.data();
  if (std::memcmp(p, kMagic, sizeof kMagic) != 0) return corrupt("pack: does not begin with GLYW");
  const auto version = load_le<uint16_t>(p + kVersionAt);
  if (version != kPackVersion)
    return foreign_format("pack: version {}; this glyd reads version {}: pack the model again", version, kPackVersion);
  if (load_le<uint32_t>(p + kChecksumAt) != crc32c({p, kChecksumAt}))
    return corrupt("pack: the header's checksum does not match");
  if (p[kLayoutAt] > 2) return corrupt("pack: unknown layout {}", p[kLayoutAt]);
  if ((p[kFlagsAt] & ~(kFlagTransposed | kFlagFusible)) != 0) return corrupt("pack: unknown flags {:#x}", p[kFlagsAt]);
  if (!all_zero({p + kZeroAt, kChecksumAt - kZeroAt})) return corrupt("pack: reserved header bytes are not zero");

  PackHeader header;
  header.layout = static_cast<Layout>(p[kLayoutAt]);
  header.transposed = (p[kFlagsAt] & kFlagTransposed) != 0;
  header.fusible = (p[kFlagsAt] & kFlagFusible) != 0;
  header.grid = {load_le<uint64_t>(p + kStackAt), load_le<uint64_t>(p + kRowsAt), load_le<uint64_t>(p + kColsAt)};
  if (auto shape = check_shape(header.grid); !shape) return corrupt("pack: {}", shape.error().message);
  // Else a header of 128 bytes could declare 2^58 strips of no columns to walk.
  if (header.layout != Layout::kRaw && header.values() == 0)
    return corrupt("pack: a tensor without values is not in layout raw");
  for (uint32_t i = 0; i < kPackArrays; ++i) {
    header.array_bytes[i] = load_le<uint64_t>(p + kArraysAt + 8 * i);
    if (header.array_bytes[i] > pack_bytes)
      return corrupt("pack: array {} of {} bytes in a pack of {}", i, header.array_bytes[i], pack_bytes);
  }
  GLYD_CHECK(read_parameters(p + kParametersAt, header));
  GLYD_CHECK(header.layout == Layout::kFast    ? check_fast(header)
             : header.layout == Layout::kSmall ? check_small(header)
                                               : check_raw(header));
  finish_sizes(header);
  if (load_le<uint64_t>(p + kPackBytesAt) != header.pack_bytes)
    return corrupt("pack: its header says {} bytes, its arrays make {}", load_le<uint64_t>(p + kPackBytesAt),
                   header.pack_bytes);
  if (header.pack_bytes != pack_bytes)
    return corrupt("pack: {} bytes given, its header says {}", pack_bytes, header.pack_bytes);
  return header;
}

Result<PackHeader> open_pack(ByteSpan pack) {
  GLYD_TRY(PackHeader header, read_pack_header(pack, pack.size()));
  for (uint32_t i = 0; i < kPackArrays; ++i) {
    const uint64_t end = header.array_offset(i) + header.array_bytes[i];
    if (!all_zero(pack.subspan(end, header.array_offset(i + 1) - end)))
      return corrupt("pack: the padding behind array {} is not zero", i);
  }
  return header;
}

uint64_t pack_bound(const Grid& grid) {
  const uint64_t bytes = 2 * grid.stack * grid.rows * grid.cols;
  return (bytes + bytes / 100 + 4096) / kPackAlignment * kPackAlignment;
}

}  // namespace glyd
