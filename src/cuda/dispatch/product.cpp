#include "dispatch/product.hpp"

#include <cmath>

#include "ahead/ahead_params.hpp"
#include "format/fast_plan.hpp"
#include "unpack/unpack.hpp"

namespace glyd::cuda {
namespace {

Result<void> check_call(const DevicePack& pack, const LinearCall& call) {
  const Grid& grid = pack.header().grid;
  if (call.matrix >= grid.stack) return invalid_argument("linear: matrix {} of a stack of {}", call.matrix, grid.stack);
  if (call.tokens == 0 || grid.rows == 0) return Ok{};
  if (call.x == nullptr || call.y == nullptr) return invalid_argument("linear: x or y is null");
  if (call.x_stride < grid.cols || call.y_stride < grid.rows) {
    return invalid_argument("linear: a stride is shorter than its row (x_stride {} of {}, y_stride {} of {})",
                            call.x_stride, grid.cols, call.y_stride, grid.rows);
  }
  if (reinterpret_cast<uintptr_t>(call.scratch) % 256 != 0)
    return invalid_argument("linear: scratch: not 256-byte aligned");
  return Ok{};
}

// A matrix of a `raw` pack where it lies, if that is how cuBLAS takes it; null where it must be decoded. Its alignment
// is as good as any to cuBLAS, so the sums are the same.
const uint16_t* stored_matrix(const DevicePack& pack, uint64_t matrix) {
  const PackHeader& header = pack.header();
  const uint64_t at = matrix * header.grid.rows * header.grid.cols * 2;
  if (header.layout != Layout::kRaw || header.transposed || at % kPackAlignment != 0) return nullptr;
  return reinterpret_cast<const uint16_t*>(pack.arrays().arrays[raw::kData] + at);
}

// Decodes the matrix to the workspace behind the partial sums, unless it lies as bf16, then multiplies as torch does.
Result<void> decode_and_multiply(DevicePack& pack, const LinearCall& call) {
  const PackHeader& header = pack.header();
  Context& context = pack.context();
  constexpr uint64_t kMostInt = 0x7fffffff;
  if (call.tokens > kMostInt || call.x_stride > kMostInt || call.y_stride > kMostInt) {
    return unsupported("linear: cuBLAS takes sizes up to 2^31 - 1");
  }
  if (call.workspace_bytes < linear_workspace_bytes(pack)) {
    return make_error(GLYD_ERROR_BUFFER_TOO_SMALL, "linear: decoding needs a workspace of {} bytes, {} were given",
                      linear_workspace_bytes(pack), call.workspace_bytes);
  }
  GLYD_TRY(Cublas* const cublas, context.cublas());
  uint8_t* const cublas_workspace = static_cast<uint8_t*>(call.workspace) + kPartialBytes;
  const uint16_t* weights = stored_matrix(pack, call.matrix);
  if (weights == nullptr) {
    auto* const decoded = reinterpret_cast<uint16_t*>(cublas_workspace + context.cublas_options().workspace_bytes);
    GLYD_CHECK(cuda_check(
        launch_unpack_matrix(pack.arrays(), call.matrix, decoded, context.device().limits.multiprocessors, call.stream),
        "unpack"));
    weights = decoded;
  }
  DenseProduct product{weights,
                       call.x,
                       call.bias,
                       call.y,
                       static_cast<int>(header.grid.rows),
                       static_cast<int>(header.grid.cols),
                       static_cast<int>(call.tokens),
                       static_cast<int64_t>(call.x_stride),
                       static_cast<int64_t>(call.y_stride)};
  return cublas->multiply(product, cublas_workspace, call.stream);
}

// Where the call's decoded matrix goes; null where there is no room for it.
uint8_t* scratch_of(const Route& route, const LinearCall& call) {
  if (call.scratch != nullptr) {
    return call.scratch_bytes >= route.scratch_bytes ? static_cast<uint8_t*>(call.scratch) : nullptr;
  }
  const bool fits = call.workspace_bytes >= kPartialBytes + route.scratch_bytes;
  return fits ? static_cast<uint8_t*>(call.workspace) + kPartialBytes : nullptr;
}

// Whether this call's memory is as the kernel needs it, and, for exact products, as it was when cuBLAS's order was
// found out.
bool fused_can_take(const DevicePack& pack, const Route& route, const LinearCall& call) {
  if (call.workspace_bytes < route.workspace_bytes() || call.y_stride > UINT32_MAX) return false;
  if (route.scratch_bytes > 0 && scratch_of(route, call) == nullptr) return false;
  const bool one = call.tokens == 1;
  const bool aligned_y = call.y_stride % 8 == 0 && reinterpret_cast<uintptr_t>(call.y) % 16 == 0;
  if (std::holds_alternative<AheadPlan>(route.plan) && !aligned_y) return false;
  if (!x_is_mappable(call.x, one ? 0 : call.x_stride)) return false;
  if (!call.exact || one) return true;
  const Grid& grid = pack.header().grid;
  return call.x_stride == grid.cols && call.y_stride == grid.rows && aligned_y;
}

// What a call and its pack tell any of the kernels.
ProductParams product_params(const DevicePack& pack, const RecordGeometry& geometry, const Route& route,
                             const LinearCall& call) {
  uint8_t* const workspace = static_cast<uint8_t*>(call.workspace);
  ProductParams params = weight_params(pack, geometry, call.matrix);
  params.x = call.x;
  params.bias = call.bias;
  params.y = call.y;
  params.partials = reinterpret_cast<float*>(workspace + (route.sums_outside() ? kPartialBytes : 0));
  params.arrivals = reinterpret_cast<uint32_t*>(workspace + (route.sums_outside() ? 0 : route.sum_bytes));
  params.y_stride = static_cast<uint32_t>(call.y_stride);
  params.early = call.early;
  return params;
}

Result<void> launch_generic(const DevicePack& pack, const Route& route, const GenericPlan& plan,
                            const LinearCall& call) {
  GenericParams params{product_params(pack, plan, route, call), call.x_stride, plan};
  void* arguments[] = {&params};
  return cuda_check(cudaLaunchKernel(route.kernel, dim3(plan.blocks, plan.token_blocks), dim3(plan.threads()),
                                     arguments, shared_bytes(plan), call.stream),
                    "linear");
}

struct LaunchSize {
  uint32_t blocks, threads, shared_bytes, cluster = 1;
};

Result<void> launch(const Route& route, const LinearCall& call, const LaunchSize& size, void* params,
                    CUtensorMap& map) {
  cudaLaunchAttribute attributes[2] = {};
  uint32_t count = 0;
  if (call.early) {
    attributes[count].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[count++].val.programmaticStreamSerializationAllowed = 1;
  }
  if (size.cluster > 1) {
    attributes[count].id = cudaLaunchAttributeClusterDimension;
    attributes[count++].val.clusterDim = {size.cluster, 1, 1};
  }
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(size.blocks);
  config.blockDim = dim3(size.threads);
  config.dynamicSmemBytes = size.shared_bytes;
  config.stream = call.stream;
  config.attrs = attributes;
  config.numAttrs = count;
  void* arguments[] = {params, &map};
  return cuda_check(cudaLaunchKernelExC(&config, route.kernel, arguments), "linear");
}

}  // namespace

ProductParams weight_params(const DevicePack& pack, const RecordGeometry& geometry, uint64_t matrix) {
  const PackArrays& arrays = pack.arrays();
  const uint64_t first = matrix * arrays.grid.strips_a_matrix();
  ProductParams params;
  params.planes = arrays.arrays[fast::kPlanes] + first * geometry.strip_bytes;
  params.slots = arrays.slot_bytes == 0 ? pack.context().zeros()
                                        : arrays.arrays[fast::kPatches] + first * geometry.strip_slot_bytes;
  params.overflow = reinterpret_cast<const uint32_t*>(arrays.arrays[fast::kOverflow]);
  params.overflow_words = static_cast<uint32_t>(std::min<uint64_t>(arrays.bytes[fast::kOverflow] / 4, 0xffffffffu));
  params.scale = std::ldexp(1.0f, static_cast<int>(arrays.base) - 120);
  return params;
}

uint64_t linear_workspace_bytes(const DevicePack& pack) {
  const Grid& grid = pack.header().grid;
  const uint64_t matrix_bytes = grid.rows * grid.cols * 2;
  const bool stored = stored_matrix(pack, 0) != nullptr && (grid.stack == 1 || matrix_bytes % kPackAlignment == 0);
  return kPartialBytes + pack.context().cublas_options().workspace_bytes +
         (stored ? 0 : round_up(matrix_bytes, uint64_t{256}));
}

Result<void> initialise_workspace(void* workspace, uint64_t bytes, cudaStream_t stream) {
  if (reinterpret_cast<uintptr_t>(workspace) % 256 != 0) return invalid_argument("workspace: not 256-byte aligned");
  return cuda_check(cudaMemsetAsync(workspace, 0xff, std::min(bytes, kPartialBytes), stream), "cudaMemsetAsync");
}

Result<void> launch_fused(const DevicePack& pack, const Route& route, const LinearCall& call) {
  CUtensorMap map{};
  if (const auto* plan = std::get_if<LinearPlan>(&route.plan)) {
    LinearParams params{product_params(pack, *plan, route, call), *plan};
    if (call.tokens > 1) GLYD_CHECK(map_x(*plan, call.x, call.x_stride, map));
    return launch(route, call, {plan->blocks, (plan->workers() + 1) * 32, plan->shared_bytes}, &params, map);
  }
  if (const auto* plan = std::get_if<StagedPlan>(&route.plan)) {
    StagedParams params{product_params(pack, *plan, route, call), *plan};
    GLYD_CHECK(map_x(*plan, call.x, call.x_stride, map));
    return launch(route, call, {plan->blocks, plan->threads(), plan->shared_bytes}, &params, map);
  }
  if (const auto* plan = std::get_if<AheadPlan>(&route.plan)) {
    AheadParams params{product_params(pack, *plan, route, call), {}, {}, scratch_of(route, call), *plan};
    GLYD_CHECK(map_x(*plan, call.x, call.x_stride, params.x_map));
    GLYD_CHECK(map_y(*plan, call.y, call.y_stride, params.y_map));
    return launch(route, call, {plan->blocks(), kAheadThreads, AheadTraits::kSharedBytes, 2}, &params, map);
  }
  if (const auto* plan = std::get_if<GenericPlan>(&route.plan)) return launch_generic(pack, route, *plan, call);
  const WidePlan& plan = std::get<WidePlan>(route.plan);
  WideParams params{product_params(pack, plan, route, call), plan};
  GLYD_CHECK(map_x(plan, call.x, call.x_stride, map));
  return launch(route, call, {plan.blocks(), plan.threads(), plan.shared_bytes, plan.cluster}, &params, map);
}

Result<void> linear_group(std::span<DevicePack* const> packs, std::span<const LinearCall> calls) {
  for (size_t i = 0; i < packs.size(); ++i) GLYD_CHECK(check_call(*packs[i], calls[i]));
  for (size_t i = 0; i < packs.size(); ++i) GLYD_CHECK(linear(*packs[i], calls[i]));
  return Ok{};
}

Result<void> linear(DevicePack& pack, const LinearCall& call) {
  GLYD_CHECK(check_call(pack, call));
  const Grid& grid = pack.header().grid;
  if (call.tokens == 0 || grid.rows == 0) return Ok{};
  if (grid.cols == 0) return unsupported("linear: a matrix without columns");
  const Route* route = call.exact ? pack.exact_route(call.tokens, call.bias != nullptr) : pack.free_route(call.tokens);
  if (route != nullptr && call.multiprocessors != 0) {
    if (const Route* part = pack.route_of_splits(call.tokens, route->splits(), call.multiprocessors)) route = part;
  }
  if (route != nullptr && fused_can_take(pack, *route, call)) return launch_fused(pack, *route, call);
  return decode_and_multiply(pack, call);
}

RouteInfo route_of(DevicePack& pack, uint64_t tokens, bool bias, bool exact) {
  const PackHeader& header = pack.header();
  if (const Route* route = exact ? pack.exact_route(tokens, bias) : pack.free_route(tokens)) {
    const bool proven = exact || pack.exact_route(tokens, bias) == route;
    const char* const reason = proven ? "fused: checked against cuBLAS here" : "fused: order free";
    return {RouteKind::kFused, proven, route->splits(),
            fast::has_heavy_tails(header)
                ? "fused, in spite of heavy tails: slower than bf16 at few tokens (layout auto packs such a tensor raw)"
                : reason,
            route->scratch_bytes};
  }
  const auto decode = [](const char* reason) { return RouteInfo{RouteKind::kDecode, true, 0, reason}; };
  if (stored_matrix(pack, 0) != nullptr) return decode("cuBLAS on the pack's own bf16");
  if (header.layout != Layout::kFast) return decode("decode and cuBLAS: the layout has no fused kernel");
  if (!header.fusible)
    return decode("decode and cuBLAS: exponents of this tensor leave bf16's range when shifted, or it has subnormals");
  if (tokens > kMostFusedTokens) return decode("decode and cuBLAS: more tokens than the fused kernels take");
  if (!pack.may_route(tokens)) return decode("decode and cuBLAS: a check at so many tokens would take too much memory");
  if (header.grid.cols % 8 != 0) return decode("decode and cuBLAS: columns do not divide by 8");
  if (exact && header.grid.rows % 8 != 0)
    return decode("decode and cuBLAS: rows do not divide by 8, so cuBLAS's order is another");
  if (exact && !may_fuse_exactly(header, tokens))
    return decode(
        "decode and cuBLAS: exponents of this tensor are so far from 1 that shifted sums may leave fp32's range");
  Verdict verdict;
  if (exact && !pack.context().find_verdict({header.grid.rows, header.grid.cols, tokens, bias}, verdict)) {
    return decode("decode and cuBLAS: not prepared, so not known to be exact");
  }
  if (exact && !verdict.exact) return decode("decode and cuBLAS: the fused sums differ from cuBLAS's");
  return decode("decode and cuBLAS: the fused kernels do not fit the shape, or would take longer");
}

}  // namespace glyd::cuda
