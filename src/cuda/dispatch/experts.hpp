// experts.hpp - products of experts: a stack in one pack, tokens sorted by expert and counted on the device.
#pragma once

#include "dispatch/product.hpp"

namespace glyd::cuda {

struct ExpertsCall {
  const uint16_t* x = nullptr;
  uint64_t tokens = 0, x_stride = 0;
  const int32_t* ends = nullptr;   // device memory, one an expert
  uint64_t most_tokens = 0;        // of one expert, where the product is exact; 0: `tokens`
  const uint16_t* bias = nullptr;  // [stack, rows]
  uint16_t* y = nullptr;
  uint64_t y_stride = 0;
  bool exact = true;  // the bits of linear() an expert
  cudaStream_t stream = nullptr;
};

// No allocation, no synchronisation; may be captured into a graph. GLYD_ERROR_UNSUPPORTED where only linear() an expert
// will do.
Result<void> linear_experts(DevicePack& pack, const ExpertsCall& call);

}  // namespace glyd::cuda
