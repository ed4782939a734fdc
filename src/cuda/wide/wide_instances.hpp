// wide_instances.hpp - the instantiations of the fused product of many tokens, for the host.
#pragma once

#include <cstdint>

namespace glyd::cuda {

// The kernel of tiles of `kTokens` tokens (32, 64, 128, 256); its parameters are (WideParams, CUtensorMap). One in
// instances/.
template <uint32_t kTokens>
const void* wide_kernel();

extern template const void* wide_kernel<32>();
extern template const void* wide_kernel<64>();
extern template const void* wide_kernel<128>();
extern template const void* wide_kernel<256>();

}  // namespace glyd::cuda
