// staged_plan.hpp - cuts the staged product (17 to 128 tokens) into tiles, stages and shared memory. Pure host code.
#pragma once

#include <optional>

#include "dispatch/plan.hpp"
#include "staged/staged_params.hpp"

namespace glyd::cuda {

// The plan of a product of one matrix of a `fast` pack by `tokens` rows of x, summed over `splits` splits; nothing
// where the kernel cannot serve it. `tile_strips`: 0 for the plan's own choice; others for measuring.
std::optional<StagedPlan> plan_staged(const PackHeader& header, uint32_t tokens, uint32_t splits,
                                      const DeviceLimits& limits, uint32_t tile_strips = 0);

// How long it takes, roughly, in clocks of an H200: from measurements of 30 November 2026 (docs/gpu.md).
double clocks_of(const StagedPlan& plan);

// Bytes of the sums of the splits, and of the counters of their arrival.
uint64_t partial_sum_bytes(const StagedPlan& plan);
uint64_t arrival_bytes(const StagedPlan& plan);

}  // namespace glyd::cuda
