// unpack.hpp - decoding packs on the GPU: the whole tensor, one matrix, or rows.
#pragma once

#include <cuda_runtime_api.h>

#include "unpack/pack_arrays.hpp"

namespace glyd::cuda {

// The whole tensor in the source's order. All pointers are device memory.
cudaError_t launch_unpack(const PackArrays& arrays, uint16_t* out, uint32_t multiprocessors, cudaStream_t stream);
// Matrix `matrix` alone, as [rows, cols] whatever the source's order.
cudaError_t launch_unpack_matrix(const PackArrays& arrays, uint64_t matrix, uint16_t* out, uint32_t multiprocessors,
                                 cudaStream_t stream);
// out[i] = row indices[i] of matrix 0; zeros for an index that is not a row.
cudaError_t launch_rows(const PackArrays& arrays, const int64_t* indices, uint64_t count, uint16_t* out,
                        uint32_t multiprocessors, cudaStream_t stream);

}  // namespace glyd::cuda
