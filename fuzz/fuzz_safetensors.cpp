// fuzz_safetensors.cpp - any bytes as the header of a safetensors file: an error, or tensors that fill the data without
// holes, and that come back when their header is written again.
#include <string>

#include "common/guarded_buffer.hpp"
#include "format/safetensors.hpp"

namespace {

using glyd::fuzz::check;

void check_tensors(const glyd::SafetensorsHeader& header, std::uint64_t file_bytes) {
  std::uint64_t end = 0;
  for (const auto& tensor : header.tensors) {
    check(tensor.dtype != nullptr && tensor.begin == end && tensor.end >= tensor.begin);
    const auto bytes = glyd::tensor_bytes(*tensor.dtype, tensor.shape);
    check(bytes && bytes.value() == tensor.bytes());
    end = tensor.end;
  }
  check(header.data_offset() + end == file_bytes && header.data_bytes() == end);
}

void check_rewritten(const glyd::SafetensorsHeader& header) {
  const std::string text = glyd::write_safetensors_header(header.metadata, header.tensors);
  check(text.size() % 128 == 0);
  const auto again = glyd::parse_safetensors_header(text.substr(8), text.size() + header.data_bytes(), "again");
  check(again && again.value().tensors.size() == header.tensors.size() && again.value().metadata == header.metadata);
  for (std::size_t i = 0; i < header.tensors.size(); ++i) {
    const auto &a = header.tensors[i], &b = again.value().tensors[i];
    check(a.name == b.name && a.dtype == b.dtype && a.shape == b.shape && a.begin == b.begin && a.end == b.end);
  }
}

}  // namespace

// Two bytes say how long the data are (times a power of two), the rest is the JSON.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::uint64_t data_bytes = std::uint64_t{data[0]} << data[1] % 57;
  const std::string text(reinterpret_cast<const char*>(data) + 2, size - 2);
  const std::uint64_t file_bytes = 8 + text.size() + data_bytes;
  const auto header = glyd::parse_safetensors_header(text, file_bytes, "fuzz");
  if (!header) {
    check(!header.error().message.empty());
    return 0;
  }
  check(header.value().text == text);
  check_tensors(header.value(), file_bytes);
  check_rewritten(header.value());
  return 0;
}
