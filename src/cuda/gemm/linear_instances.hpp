// linear_instances.hpp - the instantiations of the fused product, for the host.
#pragma once

#include <cstdint>

namespace glyd::cuda {

// The kernel of `tile` tokens (1, 8, 16, 32, 64) for sums over several splits or one; its parameters are (LinearParams,
// CUtensorMap). One in instances/.
template <uint32_t kTile>
const void* linear_kernel(bool split);

extern template const void* linear_kernel<1>(bool);
extern template const void* linear_kernel<8>(bool);
extern template const void* linear_kernel<16>(bool);
extern template const void* linear_kernel<32>(bool);
extern template const void* linear_kernel<64>(bool);

}  // namespace glyd::cuda
