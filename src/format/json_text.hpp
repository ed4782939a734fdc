// json_text.hpp - JSON from files that nobody vouches for: a strict parser (no duplicate keys, bounded depth and number
// of values), and readers that name what is wrong.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace glyd {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

// One JSON value of at most kMostJsonDepth levels and kMostJsonValues values. `where` begins the error messages.
inline constexpr int kMostJsonDepth = 32;
inline constexpr uint64_t kMostJsonValues = 8'000'000;
Result<Json> parse_json_strict(std::string_view text, std::string_view where);

// As JSON, with quotes and escapes.
std::string json_quote(std::string_view text);

// True for `digits` lower-case hexadecimal digits.
bool is_hex(std::string_view text, size_t digits);

// True if the bytes are UTF-8.
bool is_utf8(std::string_view text);

// Members of an object taken one by one by name and type; finish() fails if one was not taken.
class JsonFields {
 public:
  static Result<JsonFields> of(const Json& value, std::string where);

  Result<std::string> string(const char* name);
  Result<std::optional<std::string>> string_or_null(const char* name);
  Result<uint64_t> number(const char* name);
  Result<int64_t> integer(const char* name);
  Result<std::string> sha256(const char* name);
  Result<const Json*> array(const char* name);
  Result<const Json*> object(const char* name);
  Result<const Json*> object_or_null(const char* name);  // nullptr for null
  Result<void> finish() const;
  const std::string& where() const { return where_; }

 private:
  JsonFields(const Json& value, std::string where) : value_(&value), where_(std::move(where)) {}
  Result<const Json*> take(const char* name);
  Error wrong(const char* name, const char* wanted) const;

  const Json* value_;
  std::string where_;
  std::set<std::string, std::less<>> taken_;
};

// The unsigned integers of an array.
Result<std::vector<uint64_t>> json_numbers(const Json& array, std::string_view where);

}  // namespace glyd
