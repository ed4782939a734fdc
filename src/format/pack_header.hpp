// pack_header.hpp - the 128-byte header of a pack and the places of its arrays. Spec: docs/spec/weights.md 1, 2.
#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "format/geometry.hpp"

namespace glyd {

inline constexpr uint32_t kPackHeaderBytes = 128;
inline constexpr uint16_t kPackVersion = 1;
inline constexpr uint32_t kPackArrays = 4;

enum class Layout : uint8_t { kRaw = 0, kFast = 1, kSmall = 2 };

struct PackHeader {
  Layout layout = Layout::kRaw;
  bool transposed = false;
  bool fusible = false;
  Grid grid;
  uint64_t pack_bytes = 0;
  std::array<uint64_t, kPackArrays> array_bytes{};
  uint32_t base = 0, slot_bytes = 0;   // fast
  uint32_t min_bits = 0, symbols = 0;  // small

  uint64_t values() const { return grid.stack * grid.rows * grid.cols; }
  uint64_t bf16_bytes() const { return 2 * values(); }
  // Where array i starts in the pack.
  uint64_t array_offset(uint32_t i) const {
    uint64_t offset = kPackHeaderBytes;
    for (uint32_t a = 0; a < i; ++a) offset += round_up(array_bytes[a], kPackAlignment);
    return offset;
  }
  ByteSpan array(ByteSpan pack, uint32_t i) const { return pack.subspan(array_offset(i), array_bytes[i]); }
};

// Array numbers (spec 3-5).
namespace raw {
inline constexpr uint32_t kData = 0;
}
namespace fast {
inline constexpr uint32_t kPlanes = 0, kPatches = 1, kOverflow = 2;
}
namespace small {
inline constexpr uint32_t kPlanes = 0, kCodes = 1, kOffsets = 2, kTable = 3;
}

// Shape limits of spec 1; an error names the number that is too large.
Result<void> check_shape(const Grid& grid);

// Sets pack_bytes from array_bytes.
void finish_sizes(PackHeader& header);

// The header's 128 bytes, checksum included.
void write_pack_header(const PackHeader& header, uint8_t* out);

// Reads and checks the header of a pack of `pack_bytes` bytes (the first 128 must be readable): magic, version,
// checksum, limits, and that every array's size is what the shape and parameters say (those of fast's overflow and
// small's codes: that they are multiples of 4). Nothing is read behind the header.
Result<PackHeader> read_pack_header(ByteSpan header, uint64_t pack_bytes);
// The same for a whole pack in memory; also checks that the padding behind each array is zero.
Result<PackHeader> open_pack(ByteSpan pack);

// The most bytes a pack of this shape may have (spec 2): bf16 bytes + 1% + 4 KiB, rounded down to 128.
uint64_t pack_bound(const Grid& grid);

}  // namespace glyd
