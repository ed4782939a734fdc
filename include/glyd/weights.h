// weights.h - packed bf16 tensors on the CPU: pack, decode, look up rows, multiply. Format: docs/spec/weights.md.
//
// A tensor is a stack of `stack` matrices of `rows` (outputs) by `cols` (inputs, the reduction axis k), bf16 bit
// patterns as uint16_t. A pack is one self-describing block of bytes, a multiple of 128 long; it should start at a
// multiple of 64 (any alignment works). `threads` is the most threads to use: 0 means one per CPU available to the
// process. The result never depends on it. Any bytes may be given as a pack: a broken one gives GLYD_ERROR_CORRUPT,
// never a read or write out of bounds.
#ifndef GLYD_WEIGHTS_H
#define GLYD_WEIGHTS_H

#include <stddef.h>
#include <stdint.h>

#include "glyd/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum glyd_layout {
  GLYD_LAYOUT_RAW = 0,    // bf16 as it is
  GLYD_LAYOUT_FAST = 1,   // window codes, about 11.25 bits a weight
  GLYD_LAYOUT_SMALL = 2,  // prefix codes, about 10.7 bits a weight
  GLYD_LAYOUT_AUTO = 255  // when packing a tensor: fast, but raw where so many weights have rare exponents that
                          // products from `fast` would be slower than from bf16 (docs/gpu.md, "Heavy tails")
} glyd_layout;

// "raw", "fast", "small", "auto"; also accepts "mma12" (fast) and "mma" (small). GLYD_ERROR_INVALID_ARGUMENT lists the
// names.
GLYD_API glyd_status glyd_layout_from_name(const char* name, glyd_layout* layout) GLYD_NOEXCEPT;
GLYD_API const char* glyd_layout_name(glyd_layout layout) GLYD_NOEXCEPT;

typedef struct glyd_shape {
  uint64_t stack;       // 1 for a plain matrix
  uint64_t rows;        // outputs
  uint64_t cols;        // inputs: the axis summed over
  uint32_t transposed;  // 1: the bf16 tensor is stored [cols, rows] (as GPT-2's Conv1D), 0: [rows, cols]
  uint32_t reserved;    // 0
} glyd_shape;

// What a pack says of itself.
typedef struct glyd_pack_info {
  size_t struct_size;
  glyd_shape shape;
  glyd_layout layout;
  uint32_t fusible;     // products may be summed in shifted form (weights.md 4.5, 5.6)
  uint64_t pack_bytes;  // the whole pack
  uint64_t bf16_bytes;  // of the tensor
  uint32_t base;        // fast: first exponent of the window
  uint32_t slot_bytes;  // fast: bytes of a patch slot
  uint32_t min_bits;    // small
  uint32_t symbols;     // small: exponents in the alphabet
} glyd_pack_info;

// The most bytes glyd_pack can write for this shape in any layout (at most bf16 bytes + 1% + 4 KiB).
GLYD_API glyd_status glyd_pack_bound(const glyd_shape* shape, uint64_t* bytes) GLYD_NOEXCEPT;

// Packs stack*rows*cols bf16 values from `bf16` into `pack`. Where `layout` would not pay, another is used: see
// glyd_pack_read_info. Deterministic: the same bytes at any number of threads and on any CPU. Uses working memory of
// about the pack's size.
GLYD_API glyd_status glyd_pack(const uint16_t* bf16, const glyd_shape* shape, glyd_layout layout, int threads,
                               void* pack, uint64_t pack_capacity, uint64_t* pack_bytes) GLYD_NOEXCEPT;

// Reads the header alone (128 bytes suffice, but `pack_bytes` must be the whole pack's length).
GLYD_API glyd_status glyd_pack_read_info(const void* pack, uint64_t pack_bytes, glyd_pack_info* info) GLYD_NOEXCEPT;

// Checks every rule of the format, so that any damage that could be read is found (flipped sign or mantissa bits still
// decode: hash the decoded tensor for those).
GLYD_API glyd_status glyd_pack_validate(const void* pack, uint64_t pack_bytes, int threads) GLYD_NOEXCEPT;

// The whole tensor again in the source's order: stack*rows*cols values.
GLYD_API glyd_status glyd_decode(const void* pack, uint64_t pack_bytes, int threads, uint16_t* bf16,
                                 uint64_t bf16_capacity_values) GLYD_NOEXCEPT;

// Rows row_begin..row_end-1 and columns col_begin..col_end-1 of matrix `matrix`, to out[(r - row_begin) * out_stride +
// c - col_begin], always as [rows, cols] (not transposed). Decodes only the strips and records touched.
GLYD_API glyd_status glyd_decode_block(const void* pack, uint64_t pack_bytes, uint64_t matrix, uint64_t row_begin,
                                       uint64_t row_end, uint64_t col_begin, uint64_t col_end, int threads,
                                       uint16_t* out, uint64_t out_stride) GLYD_NOEXCEPT;

// Embedding look-up: out[i * cols ...] = row `indices[i]` of matrix 0. An index outside 0..rows-1 is
// GLYD_ERROR_INVALID_ARGUMENT.
GLYD_API glyd_status glyd_decode_rows(const void* pack, uint64_t pack_bytes, const int64_t* indices, uint64_t count,
                                      int threads, uint16_t* out) GLYD_NOEXCEPT;

// y[m, o] = sum over k of x[m, k] * W[o, k] (+ bias[o]), W = matrix `matrix` of the pack; x, y, bias bf16, sums fp32 in
// an order of the library's own choice, one rounding to bf16 at the end (nearest even). Multiplies from the packed
// bytes; no buffer above 256 KiB a thread. x: [tokens, cols] with x_stride values a row; y: [tokens, rows] with
// y_stride; bias null or [rows]. The last bits depend on the CPU's instruction set, the layout and the number of
// tokens (the order of the sums; subnormal numbers count as zero with AVX-512 and AMX), not on `threads`.
GLYD_API glyd_status glyd_linear(const void* pack, uint64_t pack_bytes, uint64_t matrix, const uint16_t* x,
                                 uint64_t tokens, uint64_t x_stride, const uint16_t* bias, uint16_t* y,
                                 uint64_t y_stride, int threads) GLYD_NOEXCEPT;

// The instruction set in use: "scalar", "avx2", "avx512" or "amx" (AVX-512 and, for products of several tokens, the
// matrix units). The environment variable GLYD_CPU, read once, names a lower one to use.
GLYD_API const char* glyd_cpu_isa(void) GLYD_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif  // GLYD_WEIGHTS_H
