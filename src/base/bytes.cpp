#include "base/bytes.hpp"

namespace glyd {

bool all_zero(ByteSpan bytes) {
  size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    if (load_le<uint64_t>(bytes.data() + i) != 0) return false;
  }
  for (; i < bytes.size(); ++i) {
    if (bytes[i] != 0) return false;
  }
  return true;
}

}  // namespace glyd
