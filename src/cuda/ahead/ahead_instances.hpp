// ahead_instances.hpp - the product that decodes ahead, for the host.
#pragma once

namespace glyd::cuda {

// Its parameters are (AheadParams).
const void* ahead_kernel();

}  // namespace glyd::cuda
