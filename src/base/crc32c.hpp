// crc32c.hpp - CRC-32C (Castagnoli), as RFC 3720 appendix B.4 gives it.
#pragma once

#include <cstdint>

#include "base/bytes.hpp"

namespace glyd {

// Of `bytes`, continuing from `crc` (0 at the start).
uint32_t crc32c(ByteSpan bytes, uint32_t crc = 0);

}  // namespace glyd
