#include "weights/small/small_kernels.hpp"

#include "base/cpu.hpp"

namespace glyd::small {

const Kernels& kernels() {
#if defined(__x86_64__)
  return choose_by_isa(kScalarKernels, kAvx2Kernels, kAvx512Kernels);
#else
  return kScalarKernels;
#endif
}

}  // namespace glyd::small
