// random_bf16.hpp - matrices to time on, made by all CPUs; the same for a seed everywhere.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/parallel.hpp"

namespace glyd::bench {

inline uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// Normal values times sigma, every 97th column 60 times larger where asked for.
inline std::vector<uint16_t> random_bf16(uint64_t rows, uint64_t cols, float sigma, uint64_t seed, bool outliers) {
  std::vector<uint16_t> values(rows * cols);
  parallel_for(values.size(), 1 << 16, 0, [&](uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) {
      const uint64_t bits = mix((i + 1) * 0x9e3779b97f4a7c15u + seed * 0xd1b54a32d192ed03u);
      const float u = static_cast<float>(bits >> 40 & 0xffffff) / 16777216.0f + 1e-8f,
                  v = static_cast<float>(bits & 0xffffff) / 16777216.0f;
      float value = sigma * std::sqrt(-2 * std::log(u)) * std::cos(6.2831853f * v);
      if (outliers && i % cols % 97 == 5) value *= 60;
      const uint32_t word = std::bit_cast<uint32_t>(value);
      values[i] = static_cast<uint16_t>((word + 0x7fff + (word >> 16 & 1)) >> 16);
    }
  });
  return values;
}

}  // namespace glyd::bench
