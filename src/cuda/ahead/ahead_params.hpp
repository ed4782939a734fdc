// ahead_params.hpp - what a launch of the product that decodes ahead is told.
#pragma once

#include <cuda.h>

#include "ahead/ahead_geometry.hpp"

namespace glyd::cuda {

struct AheadParams : ProductParams {
  CUtensorMap x_map, y_map;
  uint8_t* scratch = nullptr;  // decoded weights; docs/adr/0015-decoding-ahead.md has their order
  AheadPlan plan;
};

}  // namespace glyd::cuda
