// fixed_log2.hpp - logarithms in integers: choices made from them are the same on every machine, which the C library's
// are not.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace glyd::codec {

inline constexpr int kLogFraction = 8;  // bits behind the point

namespace detail {
// Of 1 + i / 1024, rounded down to kLogFraction bits: square, and take a bit whenever the square passes 2.
consteval std::array<uint16_t, 1024> make_log_table() {
  std::array<uint16_t, 1024> table{};
  for (uint64_t i = 0; i < 1024; ++i) {
    uint64_t x = (1024 + i) << 20;  // 30 bits behind the point
    uint32_t log = 0;
    for (int bit = 0; bit < kLogFraction; ++bit) {
      x = static_cast<uint64_t>((static_cast<unsigned __int128>(x) * x) >> 30);
      log <<= 1;
      if (x >= uint64_t{2} << 30) {
        x >>= 1;
        log |= 1;
      }
    }
    table[i] = static_cast<uint16_t>(log);
  }
  return table;
}
inline constexpr auto kLogTable = make_log_table();
}  // namespace detail

// log2(v) * 256, rounded down to the table's steps; v > 0.
constexpr uint32_t fixed_log2(uint32_t v) {
  const int whole = 31 - std::countl_zero(v);
  const uint32_t mantissa = whole >= 10 ? v >> (whole - 10) : v << (10 - whole);
  return static_cast<uint32_t>(whole) << kLogFraction | detail::kLogTable[mantissa - 1024];
}
static_assert(fixed_log2(1) == 0 && fixed_log2(8) == 3 << kLogFraction && fixed_log2(3) == 405);

}  // namespace glyd::codec
