// staged_instances.hpp - the instantiations of the staged product, for the host.
#pragma once

#include <cstdint>

namespace glyd::cuda {

// The kernel of tiles of `kStrips` strips (2, 3, 4, 6, 8) and `kWarpgroups` times 64 tokens (1, 2); its
// parameter is StagedParams. Those of one number of strips are one unit of instances/.
template <uint32_t kStrips, uint32_t kWarpgroups>
const void* staged_kernel();

extern template const void* staged_kernel<2, 1>();
extern template const void* staged_kernel<2, 2>();
extern template const void* staged_kernel<3, 1>();
extern template const void* staged_kernel<3, 2>();
extern template const void* staged_kernel<4, 1>();
extern template const void* staged_kernel<4, 2>();
extern template const void* staged_kernel<6, 1>();
extern template const void* staged_kernel<6, 2>();
extern template const void* staged_kernel<8, 1>();
extern template const void* staged_kernel<8, 2>();

}  // namespace glyd::cuda
