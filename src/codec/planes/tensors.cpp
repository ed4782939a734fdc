#include "codec/planes/tensors.hpp"

#include <algorithm>
#include <string>
#include <string_view>

#include "codec/format.hpp"
#include "format/safetensors.hpp"

namespace glyd::codec {
namespace {

// Tensors of this size have codes of their own, whatever lies beside them.
constexpr uint64_t kOwnRun = 64 << 10;

int float_bytes_of(std::string_view dtype) {
  if (dtype == "BF16" || dtype == "F16") return 2;
  return dtype == "F32" || dtype == "C64" ? 4 : 0;
}

}  // namespace

TensorMap TensorMap::of(ByteSpan first) {
  TensorMap map;
  if (first.size() < 9 || first[8] != '{') return map;
  const auto bytes = load_le<uint64_t>(first.data());
  if (bytes > std::min<uint64_t>(first.size() - 8, kMostHeaderBytes)) return map;
  std::string text(reinterpret_cast<const char*>(first.data()) + 8, bytes);
  const auto header = parse_safetensors_header(std::move(text), std::nullopt, "content");
  if (!header || header.value().data_bytes() > kMaxContentBytes) return map;
  map.runs_.push_back({header.value().data_offset(), 0});
  for (const TensorEntry& tensor : header.value().tensors) map.add(tensor.bytes(), float_bytes_of(tensor.dtype->name));
  return map;
}

void TensorMap::add(uint64_t bytes, int float_bytes) {
  Run& last = runs_.back();
  const uint64_t last_bytes = last.end - (runs_.size() > 1 ? runs_[runs_.size() - 2].end : 0);
  const bool alike = last.float_bytes == float_bytes && std::min(bytes, last_bytes) < kOwnRun;
  if (alike || bytes < kLeastRun)
    last.end += bytes;
  else
    runs_.push_back({last.end + bytes, float_bytes});
}

TensorMap::Run TensorMap::at(uint64_t position) const {
  const auto run =
      std::upper_bound(runs_.begin(), runs_.end(), position, [](uint64_t p, const Run& r) { return p < r.end; });
  return run == runs_.end() ? Run{UINT64_MAX, std::nullopt} : *run;
}

}  // namespace glyd::codec
