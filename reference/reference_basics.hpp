// reference_basics.hpp - checksums and a small JSON reader for the reference decoder, plainly written.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "glyd_reference.hpp"

namespace glyd_reference {

// CRC-32C: Castagnoli, reflected, initial and final XOR all ones.
std::uint32_t crc32c(Bytes bytes);

// FIPS 180-4; lower-case hexadecimal.
std::string sha256_hex(Bytes bytes);

bool is_utf8(std::string_view text);

// A JSON value (RFC 8259). Objects keep the order of their members and refuse two of one name. Numbers keep their text.
struct Json {
  enum class Kind { kNull, kBool, kNumber, kString, kArray, kObject };
  Kind kind = Kind::kNull;
  bool boolean = false;
  std::string text;               // of a string, or a number as it stands
  std::size_t at = 0;             // where the value begins in the document
  std::vector<Json> items;        // of an array, or an object's values
  std::vector<std::string> keys;  // of an object

  const Json* find(std::string_view key) const;
};

// The whole of `text` as one value; throws Corrupt, `what` first in its message. `python_numbers`: NaN, Infinity and
// -Infinity too, which Python writes.
Json parse_json(std::string_view text, const std::string& what, bool python_numbers = false);

}  // namespace glyd_reference
