// row_bias.cuh - the bias of a lane's two rows of a strip, as the tensor core's sums have them.
#pragma once

#include <cstdint>

namespace glyd::cuda {

// bias: [rows]; strip_row: the strip's first. Rows behind the last take its bias: what is made of them is dropped.
__device__ __forceinline__ void load_row_bias(const uint16_t* bias, uint32_t strip_row, uint32_t rows, uint32_t lane,
                                              float (&out)[2]) {
#pragma unroll
  for (uint32_t half = 0; half < 2; ++half) {
    const uint32_t row = min(strip_row + lane / 4 + half * 8, rows - 1);
    out[half] = __uint_as_float(static_cast<uint32_t>(bias[row]) << 16);
  }
}

}  // namespace glyd::cuda
