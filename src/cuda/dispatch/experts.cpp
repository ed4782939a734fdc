#include "dispatch/experts.hpp"

#include <algorithm>
#include <array>

#include "generic/generic_instances.hpp"

namespace glyd::cuda {
namespace {

using SplitTable = std::array<uint8_t, kMostGenericTokens + 1>;

Result<void> check_call(const Grid& grid, const ExpertsCall& call) {
  if (call.x == nullptr || call.y == nullptr || call.ends == nullptr)
    return invalid_argument("experts: x, y or ends is null");
  if (call.x_stride < grid.cols || call.y_stride < grid.rows) {
    return invalid_argument("experts: a stride is shorter than its row (x_stride {} of {}, y_stride {} of {})",
                            call.x_stride, grid.cols, call.y_stride, grid.rows);
  }
  return Ok{};
}

Result<void> check_shape(const PackHeader& header, const ExpertsCall& call) {
  constexpr const char* kRemedy = "call glyd_cuda_linear for each expert";
  if (!may_fuse(header, 1)) return unsupported("experts: the pack is not one that the fused kernels take; {}", kRemedy);
  if (!x_is_mappable(call.x, call.x_stride))
    return unsupported("experts: rows of x are not aligned to 16 bytes; {}", kRemedy);
  if (call.tokens > INT32_MAX || call.y_stride > UINT32_MAX || header.grid.stack > UINT32_MAX)
    return unsupported("experts: too many tokens or experts; {}", kRemedy);
  return Ok{};
}

// The splits of k by an expert's number of tokens, as linear() would take them.
Result<SplitTable> exact_splits(const DevicePack& pack, const ExpertsCall& call) {
  const Grid& grid = pack.header().grid;
  const uint64_t most = std::min(call.most_tokens == 0 ? call.tokens : call.most_tokens, call.tokens);
  if (most > kMostGenericTokens) {
    return unsupported(
        "experts: exact products have at most {} tokens an expert, and this call {}; set most_tokens or "
        "any_order, or call glyd_cuda_linear for each expert",
        kMostGenericTokens, most);
  }
  if (call.x_stride != grid.cols || call.y_stride != grid.rows || reinterpret_cast<uintptr_t>(call.y) % 16 != 0) {
    return unsupported("experts: exact products need contiguous x and y, y aligned to 16 bytes");
  }
  SplitTable table{};
  for (uint64_t tokens = 1; tokens <= most; ++tokens) {
    Verdict verdict;
    const ProductKey key{grid.rows, grid.cols, tokens, call.bias != nullptr};
    if (!pack.context().find_verdict(key, verdict)) {
      return unsupported("experts: products of {} tokens are not prepared; call glyd_cuda_prepare for 1 to {} tokens",
                         tokens, most);
    }
    if (!verdict.exact || verdict.splits > UINT8_MAX || !may_fuse_exactly(pack.header(), tokens)) {
      return unsupported(
          "experts: products of {} tokens are not exact by the fused kernels; set any_order, or call "
          "glyd_cuda_linear for each expert",
          tokens);
    }
    table[tokens] = static_cast<uint8_t>(verdict.splits);
  }
  std::fill(table.begin() + static_cast<int64_t>(most) + 1, table.end(), table[most]);
  return table;
}

}  // namespace

Result<void> linear_experts(DevicePack& pack, const ExpertsCall& call) {
  const PackHeader& header = pack.header();
  if (call.tokens == 0 || header.grid.rows == 0 || header.grid.stack == 0) return Ok{};
  GLYD_CHECK(check_call(header.grid, call));
  GLYD_CHECK(check_shape(header, call));
  SplitTable splits;
  splits.fill(1);
  if (call.exact) {
    GLYD_TRY(splits, exact_splits(pack, call));
  }
  const uint32_t most = *std::max_element(splits.begin(), splits.end());
  const auto plan = plan_experts(header, call.tokens, most, pack.context().device().limits);
  if (!plan) return unsupported("experts: the shape does not fit the kernel; call glyd_cuda_linear for each expert");
  GenericParams params{weight_params(pack, *plan, 0), call.x_stride, *plan, call.ends};
  params.x = call.x, params.bias = call.bias, params.y = call.y;
  params.y_stride = static_cast<uint32_t>(call.y_stride);
  params.experts = static_cast<uint32_t>(header.grid.stack);
  std::copy(splits.begin(), splits.end(), params.splits_of);
  void* arguments[] = {&params};
  return cuda_check(cudaLaunchKernel(generic_kernel(plan->tiles), dim3(plan->blocks, plan->token_blocks),
                                     dim3(plan->threads()), arguments, shared_bytes(*plan), call.stream),
                    "experts");
}

}  // namespace glyd::cuda
