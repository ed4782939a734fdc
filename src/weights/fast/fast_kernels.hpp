// fast_kernels.hpp - the loops of layout `fast` over one record. Pure: no allocation, no checks. A table an instruction
// set, equal results.
//
// A tile is [16][kTileStride] bf16 values, the first steps * 16 of each row in use. Spec: docs/spec/weights.md 4.
#pragma once

#include <cstdint>

namespace glyd::fast {

struct Kernels {
  // masks[chunk * 16 + row]: bit c set where the exponent of column c of the chunk lies outside the window at `base`.
  // All 32 are written. Rows are `stride` values apart; whole chunks may be read.
  void (*window_masks)(const uint16_t* rows, uint64_t stride, uint32_t steps, uint32_t base, uint64_t* masks);
  // The planes of a tile whose exponents all lie in the window.
  void (*encode_planes)(const uint16_t* tile, uint32_t steps, uint32_t base, uint8_t* planes);
  // The tile of such planes, any bytes: exponents are base ... base + 7.
  void (*decode_planes)(const uint8_t* planes, uint32_t steps, uint32_t base, uint16_t* tile);
};

extern const Kernels kScalarKernels;
#if defined(__x86_64__)
extern const Kernels kAvx2Kernels, kAvx512Kernels;
#endif

// The table of cpu_isa().
const Kernels& kernels();

}  // namespace glyd::fast
