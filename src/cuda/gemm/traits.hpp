// traits.hpp - the compile-time choices of the fused product.
#pragma once

#include <cstdint>

#include "gemm/params.hpp"

namespace glyd::cuda {

// kTokens: rows of x in a tile (1, or a multiple of 8); kSplit: sums over splits of k.
template <uint32_t kTokens_, bool kSplit_>
struct LinearTraits {
  static constexpr uint32_t kTokens = kTokens_;
  static constexpr bool kSplit = kSplit_;
  static constexpr uint32_t kMostThreads = (most_workers(kTokens, kSplit) + 1) * 32;
  static constexpr bool kOneToken = kTokens == 1;
  static constexpr uint32_t kTiles = kOneToken ? 1 : kTokens / 8;  // of 8 tokens
  static constexpr uint32_t kXChunkBytes = (kOneToken ? 1 : kTokens) * 2 * kChunkCols;
  static constexpr uint32_t kPieceChunks = x_piece_chunks(kTokens);
  static constexpr uint32_t kPieceBytes = kPieceChunks * kXChunkBytes;
  static constexpr uint32_t kPieceCols = kPieceChunks * kChunkCols;
  // Operands of x wait in registers for the sums where they fit, so that only mma is in the chain from warp to warp.
  static constexpr bool kHoldX = kTiles <= 2;
  static constexpr uint32_t kSumBytes = kTiles * 512;        // a warp's sums
  static constexpr uint32_t kZeroLine = kOneToken ? 16 : 0;  // what columns without a token read
};

}  // namespace glyd::cuda
