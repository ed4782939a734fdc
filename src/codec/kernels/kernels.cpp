#include "codec/kernels/kernels.hpp"

#include "base/cpu.hpp"
#include "codec/kernels/table.hpp"

namespace glyd::codec {

const Kernels& kernels() {
#if defined(__x86_64__)
  switch (cpu_isa()) {
    case Isa::kAvx512:
      return kKernelsAvx512;
    case Isa::kAvx2:
      return kKernelsAvx2;
    case Isa::kScalar:
      break;
  }
#endif
  return kKernelsScalar;
}

}  // namespace glyd::codec
