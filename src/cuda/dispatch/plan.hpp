// plan.hpp - cuts a fused product into units, teams and shared memory. Pure host code: no CUDA calls.
#pragma once

#include <optional>

#include "format/pack_header.hpp"
#include "gemm/params.hpp"

namespace glyd::cuda {

// What a plan needs to know of a GPU.
struct DeviceLimits {
  uint32_t multiprocessors = 0;
  uint32_t shared_bytes = 0;  // a block may have
};

inline constexpr uint32_t kMostFusedTokens = 64;

// The tile of the kernel that serves `tokens`: 1, 8, 16, 32 or 64.
uint32_t token_tile(uint32_t tokens);

// The columns that each of cuBLAS's `splits` splits covers, in chunks of 64 (the last may be shorter);
// docs/adr/0010-fused-product.md.
uint32_t split_chunks(uint64_t cols, uint32_t splits);

// The plan of a product of one matrix of a `fast` pack by `tokens` rows of x, summed over `splits` splits; nothing
// where the fused kernel cannot serve it (the remedy is to decode and multiply).
std::optional<LinearPlan> plan_linear(const PackHeader& header, uint32_t tokens, uint32_t splits,
                                      const DeviceLimits& limits);

// Bytes of partial sums that a plan keeps in the workspace.
uint64_t partial_bytes(const LinearPlan& plan);

}  // namespace glyd::cuda
