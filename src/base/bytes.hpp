// bytes.hpp - spans of bytes, little-endian access, checked arithmetic.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace glyd {

static_assert(std::endian::native == std::endian::little,
              "glyd's formats are little-endian and so are the machines it supports");

using ByteSpan = std::span<const uint8_t>;
using MutableByteSpan = std::span<uint8_t>;

// Unaligned loads and stores; compile to one instruction.
template <std::integral T>
inline T load_le(const void* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}
template <std::integral T>
inline void store_le(void* p, T value) {
  std::memcpy(p, &value, sizeof value);
}

// false on overflow; `out` is then unspecified.
template <std::unsigned_integral T>
[[nodiscard]] inline bool checked_mul(T a, T b, T& out) {
  return !__builtin_mul_overflow(a, b, &out);
}
template <std::unsigned_integral T>
[[nodiscard]] inline bool checked_add(T a, T b, T& out) {
  return !__builtin_add_overflow(a, b, &out);
}

template <std::unsigned_integral T>
constexpr T ceil_div(T a, T b) {
  return a / b + (a % b != 0 ? 1 : 0);
}
template <std::unsigned_integral T>
constexpr T round_up(T a, T multiple) {
  return ceil_div(a, multiple) * multiple;
}

// True if all bytes are zero.
bool all_zero(ByteSpan bytes);

}  // namespace glyd
