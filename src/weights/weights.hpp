// weights.hpp - what the rest of the library needs of packed tensors, whatever their layout. Public twin:
// include/glyd/weights.h. Spec: docs/spec/weights.md.
//
// Everything here is safe for any bytes given as a pack. Results never depend on `threads` (0: one per CPU) or on the
// instruction set, except the rounding of `linear`.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/aligned_buffer.hpp"
#include "base/bytes.hpp"
#include "base/result.hpp"
#include "format/pack_header.hpp"

namespace glyd {

// Packs grid.stack * grid.rows * grid.cols values (stored [cols, rows] a matrix if `transposed`). Falls back to the
// other layouts and at last to raw where `wanted` does not pay: the result's header says.
// `old`: a buffer of no further use, whose memory is taken where it will do.
Result<AlignedBuffer> pack_tensor(std::span<const uint16_t> bf16, const Grid& grid, bool transposed, Layout wanted,
                                  int threads, AlignedBuffer old = {});

// Packs for products: `fast`, but `raw` where that is the quicker one (fast::has_heavy_tails).
Result<AlignedBuffer> pack_tensor_auto(std::span<const uint16_t> bf16, const Grid& grid, bool transposed, int threads);

// Every rule of the spec (weights.md), the whole pack.
Result<void> validate_pack(ByteSpan pack, int threads);

// The whole tensor in the source's order.
Result<void> decode_tensor(ByteSpan pack, int threads, std::span<uint16_t> out);

// validate_pack and decode_tensor in one pass.
Result<void> decode_tensor_checked(ByteSpan pack, int threads, std::span<uint16_t> out);

// validate_pack, and whether the tensor, in the source's order, is `bf16`; without memory for it.
Result<bool> decodes_to(ByteSpan pack, int threads, std::span<const uint16_t> bf16);

// A block of matrix `matrix` as [rows, cols] into out[r * stride + c]; decodes only the strips and records touched.
struct Block {
  uint64_t matrix = 0, row_begin = 0, row_end = 0, col_begin = 0, col_end = 0;
};
Result<void> decode_block(ByteSpan pack, const Block& block, int threads, uint16_t* out, uint64_t stride);

// Rows of matrix 0 by index.
Result<void> decode_rows(ByteSpan pack, std::span<const int64_t> indices, int threads, uint16_t* out);

// y = x * W^T (+ bias); see glyd_linear.
struct LinearArgs {
  uint64_t matrix = 0;
  const uint16_t* x = nullptr;
  uint64_t tokens = 0, x_stride = 0;
  const uint16_t* bias = nullptr;  // or null
  uint16_t* y = nullptr;
  uint64_t y_stride = 0;
};
Result<void> linear(ByteSpan pack, const LinearArgs& args, int threads);

// How many values have each exponent.
std::array<uint64_t, 256> exponent_counts(std::span<const uint16_t> bf16, int threads);
// 8 + the entropy of the exponents, in bits a value; 0 for no values.
double entropy_floor_bits(const std::array<uint64_t, 256>& counts);

}  // namespace glyd
