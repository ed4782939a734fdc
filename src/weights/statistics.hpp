// statistics.hpp - counting exponents: the parts of exponent_counts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace glyd {

using ExponentCounts = std::array<uint64_t, 256>;
// Adds the values' exponents.
void add_exponents(std::span<const uint16_t> values, ExponentCounts& counts);

inline constexpr size_t kExponentBand = 16;

// Adds the exponents of the first values to counts[256], whatever they are, fastest where they lie in band .. band + 15
// (band at most 240); returns how many values: all but less than a vector. 0 where the build has no AVX2.
size_t count_exponents_avx2(std::span<const uint16_t> values, uint8_t band, uint64_t* counts);

}  // namespace glyd
