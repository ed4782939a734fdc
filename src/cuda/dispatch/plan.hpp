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

// How a block's warps and shared memory are used; zeros: the plan's own choice. For measuring choices against each
// other.
struct TeamChoice {
  uint32_t teams = 0, team_warps = 0, depth = 0, x_pieces = 0;
};

// The most tokens of the kernel for few (gemm/), and of any (wide/).
inline constexpr uint32_t kMostNarrowTokens = 64, kMostFusedTokens = 32768;
// From here on decoding the matrix once costs less than to decode it for every tile of tokens (docs/gpu.md).
inline constexpr uint32_t kMostWideTokens = 1535;
// Decoding ahead pays from the first on; above the second a check of exactness takes more memory than it is worth.
inline constexpr uint32_t kLeastAheadTokens = 257, kMostAheadTokens = 8192;

// The tile of the kernel that serves `tokens`: 1, 8, 16, 32 or 64.
uint32_t token_tile(uint32_t tokens);

// The columns that each of cuBLAS's `splits` splits covers, in chunks of 64 (the last may be shorter);
// docs/adr/0010-fused-product.md.
uint32_t split_chunks(uint64_t cols, uint32_t splits);

// Where a `fast` pack's records lie.
RecordGeometry record_geometry(const PackHeader& header);

// The plan of a product of one matrix of a `fast` pack by `tokens` rows of x, summed over `splits` splits; nothing
// where the fused kernel cannot serve it (the remedy is to decode and multiply).
std::optional<LinearPlan> plan_linear(const PackHeader& header, uint32_t tokens, uint32_t splits,
                                      const DeviceLimits& limits, const TeamChoice& choice = {});

// Whether any product of this pack by `tokens` rows can run fused; to be exact, its outputs must be aligned as cuBLAS
// likes.
bool may_fuse(const PackHeader& header, uint64_t tokens);
bool may_fuse_exactly(const PackHeader& header, uint64_t tokens);

// How long 17 to 64 tokens take, roughly, in clocks of an H200: from measurements of 30 November 2026 (docs/gpu.md).
double clocks_of(const LinearPlan& plan);

// Bytes that a plan keeps in the workspace: sums of the splits, and behind them the counters.
uint64_t partial_sum_bytes(const LinearPlan& plan);
uint64_t partial_bytes(const LinearPlan& plan);

}  // namespace glyd::cuda
