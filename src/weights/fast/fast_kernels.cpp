#include "weights/fast/fast_kernels.hpp"

#include "base/cpu.hpp"

namespace glyd::fast {

const Kernels& kernels() {
#if defined(__x86_64__)
  return choose_by_isa(kScalarKernels, kAvx2Kernels, kAvx512Kernels);
#else
  return kScalarKernels;
#endif
}

}  // namespace glyd::fast
