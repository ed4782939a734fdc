// host_device.cpp - a stand-in for libglyd_cuda in tests without a GPU: glyd/cuda.h over libglyd, device memory being
// host memory. It keeps the real library's contract where the Python package could break it: a fused product needs a
// verdict (or a free order), an initialised workspace and contiguous rows; everything else asks for a larger workspace.
#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "glyd/cuda.h"

namespace {

constexpr uint64_t kFusedBytes = 1 << 16, kMostFusedTokens = 64, kHeaderBytes = 128;
constexpr uint64_t kAheadTokens = 258;  // fused too, given room for the decoded matrix
thread_local std::string last_error;

glyd_status fail(glyd_status status, const char* text) {
  last_error = text;
  return status;
}

uint64_t calls_[5];  // fused, decoded, unpack, rows, experts
int verdict_;        // of glyd_cuda_prepare

}  // namespace

struct glyd_cuda_context {
  std::map<std::array<uint64_t, 4>, bool> verdicts;
};
struct glyd_cuda_pack {
  glyd_cuda_context* context;
  glyd_pack_info info;
  const void* data;
};

namespace {

bool can_fuse(const glyd_cuda_pack& pack, uint64_t tokens) {
  return pack.info.layout == GLYD_LAYOUT_FAST && pack.info.fusible != 0 &&
         (tokens <= kMostFusedTokens || tokens == kAheadTokens) && pack.info.shape.cols % 8 == 0;
}
std::array<uint64_t, 4> key_of(const glyd_cuda_pack& pack, uint64_t tokens, bool bias) {
  return {pack.info.shape.rows, pack.info.shape.cols, tokens, bias};
}
bool is_fused(const glyd_cuda_pack& pack, uint64_t tokens, bool bias, bool any_order) {
  const auto found = pack.context->verdicts.find(key_of(pack, tokens, bias));
  return can_fuse(pack, tokens) && (any_order || (found != pack.context->verdicts.end() && found->second));
}
uint64_t scratch_bytes(const glyd_cuda_pack& pack, uint64_t tokens) {
  return tokens == kAheadTokens ? 2 * pack.info.shape.rows * pack.info.shape.cols : 0;
}
uint64_t whole_bytes(const glyd_cuda_pack& pack) {
  return kFusedBytes + 2 * pack.info.shape.rows * pack.info.shape.cols;
}

}  // namespace

extern "C" {

uint32_t glyd_cuda_abi_version(void) noexcept { return GLYD_CUDA_ABI_VERSION; }
const char* glyd_cuda_last_error(void) noexcept { return last_error.c_str(); }
const char* glyd_cuda_status_text(glyd_status status) noexcept { return glyd_status_text(status); }

// Tests: how often something was called: 0 fused, 1 decoded, 2 unpack, 3 rows, 4 experts.
GLYD_API uint64_t host_device_calls(int kind) noexcept { return calls_[kind]; }

// Tests: whether glyd_cuda_prepare finds the fused products exact. They are libglyd's own sums, so they give torch's
// bits only where every sum is exact in fp32.
GLYD_API void host_device_agree(int verdict) noexcept { verdict_ = verdict; }

glyd_status glyd_cuda_create(const glyd_cuda_options* options, glyd_cuda_context** context) noexcept {
  if (options->device != 0) return fail(GLYD_ERROR_UNSUPPORTED, "GPU 1 has compute capability 7.5");
  *context = new glyd_cuda_context;
  return GLYD_OK;
}
const char* glyd_cuda_verdict_file_text(glyd_cuda_context*) noexcept { return ""; }
void glyd_cuda_destroy(glyd_cuda_context* context) noexcept { delete context; }

glyd_status glyd_cuda_open(glyd_cuda_context* context, const void* header, uint64_t pack_bytes, const void* device_pack,
                           glyd_cuda_pack** pack) noexcept {
  auto opened = new glyd_cuda_pack{context, {}, device_pack};
  opened->info.struct_size = sizeof opened->info;
  const glyd_status status = glyd_pack_read_info(header, pack_bytes, &opened->info);
  if (status == GLYD_OK && std::memcmp(header, device_pack, kHeaderBytes) != 0) {
    delete opened;
    return fail(GLYD_ERROR_INTERNAL, "the header is not this pack's");
  }
  if (status != GLYD_OK) {
    last_error = glyd_last_error();
    delete opened;
    return status;
  }
  *pack = opened;
  return GLYD_OK;
}
void glyd_cuda_close(glyd_cuda_pack* pack) noexcept { delete pack; }

glyd_status glyd_cuda_pack_bound(const glyd_shape* shape, uint64_t* pack_bytes, uint64_t* workspace_bytes) noexcept {
  *workspace_bytes = 0;
  return glyd_pack_bound(shape, pack_bytes);
}

glyd_status glyd_cuda_pack_tensor(glyd_cuda_context*, const glyd_cuda_pack_call* call, void* header,
                                  uint64_t* pack_bytes) noexcept {
  uint64_t bound = 0, size = 0;
  glyd_pack_bound(&call->shape, &bound);
  std::vector<uint8_t> room(bound);
  const glyd_status status = glyd_pack(call->bf16, &call->shape, call->layout, 1, room.data(), bound, &size);
  if (status != GLYD_OK) return fail(status, glyd_last_error());
  if (size > call->pack_capacity) return fail(GLYD_ERROR_BUFFER_TOO_SMALL, "pack: the room is too small");
  std::memcpy(call->pack, room.data(), size);
  std::memcpy(header, room.data(), kHeaderBytes);
  *pack_bytes = size;
  return GLYD_OK;
}

glyd_status glyd_cuda_unpack(glyd_cuda_pack* pack, uint16_t* bf16, void*) noexcept {
  ++calls_[2];
  const glyd_shape& shape = pack->info.shape;
  return glyd_decode(pack->data, pack->info.pack_bytes, 1, bf16, shape.stack * shape.rows * shape.cols);
}

glyd_status glyd_cuda_unpack_matrix(glyd_cuda_pack* pack, uint64_t matrix, uint16_t* bf16, void*) noexcept {
  ++calls_[2];
  const glyd_shape& shape = pack->info.shape;
  return glyd_decode_block(pack->data, pack->info.pack_bytes, matrix, 0, shape.rows, 0, shape.cols, 1, bf16,
                           shape.cols);
}

glyd_status glyd_cuda_rows(glyd_cuda_pack* pack, const int64_t* indices, uint64_t count, uint16_t* out,
                           void*) noexcept {
  ++calls_[3];
  const glyd_shape& shape = pack->info.shape;
  for (uint64_t i = 0; i < count; ++i) {
    uint16_t* const row = out + i * shape.cols;
    if (indices[i] < 0 || static_cast<uint64_t>(indices[i]) >= shape.rows) {
      std::fill(row, row + shape.cols, uint16_t{0});
    } else {
      glyd_decode_rows(pack->data, pack->info.pack_bytes, indices + i, 1, 1, row);
    }
  }
  return GLYD_OK;
}

glyd_status glyd_cuda_linear_workspace(glyd_cuda_pack* pack, uint64_t* bytes, uint64_t* fused_bytes) noexcept {
  *bytes = whole_bytes(*pack);
  *fused_bytes = kFusedBytes;
  return GLYD_OK;
}

glyd_status glyd_cuda_init_workspace(glyd_cuda_context*, void* workspace, uint64_t bytes, void*) noexcept {
  if (reinterpret_cast<uintptr_t>(workspace) % 256 != 0) return fail(GLYD_ERROR_INVALID_ARGUMENT, "not aligned");
  std::memset(workspace, 0xff, std::min(bytes, kFusedBytes));
  return GLYD_OK;
}

glyd_status glyd_cuda_linear(glyd_cuda_pack* pack, const glyd_cuda_linear_call* call) noexcept {
  const glyd_shape& shape = pack->info.shape;
  if (call->struct_size != sizeof *call) return fail(GLYD_ERROR_INVALID_ARGUMENT, "call: wrong size");
  if (call->matrix >= shape.stack) return fail(GLYD_ERROR_INVALID_ARGUMENT, "matrix outside the stack");
  const bool contiguous = call->x_stride == shape.cols && call->y_stride == shape.rows;
  if (is_fused(*pack, call->tokens, call->bias != nullptr, call->any_order != 0) &&
      (contiguous || call->any_order != 0) && call->scratch_bytes >= scratch_bytes(*pack, call->tokens)) {
    if (call->scratch_bytes > scratch_bytes(*pack, call->tokens)) return fail(GLYD_ERROR_INTERNAL, "needless scratch");
    const auto* words = static_cast<const uint8_t*>(call->workspace);
    if (call->workspace_bytes < kFusedBytes || std::count(words, words + kFusedBytes, 0xff) != kFusedBytes) {
      return fail(GLYD_ERROR_INTERNAL, "the workspace was not initialised");
    }
    ++calls_[0];
    return glyd_linear(pack->data, pack->info.pack_bytes, call->matrix, call->x, call->tokens, call->x_stride,
                       call->bias, call->y, call->y_stride, 1);
  }
  if (call->workspace_bytes < whole_bytes(*pack)) return fail(GLYD_ERROR_BUFFER_TOO_SMALL, "decoding needs more");
  ++calls_[1];
  return glyd_linear(pack->data, pack->info.pack_bytes, call->matrix, call->x, call->tokens, call->x_stride, call->bias,
                     call->y, call->y_stride, 1);
}

glyd_status glyd_cuda_linear_group(glyd_cuda_pack* const* packs, const glyd_cuda_linear_call* calls,
                                   uint64_t count) noexcept {
  for (uint64_t i = 0; i < count; ++i) {
    if (const glyd_status status = glyd_cuda_linear(packs[i], calls + i); status != GLYD_OK) return status;
  }
  return GLYD_OK;
}

glyd_status glyd_cuda_linear_experts(glyd_cuda_pack* pack, const glyd_cuda_experts_call* call) noexcept {
  const glyd_shape& shape = pack->info.shape;
  if (!can_fuse(*pack, 1) || call->any_order == 0) return fail(GLYD_ERROR_UNSUPPORTED, "experts: no such kernel");
  uint64_t begin = 0;
  for (uint64_t expert = 0; expert < shape.stack; ++expert) {
    const auto end = static_cast<uint64_t>(call->ends[expert]);
    if (end < begin || end > call->tokens) return fail(GLYD_ERROR_INVALID_ARGUMENT, "experts: ends are not sorted");
    if (end > begin) {
      const glyd_status status =
          glyd_linear(pack->data, pack->info.pack_bytes, expert, call->x + begin * call->x_stride, end - begin,
                      call->x_stride, nullptr, call->y + begin * call->y_stride, call->y_stride, 1);
      if (status != GLYD_OK) return fail(status, glyd_last_error());
    }
    begin = end;
  }
  ++calls_[4];
  return GLYD_OK;
}

glyd_status glyd_cuda_prepare(glyd_cuda_pack* pack, const uint64_t* tokens, uint64_t count,
                              uint32_t with_bias) noexcept {
  for (uint64_t i = 0; i < count; ++i)
    pack->context->verdicts[key_of(*pack, tokens[i], with_bias != 0)] = verdict_ != 0;
  return GLYD_OK;
}

glyd_status glyd_cuda_route(glyd_cuda_pack* pack, uint64_t tokens, uint32_t with_bias, uint32_t any_order,
                            glyd_cuda_route_info* info) noexcept {
  const bool fused = is_fused(*pack, tokens, with_bias != 0, any_order != 0);
  info->kind = fused ? GLYD_CUDA_ROUTE_FUSED : GLYD_CUDA_ROUTE_DECODE;
  info->exact = !fused || is_fused(*pack, tokens, with_bias != 0, false);
  info->splits = 1;
  info->scratch_bytes = fused ? scratch_bytes(*pack, tokens) : 0;
  info->reason = fused ? "fused" : can_fuse(*pack, tokens) ? "decode: not prepared" : "decode: the layout or the shape";
  return GLYD_OK;
}

glyd_status glyd_cuda_self_check(glyd_cuda_pack*, uint64_t, uint32_t, uint64_t* differing) noexcept {
  *differing = 0;
  return GLYD_OK;
}

}  // extern "C"
