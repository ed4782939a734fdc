// pack_capi.cpp - glyd/cuda.h: packing a tensor that lies on the GPU.
#include <cstring>
#include <vector>

#include "capi/handles.hpp"
#include "format/fast_plan.hpp"
#include "pack/pack_fast.hpp"
#include "weights/weights.hpp"

namespace {

using namespace glyd;  // NOLINT: the boundary speaks the library's own names throughout

using capi::guarded;
using capi::need;
using capi::read_struct;

Result<Grid> read_shape(const glyd_shape& shape) {
  if (shape.transposed > 1 || shape.reserved != 0) {
    return invalid_argument("shape: transposed is {} (0 or 1), reserved is {} (0)", shape.transposed, shape.reserved);
  }
  const Grid grid{shape.stack, shape.rows, shape.cols};
  GLYD_CHECK(check_shape(grid));
  return grid;
}

Result<Layout> read_layout(glyd_layout layout) {
  switch (layout) {
    case GLYD_LAYOUT_RAW:
      return Layout::kRaw;
    case GLYD_LAYOUT_AUTO:  // and maybe raw, once the sizes are known
    case GLYD_LAYOUT_FAST:
      return Layout::kFast;
    case GLYD_LAYOUT_SMALL:
      return Layout::kSmall;
  }
  return invalid_argument("unknown layout {}", static_cast<int>(layout));
}

// What the GPU has no encoder for: the values go to the host, the CPU packer's pack comes back.
Result<PackHeader> pack_on_host(const cuda::PackCall& call, Layout layout) {
  std::vector<uint16_t> values(call.grid.stack * call.grid.rows * call.grid.cols);
  GLYD_CHECK(cuda::cuda_check(
      cudaMemcpyAsync(values.data(), call.values, values.size() * 2, cudaMemcpyDeviceToHost, call.stream),
      "cudaMemcpyAsync"));
  GLYD_CHECK(cuda::cuda_check(cudaStreamSynchronize(call.stream), "pack"));
  GLYD_TRY(const AlignedBuffer packed, pack_tensor(values, call.grid, call.transposed, layout, 0));
  if (packed.size() > call.pack_capacity) {
    return make_error(GLYD_ERROR_BUFFER_TOO_SMALL, "pack: it has {} bytes, {} were given", packed.size(),
                      call.pack_capacity);
  }
  GLYD_CHECK(
      cuda::cuda_check(cudaMemcpyAsync(call.pack, packed.data(), packed.size(), cudaMemcpyHostToDevice, call.stream),
                       "cudaMemcpyAsync"));
  GLYD_CHECK(cuda::cuda_check(cudaStreamSynchronize(call.stream), "pack"));
  return open_pack(packed.bytes());
}

Result<PackHeader> pack_as(cuda::Context& context, const cuda::PackCall& call, Layout layout, bool chosen) {
  if (layout == Layout::kRaw || call.grid.stack * call.grid.rows * call.grid.cols == 0) return cuda::pack_raw(call);
  if (layout == Layout::kFast) {
    GLYD_TRY(const auto header, cuda::pack_fast(context, call));
    if (header) return chosen && fast::has_heavy_tails(*header) ? cuda::pack_raw(call) : *header;
  }
  return pack_on_host(call, layout);
}

}  // namespace

extern "C" {

glyd_status glyd_cuda_pack_bound(const glyd_shape* shape, uint64_t* pack_bytes, uint64_t* workspace_bytes) noexcept {
  return guarded([&]() -> Result<void> {
    GLYD_CHECK(need(shape != nullptr, "shape"));
    GLYD_TRY(const Grid grid, read_shape(*shape));
    if (pack_bytes != nullptr) *pack_bytes = pack_bound(grid);
    if (workspace_bytes != nullptr) *workspace_bytes = cuda::pack_scratch_bytes(grid);
    return Ok{};
  });
}

glyd_status glyd_cuda_pack_tensor(glyd_cuda_context* context, const glyd_cuda_pack_call* call, void* header,
                                  uint64_t* pack_bytes) noexcept {
  return guarded([&]() -> Result<void> {
    GLYD_CHECK(need(context != nullptr, "context"));
    GLYD_CHECK(need(header != nullptr, "header"));
    GLYD_CHECK(need(pack_bytes != nullptr, "pack_bytes"));
    GLYD_TRY(const glyd_cuda_pack_call given, read_struct(call, "call"));
    GLYD_TRY(const Grid grid, read_shape(given.shape));
    GLYD_TRY(const Layout layout, read_layout(given.layout));
    GLYD_CHECK(need(given.bf16 != nullptr || grid.stack * grid.rows * grid.cols == 0, "bf16"));
    GLYD_CHECK(need(given.pack != nullptr, "pack"));
    const cuda::ScopedDevice scope(context->context->device().ordinal);
    const cuda::PackCall wanted{given.bf16,
                                grid,
                                given.shape.transposed != 0,
                                static_cast<uint8_t*>(given.pack),
                                given.pack_capacity,
                                given.workspace,
                                given.workspace == nullptr ? 0 : given.workspace_bytes,
                                capi::stream_of(given.stream)};
    GLYD_TRY(const PackHeader written, pack_as(*context->context, wanted, layout, given.layout == GLYD_LAYOUT_AUTO));
    write_pack_header(written, static_cast<uint8_t*>(header));
    *pack_bytes = written.pack_bytes;
    return Ok{};
  });
}

}  // extern "C"
