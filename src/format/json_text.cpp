#include "format/json_text.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

namespace glyd {
namespace {

// Builds a Json from parser events and stops at the first broken rule.
class StrictBuilder : public nlohmann::json_sax<Json> {
 public:
  explicit StrictBuilder(std::string_view where) : where_(where) {}

  bool null() override { return put(Json(nullptr)); }
  bool boolean(bool value) override { return put(Json(value)); }
  bool number_integer(number_integer_t value) override { return put(Json(value)); }
  bool number_unsigned(number_unsigned_t value) override { return put(Json(value)); }
  bool number_float(number_float_t value, const string_t&) override { return put(Json(value)); }
  bool string(string_t& value) override { return put(Json(std::move(value))); }
  bool binary(binary_t&) override { return refuse(corrupt("{}: not JSON", where_)); }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    if (stack_.back()->contains(name)) return refuse(corrupt("{}: duplicate key {}", where_, json_quote(name)));
    key_ = std::move(name);
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& why) override {
    return refuse(corrupt("{}: not valid JSON at byte {}: {}", where_, position, why.what()));
  }

  Result<Json> finish() {
    if (error_) return *std::move(error_);
    return std::move(root_);
  }

 private:
  bool refuse(Error error) {
    if (!error_) error_ = std::move(error);
    return false;
  }
  Json* attach(Json value) {
    if (++values_ > kMostJsonValues) {
      refuse(corrupt("{}: more than {} values", where_, kMostJsonValues));
      return nullptr;
    }
    if (stack_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& parent = *stack_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    return &(parent[key_] = std::move(value));
  }
  bool put(Json value) { return attach(std::move(value)) != nullptr; }
  bool open(Json value) {
    if (stack_.size() >= static_cast<size_t>(kMostJsonDepth)) {
      return refuse(corrupt("{}: nested more than {} levels deep", where_, kMostJsonDepth));
    }
    Json* place = attach(std::move(value));
    if (place == nullptr) return false;
    stack_.push_back(place);  // stays valid: only the innermost container grows
    return true;
  }
  bool close() {
    stack_.pop_back();
    return true;
  }

  std::string where_;
  Json root_;
  std::vector<Json*> stack_;
  std::string key_;
  uint64_t values_ = 0;
  std::optional<Error> error_;
};

}  // namespace

Result<Json> parse_json_strict(std::string_view text, std::string_view where) {
  StrictBuilder builder(where);
  Json::sax_parse(text.begin(), text.end(), &builder);
  return builder.finish();
}

std::string json_quote(std::string_view text) {
  return Json(std::string(text)).dump(-1, ' ', false, Json::error_handler_t::replace);
}

bool is_hex(std::string_view text, size_t digits) {
  return text.size() == digits &&
         std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool is_utf8(std::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    const auto lead = static_cast<uint8_t>(text[i]);
    const size_t more = lead < 0x80                   ? 0
                        : lead >= 0xc2 && lead < 0xe0 ? 1
                        : lead >= 0xe0 && lead < 0xf0 ? 2
                        : lead >= 0xf0 && lead < 0xf5 ? 3
                                                      : 4;
    if (more == 4 || text.size() - i <= more) return false;
    for (size_t k = 1; k <= more; ++k) {
      if ((static_cast<uint8_t>(text[i + k]) & 0xc0) != 0x80) return false;
    }
    // Overlong forms, surrogates and values past U+10FFFF.
    const auto second = more == 0 ? uint8_t{0} : static_cast<uint8_t>(text[i + 1]);
    if ((lead == 0xe0 && second < 0xa0) || (lead == 0xed && second > 0x9f) || (lead == 0xf0 && second < 0x90) ||
        (lead == 0xf4 && second > 0x8f)) {
      return false;
    }
    i += 1 + more;
  }
  return true;
}

Result<JsonFields> JsonFields::of(const Json& value, std::string where) {
  if (!value.is_object()) return corrupt("{}: not a JSON object", where);
  return JsonFields(value, std::move(where));
}

Result<const Json*> JsonFields::take(const char* name) {
  const auto found = value_->find(name);
  if (found == value_->end()) return corrupt("{}: member \"{}\" is missing", where_, name);
  taken_.insert(name);
  return &*found;
}

Error JsonFields::wrong(const char* name, const char* wanted) const {
  return corrupt("{}: member \"{}\" is not {}", where_, name, wanted);
}

Result<std::string> JsonFields::string(const char* name) {
  GLYD_TRY(const Json* value, take(name));
  if (!value->is_string()) return wrong(name, "a string");
  return value->get<std::string>();
}

Result<std::optional<std::string>> JsonFields::string_or_null(const char* name) {
  GLYD_TRY(const Json* value, take(name));
  if (value->is_null()) return std::optional<std::string>();
  if (!value->is_string()) return wrong(name, "a string or null");
  return std::optional(value->get<std::string>());
}

Result<uint64_t> JsonFields::number(const char* name) {
  GLYD_TRY(const Json* value, take(name));
  if (!value->is_number_unsigned()) return wrong(name, "an unsigned integer");
  return value->get<uint64_t>();
}

Result<int64_t> JsonFields::integer(const char* name) {
  GLYD_TRY(const Json* value, take(name));
  if (!value->is_number_integer() || (value->is_number_unsigned() && value->get<uint64_t>() > INT64_MAX))
    return wrong(name, "an integer");
  return value->get<int64_t>();
}

Result<std::string> JsonFields::sha256(const char* name) {
  GLYD_TRY(std::string text, string(name));
  if (!is_hex(text, 64)) return wrong(name, "a sha256 (64 lower-case hexadecimal digits)");
  return text;
}

Result<const Json*> JsonFields::array(const char* name) {
  GLYD_TRY(const Json* value, take(name));
  if (!value->is_array()) return wrong(name, "an array");
  return value;
}

Result<const Json*> JsonFields::object(const char* name) {
  GLYD_TRY(const Json* value, take(name));
  if (!value->is_object()) return wrong(name, "an object");
  return value;
}

Result<const Json*> JsonFields::object_or_null(const char* name) {
  GLYD_TRY(const Json* value, take(name));
  if (value->is_null()) return static_cast<const Json*>(nullptr);
  if (!value->is_object()) return wrong(name, "an object or null");
  return value;
}

Result<void> JsonFields::finish() const {
  for (const auto& [name, value] : value_->items()) {
    if (!taken_.contains(name)) return corrupt("{}: unknown member {}", where_, json_quote(name));
  }
  return Ok{};
}

Result<std::vector<uint64_t>> json_numbers(const Json& array, std::string_view where) {
  std::vector<uint64_t> numbers;
  for (const Json& value : array) {
    if (!value.is_number_unsigned()) return corrupt("{}: not a list of unsigned integers", where);
    numbers.push_back(value.get<uint64_t>());
  }
  return numbers;
}

}  // namespace glyd
