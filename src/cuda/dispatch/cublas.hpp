// cublas.hpp - cuBLAS, found at run time: the reference that exact products are held against, and the multiplier of
// decoded matrices.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <string>

#include "base/result.hpp"

namespace glyd::cuda {

// y = x W^T (+ bias), row-major bf16, fp32 sums.
struct DenseProduct {
  const void* weights = nullptr;  // [rows, cols]
  const void* x = nullptr;        // [tokens, cols], x_stride values a row
  const void* bias = nullptr;     // or null
  void* y = nullptr;              // [tokens, rows], y_stride values a row
  int rows = 0, cols = 0, tokens = 0;
  int64_t x_stride = 0, y_stride = 0;
};

struct CublasOptions {
  uint64_t workspace_bytes = 0;   // as torch gives it
  bool reduced_precision = true;  // torch's allow_bf16_reduced_precision_reduction
};

// One GPU's handles. Calls are serialised inside.
class Cublas {
 public:
  // Loads libcublas and libcublasLt (those already in the process first) and creates handles on the current device.
  static Result<std::unique_ptr<Cublas>> create(const CublasOptions& options);
  virtual ~Cublas() = default;

  // What torch.nn.functional.linear calls for such a product. `workspace` has options.workspace_bytes bytes.
  virtual Result<void> multiply(const DenseProduct& product, void* workspace, cudaStream_t stream) = 0;
  // The number of splits of k that the heuristic reports for it; 1 where it reports none.
  virtual Result<uint32_t> splits(const DenseProduct& product) = 0;
  virtual uint64_t version() const = 0;
  virtual const CublasOptions& options() const = 0;
};

}  // namespace glyd::cuda
