#include "format/safetensors.hpp"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "base/bytes.hpp"
#include "format/json_text.hpp"

namespace glyd {
namespace {

constexpr Dtype kDtypes[] = {{"BOOL", 8},        {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"U8", 8},
                             {"I8", 8},          {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8},
                             {"F8_E5M2FNUZ", 8}, {"I16", 16},    {"U16", 16},    {"F16", 16},    {"BF16", 16},
                             {"I32", 32},        {"U32", 32},    {"F32", 32},    {"C64", 64},    {"F64", 64},
                             {"I64", 64},        {"U64", 64}};

constexpr size_t kMostDimensions = 64;

// Walks the one shape that a header may have: {name: {"dtype": "..", "shape": [..], "data_offsets": [a, b]},
// "__metadata__": {string: string}}. Nothing else is ever held in memory, so a hostile header costs no more than its
// own size a few times over.
class HeaderReader : public nlohmann::json_sax<Json> {
 public:
  HeaderReader(SafetensorsHeader& header, std::string_view where) : header_(header), where_(where) {}

  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("a boolean"); }
  bool number_integer(number_integer_t) override { return unexpected("a negative number"); }
  bool number_float(number_float_t, const string_t&) override { return unexpected("a number not of 64 bits"); }
  bool binary(binary_t&) override { return unexpected("binary data"); }
  bool number_unsigned(number_unsigned_t value) override;
  bool string(string_t& value) override;
  bool start_object(std::size_t) override;
  bool end_object() override;
  bool start_array(std::size_t) override;
  bool end_array() override;
  bool key(string_t& name) override;
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& why) override {
    return refuse(corrupt("{}: header is not valid JSON at byte {}: {}", where_, position, why.what()));
  }
  Result<void> finish() {
    if (error_) return *std::move(error_);
    return Ok{};
  }

 private:
  enum class Place { kStart, kTop, kMetadata, kTensor, kShape, kOffsets };
  enum Member : unsigned { kNone = 0, kDtype = 1, kShapeMember = 2, kOffsetsMember = 4, kAll = 7 };

  bool refuse(Error error) {
    if (!error_) error_ = std::move(error);
    return false;
  }
  std::string place_text() const {
    if (place_ == Place::kMetadata) return "__metadata__";
    if (place_ == Place::kStart || place_ == Place::kTop) return "header";
    return "tensor " + json_quote(tensor_.name);
  }
  bool unexpected(const char* what) {
    if (place_ == Place::kStart) return refuse(corrupt("{}: header is {}, not a JSON object", where_, what));
    return refuse(corrupt("{}: {}: {} where it may not stand", where_, place_text(), what));
  }
  bool tensor_key(const std::string& name);
  bool top_key(std::string& name);

  SafetensorsHeader& header_;
  std::string where_;
  Place place_ = Place::kStart;
  Member member_ = kNone;
  unsigned seen_ = 0;
  bool metadata_next_ = false;
  TensorEntry tensor_;
  std::vector<uint64_t> offsets_;
  std::string metadata_key_;
  std::unordered_set<std::string> names_, metadata_keys_;
  std::optional<Error> error_;
};

bool HeaderReader::number_unsigned(number_unsigned_t value) {
  if (place_ == Place::kShape) {
    if (tensor_.shape.size() == kMostDimensions)
      return refuse(corrupt("{}: {}: more than {} dimensions", where_, place_text(), kMostDimensions));
    tensor_.shape.push_back(value);
    return true;
  }
  if (place_ == Place::kOffsets) {
    if (offsets_.size() == 2)
      return refuse(corrupt("{}: {}: data_offsets has more than 2 numbers", where_, place_text()));
    offsets_.push_back(value);
    return true;
  }
  return unexpected("a number");
}

bool HeaderReader::string(string_t& value) {
  if (place_ == Place::kMetadata) {
    header_.metadata.emplace_back(std::move(metadata_key_), std::move(value));
    return true;
  }
  if (place_ == Place::kTensor && member_ == kDtype) {
    tensor_.dtype = find_dtype(value);
    if (tensor_.dtype == nullptr)
      return refuse(corrupt("{}: {}: unknown dtype {}", where_, place_text(), json_quote(value)));
    return true;
  }
  return unexpected("a string");
}

bool HeaderReader::start_object(std::size_t) {
  if (place_ == Place::kStart) {
    place_ = Place::kTop;
    return true;
  }
  if (place_ != Place::kTop) return unexpected("an object");
  place_ = metadata_next_ ? Place::kMetadata : Place::kTensor;
  return true;
}

bool HeaderReader::end_object() {
  if (place_ == Place::kTensor) {
    if (seen_ != kAll) {
      const char* missing = (seen_ & kDtype) == 0 ? "dtype" : (seen_ & kShapeMember) == 0 ? "shape" : "data_offsets";
      return refuse(corrupt("{}: {}: \"{}\" is missing", where_, place_text(), missing));
    }
    tensor_.begin = offsets_[0];
    tensor_.end = offsets_[1];
    header_.tensors.push_back(std::move(tensor_));
  }
  place_ = Place::kTop;  // also at the very end, where nothing follows
  return true;
}

bool HeaderReader::start_array(std::size_t) {
  if (place_ != Place::kTensor || (member_ != kShapeMember && member_ != kOffsetsMember)) return unexpected("an array");
  place_ = member_ == kShapeMember ? Place::kShape : Place::kOffsets;
  return true;
}

bool HeaderReader::end_array() {
  if (place_ == Place::kOffsets && offsets_.size() != 2) {
    return refuse(corrupt("{}: {}: data_offsets has {} numbers, not 2", where_, place_text(), offsets_.size()));
  }
  place_ = Place::kTensor;
  return true;
}

bool HeaderReader::key(string_t& name) {
  if (place_ == Place::kTop) return top_key(name);
  if (place_ == Place::kTensor) return tensor_key(name);
  if (!metadata_keys_.insert(name).second)
    return refuse(corrupt("{}: __metadata__: duplicate key {}", where_, json_quote(name)));
  metadata_key_ = std::move(name);
  return true;
}

bool HeaderReader::top_key(std::string& name) {
  if (!names_.insert(name).second) return refuse(corrupt("{}: duplicate tensor name {}", where_, json_quote(name)));
  metadata_next_ = name == "__metadata__";
  if (metadata_next_) {
    header_.in_data_order = header_.tensors.empty();
    return true;
  }
  // Loaders make paths of names, so a name must not climb.
  if (name.empty()) return refuse(corrupt("{}: a tensor has an empty name", where_));
  if (name.find('\0') != std::string::npos)
    return refuse(corrupt("{}: tensor name {} holds a NUL", where_, json_quote(name)));
  if (("/" + name + "/").find("/../") != std::string::npos) {
    return refuse(corrupt("{}: tensor name {} has a component \"..\"", where_, json_quote(name)));
  }
  tensor_ = TensorEntry{};
  tensor_.name = std::move(name);
  offsets_.clear();
  seen_ = 0;
  return true;
}

bool HeaderReader::tensor_key(const std::string& name) {
  member_ = name == "dtype" ? kDtype : name == "shape" ? kShapeMember : name == "data_offsets" ? kOffsetsMember : kNone;
  if (member_ == kNone) return refuse(corrupt("{}: {}: unknown member {}", where_, place_text(), json_quote(name)));
  if ((seen_ & member_) != 0)
    return refuse(corrupt("{}: {}: duplicate member {}", where_, place_text(), json_quote(name)));
  seen_ |= member_;
  return true;
}

Result<void> check_places(SafetensorsHeader& header, std::optional<uint64_t> file_bytes, std::string_view where) {
  const auto lies_before = [](const TensorEntry& a, const TensorEntry& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  };
  header.in_data_order =
      header.in_data_order && std::is_sorted(header.tensors.begin(), header.tensors.end(), lies_before);
  std::stable_sort(header.tensors.begin(), header.tensors.end(), lies_before);
  const uint64_t data_bytes = file_bytes ? *file_bytes - header.data_offset() : header.data_bytes();
  uint64_t expected = 0;
  for (const TensorEntry& tensor : header.tensors) {
    const std::string place = fmt::format("{}: tensor {}", where, json_quote(tensor.name));
    if (tensor.begin > tensor.end)
      return corrupt("{}: data_offsets [{}, {}] run backwards", place, tensor.begin, tensor.end);
    if (tensor.end > data_bytes) {
      return corrupt(
          "{}: ends at byte {} of the data, past the end of the file ({} bytes of data); the file is truncated or its "
          "header is wrong",
          place, tensor.end, data_bytes);
    }
    if (tensor.begin < expected)
      return corrupt("{}: overlaps the tensor before it (begins at {}, that one ends at {})", place, tensor.begin,
                     expected);
    if (tensor.begin > expected) return corrupt("{}: a hole of {} bytes before it", place, tensor.begin - expected);
    auto bytes = tensor_bytes(*tensor.dtype, tensor.shape);
    if (!bytes) return std::move(bytes).at(place).error();
    if (bytes.value() != tensor.bytes()) {
      return corrupt("{}: {} {} needs {} bytes, data_offsets give {}", place, tensor.dtype->name,
                     shape_text(tensor.shape), bytes.value(), tensor.bytes());
    }
    expected = tensor.end;
  }
  if (expected != data_bytes) return corrupt("{}: {} bytes behind the last tensor", where, data_bytes - expected);
  return Ok{};
}

}  // namespace

const Dtype* find_dtype(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kDtypes), std::end(kDtypes), [&](const Dtype& dtype) { return name == dtype.name; });
  return found == std::end(kDtypes) ? nullptr : found;
}

std::string shape_text(const std::vector<uint64_t>& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

Result<uint64_t> tensor_bytes(const Dtype& dtype, const std::vector<uint64_t>& shape) {
  uint64_t bits = dtype.bits;
  for (const uint64_t size : shape) {
    if (!checked_mul(bits, size, bits)) return corrupt("shape {} overflows", shape_text(shape));
  }
  if (bits % 8 != 0) return corrupt("{} {} does not fill whole bytes", dtype.name, shape_text(shape));
  return bits / 8;
}

Result<SafetensorsHeader> parse_safetensors_header(std::string text, std::optional<uint64_t> file_bytes,
                                                   std::string_view where) {
  SafetensorsHeader header;
  header.text = std::move(text);
  if (header.text.size() > kMostHeaderBytes)
    return corrupt("{}: header of {} bytes, more than the {} allowed", where, header.text.size(), kMostHeaderBytes);
  if (file_bytes && header.data_offset() > *file_bytes)
    return corrupt("{}: truncated: header of {} bytes in a file of {}", where, header.text.size(), *file_bytes);
  if (header.text.empty() || header.text.front() != '{')
    return corrupt("{}: header is not a JSON object (does not begin with '{{')", where);
  HeaderReader reader(header, where);
  Json::sax_parse(header.text, &reader);
  GLYD_CHECK(reader.finish());
  GLYD_CHECK(check_places(header, file_bytes, where));
  return header;
}

std::string write_safetensors_header(const SafetensorsMetadata& metadata, const std::vector<TensorEntry>& tensors,
                                     uint64_t least_bytes) {
  fmt::memory_buffer text;
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "{{");
  const char* comma = "";
  if (!metadata.empty()) {
    fmt::format_to(out, "\"__metadata__\":{{");
    for (const auto& [key, value] : metadata) {
      fmt::format_to(out, "{}{}:{}", comma, json_quote(key), json_quote(value));
      comma = ",";
    }
    fmt::format_to(out, "}}");
  }
  for (const TensorEntry& tensor : tensors) {
    fmt::format_to(out, "{}{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}", comma,
                   json_quote(tensor.name), tensor.dtype->name, fmt::join(tensor.shape, ","), tensor.begin, tensor.end);
    comma = ",";
  }
  fmt::format_to(out, "}}");
  const uint64_t total = round_up<uint64_t>(std::max<uint64_t>(8 + text.size(), least_bytes), 128);
  std::string header(8, '\0');
  store_le<uint64_t>(header.data(), total - 8);
  header.append(text.data(), text.size());
  header.resize(total, ' ');
  return header;
}

}  // namespace glyd
