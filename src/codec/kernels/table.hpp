// table.hpp - the kernels of each instruction set; kernels() picks.
#pragma once

#include "codec/kernels/kernels.hpp"

namespace glyd::codec {

extern const Kernels kKernelsScalar;
#if defined(__x86_64__)
extern const Kernels kKernelsAvx2, kKernelsAvx512;
#endif

}  // namespace glyd::codec
