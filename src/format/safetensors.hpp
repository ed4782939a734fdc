// safetensors.hpp - headers of safetensors files, read strictly and written. What a header must hold:
// docs/spec/checkpoint.md 5.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace glyd {

inline constexpr uint64_t kMostHeaderBytes = 100'000'000;  // the limit of the public library

struct Dtype {
  const char* name;
  uint32_t bits;  // of one element; a tensor's bits must fill bytes
};
// Null for a name that safetensors does not have.
const Dtype* find_dtype(std::string_view name);

struct TensorEntry {
  std::string name;
  const Dtype* dtype = nullptr;
  std::vector<uint64_t> shape;
  uint64_t begin = 0, end = 0;  // in the data section
  uint64_t bytes() const { return end - begin; }
};
// "[3, 4]"
std::string shape_text(const std::vector<uint64_t>& shape);

// Bytes of a tensor; an error for a product that overflows or does not fill bytes.
Result<uint64_t> tensor_bytes(const Dtype& dtype, const std::vector<uint64_t>& shape);

using SafetensorsMetadata = std::vector<std::pair<std::string, std::string>>;

struct SafetensorsHeader {
  std::string text;                  // the JSON as it stands in the file
  SafetensorsMetadata metadata;      // of __metadata__, in order
  std::vector<TensorEntry> tensors;  // in data order
  bool in_data_order = false;        // the JSON has __metadata__ first, then the tensors as their data lie
  uint64_t data_offset() const { return 8 + text.size(); }
  uint64_t data_bytes() const { return tensors.empty() ? 0 : tensors.back().end; }
};

// Every rule, for a file of `file_bytes` bytes (nullopt: it ends where its tensors end); `where` (the file's path)
// begins the errors.
Result<SafetensorsHeader> parse_safetensors_header(std::string text, std::optional<uint64_t> file_bytes,
                                                   std::string_view where);

// Length and JSON of a header whose tensors lie in the order given, padded with spaces to a multiple of 128 bytes and
// to `least_bytes` at least.
std::string write_safetensors_header(const SafetensorsMetadata& metadata, const std::vector<TensorEntry>& tensors,
                                     uint64_t least_bytes = 0);

}  // namespace glyd
