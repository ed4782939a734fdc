// weights_linear.cpp - glyd_linear of glyd/weights.h.
#include "base/guard.hpp"
#include "glyd/weights.h"
#include "weights/weights.hpp"

extern "C" glyd_status glyd_linear(const void* pack, uint64_t pack_bytes, uint64_t matrix, const uint16_t* x,
                                   uint64_t tokens, uint64_t x_stride, const uint16_t* bias, uint16_t* y,
                                   uint64_t y_stride, int threads) noexcept {
  return glyd::capi::guarded([&]() -> glyd::Result<void> {
    if (pack == nullptr) return glyd::invalid_argument("linear: pack is a null pointer");
    const glyd::LinearArgs args{
        .matrix = matrix, .x = x, .tokens = tokens, .x_stride = x_stride, .bias = bias, .y = y, .y_stride = y_stride};
    return glyd::linear({static_cast<const uint8_t*>(pack), pack_bytes}, args, threads);
  });
}
