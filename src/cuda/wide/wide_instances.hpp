// wide_instances.hpp - the instantiations of the fused product of many tokens, for the host.
#pragma once

#include <cstdint>

namespace glyd::cuda {

// The kernel of tiles of `kTokens` tokens (32, 64, 128, 256), with a relay of warpgroups or without; its parameters are
// (WideParams, CUtensorMap). One in instances/. There is no relay at 256.
template <uint32_t kTokens>
const void* wide_kernel(bool relay);

extern template const void* wide_kernel<32>(bool);
extern template const void* wide_kernel<64>(bool);
extern template const void* wide_kernel<128>(bool);
extern template const void* wide_kernel<256>(bool);

}  // namespace glyd::cuda
