// linear_capi.cpp - products of glyd/cuda.h: one, several, experts.
#include <vector>

#include "capi/handles.hpp"
#include "dispatch/experts.hpp"

namespace {

using namespace glyd;  // NOLINT: the boundary speaks the library's own names throughout

using capi::device_of;
using capi::guarded;
using capi::need;
using capi::read_struct;
using capi::stream_of;

Result<cuda::LinearCall> read_call(const glyd_cuda_linear_call* call) {
  GLYD_TRY(const glyd_cuda_linear_call given, read_struct(call, "call"));
  cuda::LinearCall wanted;
  wanted.matrix = given.matrix;
  wanted.x = given.x, wanted.tokens = given.tokens, wanted.x_stride = given.x_stride;
  wanted.bias = given.bias;
  wanted.y = given.y, wanted.y_stride = given.y_stride;
  wanted.exact = given.any_order == 0, wanted.early = given.early_launch != 0;
  wanted.workspace = given.workspace, wanted.workspace_bytes = given.workspace_bytes;
  wanted.stream = stream_of(given.stream);
  wanted.multiprocessors = given.multiprocessors;
  wanted.scratch = given.scratch, wanted.scratch_bytes = given.scratch_bytes;
  return wanted;
}

// Element i of an array of structs that are as long as the caller's compiler made them.
const glyd_cuda_linear_call* element(const glyd_cuda_linear_call* calls, uint64_t i) {
  return reinterpret_cast<const glyd_cuda_linear_call*>(reinterpret_cast<const uint8_t*>(calls) +
                                                        i * calls->struct_size);
}

Result<void> run_group(glyd_cuda_pack* const* packs, const glyd_cuda_linear_call* calls, uint64_t count) {
  std::vector<cuda::DevicePack*> members;
  std::vector<cuda::LinearCall> wanted;
  for (uint64_t i = 0; i < count; ++i) {
    GLYD_CHECK(need(packs[i] != nullptr, "packs"));
    if (i > 0 && element(calls, i)->struct_size != calls->struct_size)
      return invalid_argument("linear_group: struct_size of call {} is not that of the first", i);
    if (device_of(packs[i]) != device_of(packs[0]))
      return invalid_argument("linear_group: pack {} is on another GPU than the first", i);
    GLYD_TRY(const cuda::LinearCall call, read_call(element(calls, i)));
    members.push_back(packs[i]->pack.get());
    wanted.push_back(call);
  }
  const cuda::ScopedDevice scope(device_of(packs[0]));
  return cuda::linear_group(members, wanted);
}

}  // namespace

extern "C" {

glyd_status glyd_cuda_linear(glyd_cuda_pack* pack, const glyd_cuda_linear_call* call) noexcept {
  return guarded([&]() -> Result<void> {
    GLYD_CHECK(need(pack != nullptr, "pack"));
    GLYD_TRY(const cuda::LinearCall wanted, read_call(call));
    const cuda::ScopedDevice scope(device_of(pack));
    return cuda::linear(*pack->pack, wanted);
  });
}

glyd_status glyd_cuda_linear_group(glyd_cuda_pack* const* packs, const glyd_cuda_linear_call* calls,
                                   uint64_t count) noexcept {
  return guarded([&]() -> Result<void> {
    if (count == 0) return Ok{};
    GLYD_CHECK(need(packs != nullptr, "packs"));
    GLYD_CHECK(need(calls != nullptr, "calls"));
    return run_group(packs, calls, count);
  });
}

glyd_status glyd_cuda_linear_experts(glyd_cuda_pack* pack, const glyd_cuda_experts_call* call) noexcept {
  return guarded([&]() -> Result<void> {
    GLYD_CHECK(need(pack != nullptr, "pack"));
    GLYD_TRY(const glyd_cuda_experts_call given, read_struct(call, "call"));
    cuda::ExpertsCall wanted;
    wanted.x = given.x, wanted.tokens = given.tokens, wanted.x_stride = given.x_stride;
    wanted.ends = given.ends, wanted.most_tokens = given.most_tokens;
    wanted.bias = given.bias;
    wanted.y = given.y, wanted.y_stride = given.y_stride;
    wanted.exact = given.any_order == 0;
    wanted.stream = stream_of(given.stream);
    const cuda::ScopedDevice scope(device_of(pack));
    return cuda::linear_experts(*pack->pack, wanted);
  });
}

}  // extern "C"
