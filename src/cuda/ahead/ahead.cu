#include "ahead/ahead_instances.hpp"
#include "ahead/ahead_kernel.cuh"

namespace glyd::cuda {

const void* ahead_kernel() { return reinterpret_cast<const void*>(&ahead_sm90); }

}  // namespace glyd::cuda
