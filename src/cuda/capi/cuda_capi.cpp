// cuda_capi.cpp - glyd/cuda.h: check, call, translate.
#include <cstring>

#include "base/status_text.hpp"
#include "capi/handles.hpp"
#include "dispatch/product.hpp"
#include "unpack/unpack.hpp"

namespace {

using namespace glyd;  // NOLINT: the boundary speaks the library's own names throughout

using capi::device_of;
using capi::guarded;
using capi::need;
using capi::read_options;
using capi::read_struct;
using capi::stream_of;

uint32_t multiprocessors(const glyd_cuda_pack* pack) { return pack->pack->context().device().limits.multiprocessors; }

}  // namespace

extern "C" {

uint32_t glyd_cuda_abi_version(void) noexcept { return GLYD_CUDA_ABI_VERSION; }
const char* glyd_cuda_last_error(void) noexcept { return capi::last_error(); }
const char* glyd_cuda_status_text(glyd_status status) noexcept { return status_text(status); }

glyd_status glyd_cuda_create(const glyd_cuda_options* options, glyd_cuda_context** context) noexcept {
  return guarded([&]() -> Result<void> {
    GLYD_CHECK(need(context != nullptr, "context"));
    GLYD_TRY(const glyd_cuda_options given, read_options(options));
    cuda::ContextOptions chosen;
    chosen.device = given.device;
    chosen.cublas.reduced_precision = given.full_precision_reduction == 0;
    if (given.cublas_workspace_bytes != 0)
      chosen.cublas.workspace_bytes = round_up(given.cublas_workspace_bytes, uint64_t{256});
    if (given.verdict_file != nullptr) chosen.verdict_file = given.verdict_file;
    GLYD_TRY(auto created, cuda::Context::create(chosen));
    *context = new glyd_cuda_context{std::move(created)};
    return Ok{};
  });
}

const char* glyd_cuda_verdict_file_text(glyd_cuda_context* context) noexcept {
  static thread_local std::string text;
  guarded([&]() -> Result<void> {
    text.clear();
    GLYD_CHECK(need(context != nullptr, "context"));
    text = context->context->verdicts_text();
    return Ok{};
  });
  return text.c_str();
}

void glyd_cuda_destroy(glyd_cuda_context* context) noexcept { delete context; }

glyd_status glyd_cuda_open(glyd_cuda_context* context, const void* header, uint64_t pack_bytes, const void* device_pack,
                           glyd_cuda_pack** pack) noexcept {
  return guarded([&]() -> Result<void> {
    GLYD_CHECK(need(context != nullptr && header != nullptr && device_pack != nullptr && pack != nullptr, "open"));
    GLYD_TRY(auto opened,
             cuda::DevicePack::open(*context->context, {static_cast<const uint8_t*>(header), kPackHeaderBytes},
                                    pack_bytes, device_pack));
    *pack = new glyd_cuda_pack{std::move(opened)};
    return Ok{};
  });
}

void glyd_cuda_close(glyd_cuda_pack* pack) noexcept { delete pack; }

glyd_status glyd_cuda_unpack(glyd_cuda_pack* pack, uint16_t* bf16, void* stream) noexcept {
  return guarded([&]() -> Result<void> {
    GLYD_CHECK(need(pack != nullptr && (bf16 != nullptr || pack->pack->header().values() == 0), "unpack"));
    const cuda::ScopedDevice scope(device_of(pack));
    return cuda::cuda_check(cuda::launch_unpack(pack->pack->arrays(), bf16, multiprocessors(pack), stream_of(stream)),
                            "unpack");
  });
}

glyd_status glyd_cuda_unpack_matrix(glyd_cuda_pack* pack, uint64_t matrix, uint16_t* bf16, void* stream) noexcept {
  return guarded([&]() -> Result<void> {
    GLYD_CHECK(need(pack != nullptr, "pack"));
    const Grid& grid = pack->pack->header().grid;
    if (matrix >= grid.stack) return invalid_argument("unpack_matrix: matrix {} of a stack of {}", matrix, grid.stack);
    if (grid.rows * grid.cols == 0) return Ok{};
    GLYD_CHECK(need(bf16 != nullptr, "bf16"));
    const cuda::ScopedDevice scope(device_of(pack));
    return cuda::cuda_check(
        cuda::launch_unpack_matrix(pack->pack->arrays(), matrix, bf16, multiprocessors(pack), stream_of(stream)),
        "unpack_matrix");
  });
}

glyd_status glyd_cuda_rows(glyd_cuda_pack* pack, const int64_t* indices, uint64_t count, uint16_t* out,
                           void* stream) noexcept {
  return guarded([&]() -> Result<void> {
    GLYD_CHECK(need(pack != nullptr && (count == 0 || (indices != nullptr && out != nullptr)), "rows"));
    const cuda::ScopedDevice scope(device_of(pack));
    return cuda::cuda_check(
        cuda::launch_rows(pack->pack->arrays(), indices, count, out, multiprocessors(pack), stream_of(stream)), "rows");
  });
}

glyd_status glyd_cuda_linear_workspace(glyd_cuda_pack* pack, uint64_t* bytes, uint64_t* fused_bytes) noexcept {
  return guarded([&]() -> Result<void> {
    GLYD_CHECK(need(pack != nullptr, "pack"));
    if (bytes != nullptr) *bytes = cuda::linear_workspace_bytes(*pack->pack);
    if (fused_bytes != nullptr) *fused_bytes = cuda::fused_workspace_bytes();
    return Ok{};
  });
}

glyd_status glyd_cuda_init_workspace(glyd_cuda_context* context, void* workspace, uint64_t bytes,
                                     void* stream) noexcept {
  return guarded([&]() -> Result<void> {
    GLYD_CHECK(need(context != nullptr && (workspace != nullptr || bytes == 0), "workspace"));
    const cuda::ScopedDevice scope(context->context->device().ordinal);
    return cuda::initialise_workspace(workspace, bytes, stream_of(stream));
  });
}

glyd_status glyd_cuda_prepare(glyd_cuda_pack* pack, const uint64_t* tokens, uint64_t count,
                              uint32_t with_bias) noexcept {
  return guarded([&]() -> Result<void> {
    GLYD_CHECK(need(pack != nullptr && (tokens != nullptr || count == 0), "prepare"));
    return cuda::prepare(*pack->pack, {tokens, count}, with_bias != 0);
  });
}

glyd_status glyd_cuda_route(glyd_cuda_pack* pack, uint64_t tokens, uint32_t with_bias, uint32_t any_order,
                            glyd_cuda_route_info* info) noexcept {
  return guarded([&]() -> Result<void> {
    GLYD_CHECK(need(pack != nullptr, "pack"));
    GLYD_TRY(glyd_cuda_route_info answer, read_struct(info, "info"));
    const cuda::RouteInfo route = cuda::route_of(*pack->pack, tokens, with_bias != 0, any_order == 0);
    const size_t size = std::min(info->struct_size, sizeof answer);
    answer.struct_size = info->struct_size;
    answer.kind = route.kind == cuda::RouteKind::kFused ? GLYD_CUDA_ROUTE_FUSED : GLYD_CUDA_ROUTE_DECODE;
    answer.exact = route.exact;
    answer.splits = route.splits;
    answer.reason = route.reason;
    answer.scratch_bytes = route.scratch_bytes;
    std::memcpy(info, &answer, size);
    return Ok{};
  });
}

glyd_status glyd_cuda_self_check(glyd_cuda_pack* pack, uint64_t tokens, uint32_t with_bias,
                                 uint64_t* differing) noexcept {
  return guarded([&]() -> Result<void> {
    GLYD_CHECK(need(pack != nullptr && differing != nullptr, "self_check"));
    GLYD_TRY(const cuda::Verdict verdict, cuda::check_product(*pack->pack, tokens, with_bias != 0));
    *differing = verdict.differing;
    return Ok{};
  });
}

}  // extern "C"
