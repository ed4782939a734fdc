// generic_plan.hpp - cuts a product for the generic kernel. Pure host code: no CUDA calls.
#pragma once

#include <optional>

#include "dispatch/plan.hpp"
#include "generic/generic_params.hpp"

namespace glyd::cuda {

// The plan of a product of one matrix of a `fast` pack by up to kMostGenericTokens tokens, summed over `splits` splits.
std::optional<GenericPlan> plan_generic(const PackHeader& header, uint32_t tokens, uint32_t splits,
                                        const DeviceLimits& limits);

// The plan of a product of every matrix of a stack by its own part of `tokens` tokens, by up to `most_splits` splits.
std::optional<GenericPlan> plan_experts(const PackHeader& header, uint64_t tokens, uint32_t most_splits,
                                        const DeviceLimits& limits);

constexpr uint32_t shared_bytes(const GenericPlan& plan) {
  return plan.team * plan.block_strips * generic_warp_bytes(plan.tiles);
}

}  // namespace glyd::cuda
