// linear_parts.hpp - what the ways to a product share: a thread's memory, a matrix's weights as tiles in their own
// order, the number of threads that pays.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "weights/linear/linear_kernels.hpp"
#include "weights/registry.hpp"

namespace glyd {

inline constexpr uint64_t kTokenBlock = 64;  // tokens that a strip's weights are decoded for at once

// Memory of one thread: two tiles, the sums of 64 tokens at up to 16 floats each, and (the caller's thread alone) x
// scaled. 253 KiB. The matrix units divide the widened part in their own way.
inline constexpr size_t kTiles = 2, kTileValues = kStripRows * kTileStride, kTileBytes = 2 * kTileValues;
inline constexpr size_t kMostWidth = 16;
inline constexpr size_t kSumBytes = kTokenBlock * kStripRows * kMostWidth * sizeof(float);
inline constexpr size_t kScaledBytes = 168 << 10;
inline constexpr size_t kWidenedBytes = kTiles * kTileBytes + kSumBytes + kScaledBytes;

inline float widen_bf16(uint16_t value) { return std::bit_cast<float>(static_cast<uint32_t>(value) << 16); }
inline uint16_t round_to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (value != value) return static_cast<uint16_t>(bits >> 16 | 0x40);  // quiet, and never rounded to infinity
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

struct Workspace {
  uint16_t* tiles;  // at a multiple of 64 bytes
  float* sums;
  uint16_t* scaled_x;
  float* widened_x;  // all of the above, for one token
  uint8_t* uppers;   // two records' upper parts, the window's everywhere
};
// This thread's, kept for its next call.
Workspace workspace();
void clear_uppers(uint8_t* uppers);

// A matrix's strips as tiles of bf16 values, [16][kTileStride]. A record is what one decoding gives, record_cols
// columns; where the layout has none (raw), kTileStride columns.
class TileSource {
 public:
  // `decoder`: the pack's, or null where the layout has none. All must outlive the object.
  TileSource(const OpenPack& pack, uint64_t matrix, const RecordDecoder* decoder);

  const Grid& grid() const { return pack_.header.grid; }
  uint32_t record_cols() const { return record_cols_; }
  // Record `record` of the matrix's strip `strip`; what stands in padding is not said.
  Result<void> load(uint64_t strip, uint64_t record, uint16_t* out) const;

 private:
  const OpenPack& pack_;
  const uint64_t matrix_;  // of the stack
  const RecordDecoder* const decoder_;
  const uint32_t record_cols_;
};

// At most `threads` (0: one per CPU), and no more than a product of so many weights and tokens pays for.
int useful_threads(const Grid& grid, uint64_t tokens, int threads);

}  // namespace glyd
