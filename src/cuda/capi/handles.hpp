// handles.hpp - what the C API's handles hold, and what its functions share.
#pragma once

#include "base/guard.hpp"
#include "dispatch/context.hpp"
#include "glyd/cuda.h"

struct glyd_cuda_context {
  std::unique_ptr<glyd::cuda::Context> context;
};
struct glyd_cuda_pack {
  std::unique_ptr<glyd::cuda::DevicePack> pack;
};

namespace glyd::capi {

inline Result<void> need(bool given, const char* what) {
  if (given) return Ok{};
  return invalid_argument("{}: null", what);
}

inline cudaStream_t stream_of(void* stream) { return static_cast<cudaStream_t>(stream); }
inline int device_of(const glyd_cuda_pack* pack) { return pack->pack->context().device().ordinal; }

}  // namespace glyd::capi
