// fragment.hpp - strips, steps and lanes: the order of mma.m16n8k16's A operand. Spec: docs/spec/weights.md 1.1.
#pragma once

#include <cstdint>

#include "format/host_device.hpp"

namespace glyd {

inline constexpr uint32_t kStripRows = 16;
inline constexpr uint32_t kStepCols = 16;
inline constexpr uint32_t kLanes = 32;
inline constexpr uint32_t kLaneWeights = 8;                      // of one lane in one step
inline constexpr uint32_t kStepWeights = kLanes * kLaneWeights;  // 256
static_assert(kStepWeights == kStripRows * kStepCols);

// Where weight j (0-7) of a lane stands in its strip and step.
GLYD_HD constexpr uint32_t fragment_row(uint32_t lane, uint32_t j) { return lane / 4 + 8 * ((j / 2) % 2); }
GLYD_HD constexpr uint32_t fragment_col(uint32_t lane, uint32_t j) { return 2 * (lane % 4) + 8 * (j / 4) + j % 2; }

// The inverse: which lane and which j hold (row, col) of a step.
GLYD_HD constexpr uint32_t fragment_lane(uint32_t row, uint32_t col) { return 4 * (row % 8) + (col % 8) / 2; }
GLYD_HD constexpr uint32_t fragment_index(uint32_t row, uint32_t col) {
  return 4 * (col / 8) + 2 * (row / 8) + col % 2;
}

static_assert(fragment_row(5, 2) == 9 && fragment_col(5, 5) == 11);
static_assert(fragment_lane(9, 11) == 5 && fragment_index(9, 11) == 7);

}  // namespace glyd
