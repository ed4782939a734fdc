// inspect.cpp - what is in a packed directory, a source or one file, read from headers alone.
#include <algorithm>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/packed_directory.hpp"
#include "checkpoint/safetensors_file.hpp"
#include "checkpoint/source.hpp"

namespace glyd {
namespace {

namespace fs = std::filesystem;

double bits_a_weight(uint64_t bytes, uint64_t bf16_bytes) {
  return bf16_bytes == 0 ? 0 : 16 * static_cast<double>(bytes) / static_cast<double>(bf16_bytes);
}

OrderedJson parameters_json(Layout layout, uint32_t base, uint32_t slot_bytes, uint32_t min_bits, uint32_t symbols) {
  if (layout == Layout::kFast) return {{"base", base}, {"slot_bytes", slot_bytes}};
  if (layout == Layout::kSmall) return {{"min_bits", min_bits}, {"symbols", symbols}};
  return OrderedJson::object();
}

void add_pack(OrderedJson& row, const PackHeader& header) {
  row["layout"] = layout_text(header.layout);
  row["stack"] = header.grid.stack;
  row["rows"] = header.grid.rows;
  row["cols"] = header.grid.cols;
  row["reduction_axis"] = header.transposed ? -2 : -1;
  row["fusible"] = header.fusible;
  row["bf16_bytes"] = header.bf16_bytes();
  row["bits_per_weight"] = bits_a_weight(header.pack_bytes, header.bf16_bytes());
  row["parameters"] = parameters_json(header.layout, header.base, header.slot_bytes, header.min_bits, header.symbols);
}

Result<OrderedJson> inspect_packed(const std::string& path) {
  GLYD_TRY(const PackedDirectory packed, PackedDirectory::open(path));
  const Manifest& manifest = packed.manifest();
  GLYD_CHECK(packed.check_index_hash());
  OrderedJson tensors = OrderedJson::array(), shards = OrderedJson::array(), files = OrderedJson::array();
  uint64_t packed_count = 0, bf16_bytes = 0, packed_bytes = 0;
  for (const auto& [name, tensor] : manifest.tensors) {
    const uint64_t bytes = tensor_bytes(*tensor.dtype, tensor.shape).value();
    OrderedJson row = {
        {"name", name}, {"dtype", tensor.dtype->name}, {"shape", tensor.shape}, {"layout", nullptr}, {"bytes", bytes}};
    if (const auto& pack = tensor.packed) {
      row["layout"] = layout_text(pack->layout);
      row["bytes"] = pack->bytes;
      row["bits_per_weight"] = bits_a_weight(pack->bytes, bytes);
      row["reduction_axis"] = pack->transposed ? -2 : -1;
      row["parameters"] = parameters_json(pack->layout, pack->base, pack->slot_bytes, pack->min_bits, pack->symbols);
      ++packed_count;
      bf16_bytes += bytes;
      packed_bytes += pack->bytes;
    }
    tensors.push_back(std::move(row));
  }
  for (size_t i = 0; i < manifest.source_files.size(); ++i) {
    GLYD_CHECK(packed.open_shard(i));  // its structure is checked, as a loader does
    const auto& file = manifest.source_files[i];
    shards.push_back(
        {{"file", file.shard}, {"bytes", file.shard_bytes}, {"source_file", file.path}, {"source_bytes", file.bytes}});
  }
  for (const auto& file : manifest.files) files.push_back({{"path", file.path}, {"bytes", file.bytes}});
  return OrderedJson{{"kind", "packed checkpoint"},
                     {"path", packed.root().string()},
                     {"format", kCheckpointFormat},
                     {"glyd_version", manifest.glyd_version},
                     {"layout", layout_text(manifest.layout)},
                     {"source",
                      {{"name", manifest.name},
                       {"repo", manifest.repo ? OrderedJson(*manifest.repo) : OrderedJson(nullptr)},
                       {"revision", manifest.revision ? OrderedJson(*manifest.revision) : OrderedJson(nullptr)}}},
                     {"tensors_packed", packed_count},
                     {"tensors_carried", manifest.tensors.size() - packed_count},
                     {"bf16_bytes", bf16_bytes},
                     {"packed_bytes", packed_bytes},
                     {"bits_per_weight", bits_a_weight(packed_bytes, bf16_bytes)},
                     {"config_changed", packed.config_changed()},
                     {"shards", std::move(shards)},
                     {"files", std::move(files)},
                     {"tensors", std::move(tensors)}};
}

Result<OrderedJson> inspect_source(const std::string& path, const char* revision) {
  GLYD_TRY(const Source source, open_source(path, revision));
  OrderedJson tensors = OrderedJson::array(), files = OrderedJson::array(), others = OrderedJson::array();
  std::map<std::string, uint64_t> dtypes;
  for (size_t i = 0; i < source.tensor_files.size(); ++i) {
    const auto& file = source.tensor_files[i];
    files.push_back({{"path", file.path}, {"bytes", file.bytes}, {"tensors", source.headers[i].tensors.size()}});
    for (const auto& tensor : source.headers[i].tensors) {
      tensors.push_back({{"name", tensor.name},
                         {"dtype", tensor.dtype->name},
                         {"shape", tensor.shape},
                         {"bytes", tensor.bytes()},
                         {"file", file.path}});
      dtypes[tensor.dtype->name] += tensor.bytes();
    }
  }
  for (const auto& file : source.other_files) others.push_back({{"path", file.path}, {"bytes", file.bytes}});
  return OrderedJson{{"kind", "source"},           {"path", source.root.string()},
                     {"name", source.name},        {"bytes", source.bytes()},
                     {"dtypes", dtypes},           {"tensor_files", std::move(files)},
                     {"files", std::move(others)}, {"tensors", std::move(tensors)}};
}

Result<OrderedJson> inspect_pack(const File& file) {
  if (file.size() < kPackHeaderBytes) return corrupt("{}: {} bytes are no pack", file.path(), file.size());
  uint8_t head[kPackHeaderBytes];
  GLYD_CHECK(file.read_at(0, head));
  auto header = read_pack_header(head, file.size());
  if (!header) return std::move(header).at(file.path()).error();
  OrderedJson document = {{"kind", "pack"}, {"path", file.path()}, {"bytes", file.size()}};
  add_pack(document, header.value());
  return document;
}

// Begins as one does: with the length of a header, and the header's brace.
Result<bool> might_be_safetensors(const File& file) {
  uint8_t head[kPackHeaderBytes] = {};
  if (file.size() < 9) return false;
  GLYD_CHECK(file.read_at(0, MutableByteSpan(head, std::min<uint64_t>(file.size(), sizeof head))));
  const bool is_pack = std::memcmp(head, "GLYW", 4) == 0;
  return is_pack || (load_le<uint64_t>(head) <= kMostHeaderBytes && head[8] == '{');
}

// Any safetensors file; packs in it are named as such.
Result<OrderedJson> inspect_safetensors(const File& file) {
  GLYD_TRY(const SafetensorsHeader header, read_safetensors_header(file));
  OrderedJson tensors = OrderedJson::array(), metadata = OrderedJson::object();
  for (const auto& [key, value] : header.metadata) metadata[key] = value;
  for (const auto& tensor : header.tensors) {
    OrderedJson row = {
        {"name", tensor.name}, {"dtype", tensor.dtype->name}, {"shape", tensor.shape}, {"bytes", tensor.bytes()}};
    if (tensor.name.ends_with(kPackSuffix) && tensor.dtype == find_dtype("U8") && tensor.bytes() >= kPackHeaderBytes) {
      uint8_t head[kPackHeaderBytes];
      GLYD_CHECK(file.read_at(header.data_offset() + tensor.begin, head));
      if (const auto pack = read_pack_header(head, tensor.bytes())) add_pack(row, pack.value());
    }
    tensors.push_back(std::move(row));
  }
  return OrderedJson{{"kind", "safetensors file"},
                     {"path", file.path()},
                     {"bytes", file.size()},
                     {"metadata", std::move(metadata)},
                     {"tensors", std::move(tensors)}};
}

}  // namespace

Result<OrderedJson> inspect_checkpoint(const std::string& path, const char* revision) {
  GLYD_TRY(const Source place, locate_source(path, revision));
  if (place.is_file) {
    GLYD_TRY(const File file, File::open_read(place.root));
    uint8_t magic[4] = {};
    if (file.size() >= sizeof magic) GLYD_CHECK(file.read_at(0, magic));
    if (std::memcmp(magic, "GLYC", sizeof magic) == 0)
      return unsupported("{}: a compressed file; `glyd list` says what is in it", file.path());
    GLYD_TRY(const bool might_be, might_be_safetensors(file));
    if (!might_be && !path.ends_with(".safetensors"))
      return unsupported("{}: neither a .safetensors file nor a pack of glyd's", file.path());
    return std::memcmp(magic, "GLYW", sizeof magic) == 0 ? inspect_pack(file) : inspect_safetensors(file);
  }
  std::error_code error;
  if (fs::exists(place.root / kManifestName, error)) return inspect_packed(place.root.string());
  return inspect_source(path, revision);
}

}  // namespace glyd
