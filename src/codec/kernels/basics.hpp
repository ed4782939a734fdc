// basics.hpp - small helpers of the kernels. Everything is forced inline: the same function is compiled for several
// instruction sets, and no copy may survive for the linker to choose from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#define GLYD_KERNEL_INLINE static inline __attribute__((always_inline))
#define GLYD_LIKELY(x) __builtin_expect(!!(x), 1)
#define GLYD_UNLIKELY(x) __builtin_expect(!!(x), 0)

namespace glyd::codec {

GLYD_KERNEL_INLINE uint16_t load16(const void* p) {
  uint16_t v;
  std::memcpy(&v, p, 2);
  return v;
}
GLYD_KERNEL_INLINE uint32_t load32(const void* p) {
  uint32_t v;
  std::memcpy(&v, p, 4);
  return v;
}
GLYD_KERNEL_INLINE uint64_t load64(const void* p) {
  uint64_t v;
  std::memcpy(&v, p, 8);
  return v;
}
GLYD_KERNEL_INLINE void store32(void* p, uint32_t v) { std::memcpy(p, &v, 4); }
GLYD_KERNEL_INLINE void store64(void* p, uint64_t v) { std::memcpy(p, &v, 8); }
GLYD_KERNEL_INLINE void copy8(uint8_t* to, const uint8_t* from) { std::memcpy(to, from, 8); }
GLYD_KERNEL_INLINE void copy16(uint8_t* to, const uint8_t* from) {
  using Block = uint8_t __attribute__((vector_size(16)));
  Block block;  // a register: source and target may overlap
  std::memcpy(&block, from, 16);
  std::memcpy(to, &block, 16);
}
GLYD_KERNEL_INLINE int log2_floor(uint32_t v) { return 31 - __builtin_clz(v); }

// Length of the common prefix of a and b, reading no byte of a at or after `a_end`; b lies before a.
GLYD_KERNEL_INLINE size_t match_length(const uint8_t* a, const uint8_t* b, const uint8_t* a_end) {
  const uint8_t* const start = a;
  while (a_end - a >= 8) {
    const uint64_t difference = load64(a) ^ load64(b);
    if (difference != 0) return static_cast<size_t>(a - start) + static_cast<size_t>(__builtin_ctzll(difference) >> 3);
    a += 8;
    b += 8;
  }
  while (a < a_end && *a == *b) {
    ++a;
    ++b;
  }
  return static_cast<size_t>(a - start);
}

}  // namespace glyd::codec
