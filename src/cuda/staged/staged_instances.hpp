// staged_instances.hpp - the instantiations of the staged product, for the host.
#pragma once

#include <cstdint>

namespace glyd::cuda {

// The kernel of tiles of `kStrips` strips (1, 2, 3, 4, 6, 8); its parameters are (StagedParams, CUtensorMap).
template <uint32_t kStrips>
const void* staged_kernel();

extern template const void* staged_kernel<1>();
extern template const void* staged_kernel<2>();
extern template const void* staged_kernel<3>();
extern template const void* staged_kernel<4>();
extern template const void* staged_kernel<6>();
extern template const void* staged_kernel<8>();

}  // namespace glyd::cuda
