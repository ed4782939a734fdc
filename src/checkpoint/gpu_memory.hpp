// gpu_memory.hpp - how much memory a GPU named on a command line has.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"

namespace glyd {

// "H200", "rtx 4090", "48GB" (10^9), "48GiB" (2^30), or a number of bytes. An unknown name gives an error that lists
// the known ones.
Result<uint64_t> gpu_memory_bytes(const std::string& text);

}  // namespace glyd
