#include "checkpoint/safetensors_file.hpp"

#include "base/bytes.hpp"

namespace glyd {

Result<SafetensorsHeader> read_safetensors_header(const File& file) {
  if (file.size() < 8) return corrupt("{}: {} bytes are no safetensors file", file.path(), file.size());
  uint8_t length_bytes[8];
  GLYD_CHECK(file.read_at(0, length_bytes));
  const auto length = load_le<uint64_t>(length_bytes);
  if (length > kMostHeaderBytes) {
    return corrupt("{}: header of {} bytes, more than the {} allowed: not a safetensors file, or damaged", file.path(),
                   length, kMostHeaderBytes);
  }
  if (length > file.size() - 8)
    return corrupt("{}: truncated: header of {} bytes in a file of {}", file.path(), length, file.size());
  std::string text(length, '\0');
  GLYD_CHECK(file.read_at(8, MutableByteSpan(reinterpret_cast<uint8_t*>(text.data()), text.size())));
  return parse_safetensors_header(std::move(text), file.size(), file.path());
}

}  // namespace glyd
