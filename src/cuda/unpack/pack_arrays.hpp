// pack_arrays.hpp - a pack in device memory, as the decoding kernels see it: a header without the host's error types,
// which nvcc cannot read.
#pragma once

#include <cstdint>

#include "format/geometry.hpp"

namespace glyd::cuda {

enum class Coding : uint8_t { kRaw, kFast, kSmall };

// Sizes come from the header, which the host has checked; what the arrays say is not trusted.
struct PackArrays {
  Coding coding = Coding::kRaw;
  Grid grid;
  bool transposed = false;
  uint64_t first_strip = 0;           // decode from here on
  uint32_t base = 0, slot_bytes = 0;  // fast
  uint32_t min_bits = 0;              // small
  const uint8_t* arrays[4] = {};
  uint64_t bytes[4] = {};
};

}  // namespace glyd::cuda
