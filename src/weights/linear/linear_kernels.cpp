#include "weights/linear/linear_kernels.hpp"

namespace glyd {

const LinearKernels& linear_kernels(Isa isa) {
  return isa >= Isa::kAvx512 ? linear_kernels_avx512()
         : isa == Isa::kAvx2 ? linear_kernels_avx2()
                             : linear_kernels_scalar();
}

}  // namespace glyd
