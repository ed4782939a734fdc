#include "weights/small/small_kernels.hpp"

#include "base/cpu.hpp"

namespace glyd::small {

const Kernels& kernels() {
#if defined(__x86_64__)
  const Isa isa = cpu_isa();
  if (isa == Isa::kAvx512) return kAvx512Kernels;
  if (isa == Isa::kAvx2) return kAvx2Kernels;
#endif
  return kScalarKernels;
}

}  // namespace glyd::small
