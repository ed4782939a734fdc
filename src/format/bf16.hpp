// bf16.hpp - the parts of a bf16 bit pattern.
#pragma once

#include <cstdint>

#include "format/host_device.hpp"

namespace glyd {

GLYD_HD constexpr uint32_t bf16_exponent(uint16_t value) { return (value >> 7) & 0xffu; }
GLYD_HD constexpr uint32_t bf16_mantissa(uint16_t value) { return value & 0x7fu; }
GLYD_HD constexpr uint32_t bf16_sign(uint16_t value) { return value >> 15; }
GLYD_HD constexpr uint16_t bf16_join(uint32_t sign, uint32_t exponent, uint32_t mantissa) {
  return static_cast<uint16_t>(sign << 15 | exponent << 7 | mantissa);
}
static_assert(bf16_join(0, 127, 0) == 0x3f80);  // 1.0

}  // namespace glyd
