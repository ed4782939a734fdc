// matrix_unit.hpp - products of several tokens on a CPU's matrix units, whatever the pack's layout. docs/cpu.md.
#pragma once

#include "base/result.hpp"
#include "weights/linear/matrix_kernels.hpp"
#include "weights/registry.hpp"
#include "weights/weights.hpp"

namespace glyd {

inline constexpr uint64_t kMatrixUnitTokens = 2;  // from so many tokens on

// `linear`, its arguments checked, with tokens and rows.
Result<void> multiply_by_matrix_unit(const OpenPack& pack, const LinearArgs& args, int threads,
                                     const MatrixKernels& kernels);

}  // namespace glyd
