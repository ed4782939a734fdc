// matrix_source.hpp - matrices to measure with: Gaussian values as bf16, whose exponents are spread like those of
// trained weights.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "weights/weights.hpp"

namespace glyd::bench {

std::vector<uint16_t> gaussian_bf16(uint64_t count, uint64_t seed, double scale);

// Exits with the error's message: a benchmark has no way on.
AlignedBuffer pack_or_exit(std::span<const uint16_t> values, const Grid& grid, Layout layout, int threads = 0,
                           AlignedBuffer old = {});
void check_or_exit(const Result<void>& result);

}  // namespace glyd::bench
