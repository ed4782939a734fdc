// pack_fast.hpp - layout `fast` encoded on the GPU: the CPU packer's bytes.
#pragma once

#include <optional>

#include "dispatch/context.hpp"

namespace glyd::cuda {

struct PackCall {
  const uint16_t* values = nullptr;  // device memory, in the source's order
  Grid grid;
  bool transposed = false;
  uint8_t* pack = nullptr;  // device memory, 128-byte aligned
  uint64_t pack_capacity = 0;
  void* scratch = nullptr;
  uint64_t scratch_bytes = 0;
  cudaStream_t stream = nullptr;
};

// Device memory that packing a tensor of this shape works in.
uint64_t pack_scratch_bytes(const Grid& grid);

// Packs and returns the header; synchronises with the stream, since the window and the slots are chosen from counts.
// Nothing where the tensor has no values or `fast` would not pay (the CPU packer then takes another layout).
Result<std::optional<PackHeader>> pack_fast(Context& context, const PackCall& call);

// Layout `raw`: a copy behind a header. Synchronises too.
Result<PackHeader> pack_raw(const PackCall& call);

}  // namespace glyd::cuda
