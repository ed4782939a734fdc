// generic_instances.hpp - the instantiations of the generic product, for the host.
#pragma once

#include <cstdint>

namespace glyd::cuda {

// The kernel that holds `tiles` (1 or 2) times 8 tokens; its parameters are (GenericParams).
const void* generic_kernel(uint32_t tiles);

}  // namespace glyd::cuda
