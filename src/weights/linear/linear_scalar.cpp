#include <algorithm>
#include <bit>

#include "weights/linear/linear_kernels.hpp"

namespace glyd {
namespace {

float widen(uint16_t value) { return std::bit_cast<float>(static_cast<uint32_t>(value) << 16); }

void dot(const DotArgs& args) {
  for (size_t begin = 0; begin < args.cols; begin += args.tile_cols) {
    const size_t cols = std::min(args.tile_cols, args.cols - begin);
    const uint8_t* tile = args.weights + begin / args.tile_cols * args.tile_bytes;
    for (size_t t = 0; t < args.tokens; ++t) {
      const uint16_t* x = args.x + t * args.x_stride + begin;
      for (size_t r = 0; r < args.rows; ++r) {
        const uint8_t* w = tile + args.row_offset[r];
        float sum = args.sums[t * kStripRows + r];
        for (size_t c = 0; c < cols; ++c) sum += widen(load_le<uint16_t>(w + 2 * c)) * widen(x[c]);
        args.sums[t * kStripRows + r] = sum;
      }
    }
  }
}

void reduce(const float* sums, float* out) { std::copy_n(sums, kStripRows, out); }

}  // namespace

const LinearKernels& linear_kernels_scalar() {
  static constexpr LinearKernels kernels{
      .width = 1, .dot = dot, .reduce = reduce, .reduce_fragments = nullptr, .decode_chunk = nullptr};
  return kernels;
}

}  // namespace glyd
