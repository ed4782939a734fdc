// wide_plan.hpp - cuts a fused product of many tokens into tiles, warpgroups and shared memory. Pure host code.
#pragma once

#include <optional>

#include "dispatch/plan.hpp"
#include "wide/wide_params.hpp"

namespace glyd::cuda {

// How tiles are cut; zeros: the plan's own choice. For measuring choices against each other.
struct WideChoice {
  uint32_t tile_tokens = 0, groups = 0, cluster = 0;
};

// The plan of a product of one matrix of a `fast` pack by `tokens` rows of x, summed over `splits` splits; nothing
// where the kernel cannot serve it.
std::optional<WidePlan> plan_wide(const PackHeader& header, uint32_t tokens, uint32_t splits,
                                  const DeviceLimits& limits, const WideChoice& choice = {});

// How long it takes, roughly, in clocks of an H200: from measurements of 30 November 2026 (docs/gpu.md).
double clocks_of(const WidePlan& plan);

// Bytes of the sums of the splits, and of the counters of their arrival.
uint64_t partial_sum_bytes(const WidePlan& plan);
uint64_t arrival_bytes(const WidePlan& plan);

}  // namespace glyd::cuda
