#include "codec/kernels/kernels.hpp"

#include "base/cpu.hpp"
#include "codec/kernels/table.hpp"

namespace glyd::codec {

const Kernels& kernels() {
#if defined(__x86_64__)
  return choose_by_isa(kKernelsScalar, kKernelsAvx2, kKernelsAvx512);
#else
  return kKernelsScalar;
#endif
}

}  // namespace glyd::codec
