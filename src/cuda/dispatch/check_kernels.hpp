// check_kernels.hpp - inputs of the exactness check and its comparison, on the device.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace glyd::cuda {

// What sums are compared on: ordinary inputs, outlier columns as trained models have, and exponents spread wide.
enum class InputKind : uint32_t { kNormal, kOutliers, kWide };
inline constexpr uint32_t kInputKinds = 3;

// values[i], of rows of `cols`, from `number`: the same ones each time.
cudaError_t launch_fill_input(uint16_t* values, uint64_t count, uint64_t cols, InputKind kind, uint64_t number,
                              cudaStream_t stream);

// *differing += how many of the bits of a and b are not equal; two NaNs are equal.
cudaError_t launch_count_differing(const uint16_t* a, const uint16_t* b, uint64_t count, uint64_t* differing,
                                   cudaStream_t stream);

}  // namespace glyd::cuda
