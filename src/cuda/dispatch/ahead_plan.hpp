// ahead_plan.hpp - cuts a product of many tokens whose weights are decoded ahead. Pure host code.
#pragma once

#include <optional>

#include "ahead/ahead_geometry.hpp"
#include "dispatch/plan.hpp"

namespace glyd::cuda {

// The plan of a product of one matrix of a `fast` pack by `tokens` rows of x, summed over one split of k; nothing where
// the kernel cannot serve it.
std::optional<AheadPlan> plan_ahead(const PackHeader& header, uint32_t tokens, uint32_t splits,
                                    const DeviceLimits& limits);

// How long it takes, roughly, in clocks of an H200 (measured: docs/adr/0015-decoding-ahead.md).
double clocks_of(const AheadPlan& plan);

}  // namespace glyd::cuda
