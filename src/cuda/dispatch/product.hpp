// product.hpp - products from packs: what runs where, and the check that makes "exact" a fact.
#pragma once

#include "dispatch/context.hpp"

namespace glyd::cuda {

struct LinearCall {
  uint64_t matrix = 0;
  const uint16_t* x = nullptr;
  uint64_t tokens = 0, x_stride = 0;
  const uint16_t* bias = nullptr;
  uint16_t* y = nullptr;
  uint64_t y_stride = 0;
  bool exact = true;   // the bits of cuBLAS on the decoded weights
  bool early = false;  // programmatic dependent launch
  void* workspace = nullptr;
  uint64_t workspace_bytes = 0;
  cudaStream_t stream = nullptr;
  uint32_t multiprocessors = 0;  // that a fused kernel takes at most; 0: all
  // For a decoded matrix, of any content; null: the workspace behind its first kPartialBytes.
  void* scratch = nullptr;
  uint64_t scratch_bytes = 0;
};

enum class RouteKind { kFused, kDecode };
struct RouteInfo {
  RouteKind kind = RouteKind::kDecode;
  bool exact = true;
  uint32_t splits = 0;      // of the fused kernel
  const char* reason = "";  // static text
  uint64_t scratch_bytes = 0;
};

// Bytes of workspace with which every route of this pack at `tokens` runs.
uint64_t linear_workspace_bytes(const DevicePack& pack);
// Of those, what any fused route of up to kMostNarrowTokens needs.
inline constexpr uint64_t fused_workspace_bytes() { return kPartialBytes; }
// Sets up a workspace once, before its first call.
Result<void> initialise_workspace(void* workspace, uint64_t bytes, cudaStream_t stream);

// No allocation, no synchronisation; may be captured into a graph.
Result<void> linear(DevicePack& pack, const LinearCall& call);
// Several in one call; all are checked before the first is launched.
Result<void> linear_group(std::span<DevicePack* const> packs, std::span<const LinearCall> calls);
RouteInfo route_of(DevicePack& pack, uint64_t tokens, bool bias, bool exact);

// The members that a matrix of a `fast` pack decides.
ProductParams weight_params(const DevicePack& pack, const RecordGeometry& geometry, uint64_t matrix);

// Runs one fused product as `route` says.
Result<void> launch_fused(const DevicePack& pack, const Route& route, const LinearCall& call);

// Decodes the pack's first matrix, multiplies several inputs by cuBLAS and by the fused kernel, and compares bits.
// Tries the heuristic's number of splits first, then others. Allocates and synchronises.
Result<Verdict> check_product(DevicePack& pack, uint64_t tokens, bool bias);
// Stores the verdicts of these numbers of tokens, where there is none yet.
Result<void> prepare(DevicePack& pack, std::span<const uint64_t> tokens, bool bias);

}  // namespace glyd::cuda
