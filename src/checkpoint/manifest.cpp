#include "checkpoint/manifest.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/sha256.hpp"

namespace glyd {
namespace {

const char* kind_text(SourceKind kind) {
  return kind == SourceKind::kDirectory ? "directory" : kind == SourceKind::kFile ? "file" : "memory";
}

OrderedJson optional_json(const std::optional<std::string>& value) {
  return value ? OrderedJson(*value) : OrderedJson(nullptr);
}

OrderedJson source_file_json(const ManifestSourceFile& file) {
  return {{"path", file.path},
          {"bytes", file.bytes},
          {"mode", file.mode},
          {"header", file.header},
          {"sha256", optional_json(file.sha256)},
          {"shard", file.shard},
          {"shard_bytes", file.shard_bytes},
          {"shard_header_sha256", file.shard_header_sha256}};
}

OrderedJson packed_json(const PackedTensor& packed) {
  OrderedJson parameters;
  if (packed.layout == Layout::kFast) {
    parameters = {{"base", packed.base}, {"slot_bytes", packed.slot_bytes}};
  } else {
    parameters = {{"min_bits", packed.min_bits}, {"symbols", packed.symbols}};
  }
  return {{"layout", layout_text(packed.layout)},
          {"reduction_axis", packed.transposed ? -2 : -1},
          {"bytes", packed.bytes},
          {"parameters", parameters}};
}

// A packed tensor is never in `raw`: it would not be smaller.
Result<Layout> layout_named(const std::string& name, std::string_view where) {
  if (name == "fast") return Layout::kFast;
  if (name == "small") return Layout::kSmall;
  return corrupt("{}: unknown layout {} (known: fast, small)", where, json_quote(name));
}

Result<uint32_t> small_number(JsonFields& fields, const char* name, uint32_t limit) {
  GLYD_TRY(const uint64_t value, fields.number(name));
  if (value > limit) return corrupt("{}: \"{}\" is {}, more than {}", fields.where(), name, value, limit);
  return static_cast<uint32_t>(value);
}

Result<uint64_t> mode_bits(JsonFields& fields, const char* name) {
  GLYD_TRY(const uint32_t mode, small_number(fields, name, 0777));
  return uint64_t{mode};
}

Result<std::string> plain_path(JsonFields& fields, const char* name) {
  GLYD_TRY(std::string path, fields.string(name));
  if (!is_plain_path(path))
    return corrupt("{}: \"{}\" {} is not a plain relative path", fields.where(), name, json_quote(path));
  return path;
}

Result<PackedTensor> packed_from_json(const Json& value, std::string where) {
  GLYD_TRY(JsonFields fields, JsonFields::of(value, where));
  PackedTensor packed;
  GLYD_TRY(const std::string layout, fields.string("layout"));
  GLYD_TRY(packed.layout, layout_named(layout, where));
  GLYD_TRY(const int64_t axis, fields.integer("reduction_axis"));
  if (axis != -1 && axis != -2) return corrupt("{}: reduction_axis {} is neither -1 nor -2", where, axis);
  packed.transposed = axis == -2;
  GLYD_TRY(packed.bytes, fields.number("bytes"));
  if (packed.bytes % kPackAlignment != 0 || packed.bytes == 0)
    return corrupt("{}: {} bytes are no pack (not a multiple of 128)", where, packed.bytes);
  GLYD_TRY(const Json* parameters_value, fields.object("parameters"));
  GLYD_TRY(JsonFields parameters, JsonFields::of(*parameters_value, where + ": parameters"));
  if (packed.layout == Layout::kFast) {
    GLYD_TRY(packed.base, small_number(parameters, "base", fast::kMostBase));
    GLYD_TRY(packed.slot_bytes, small_number(parameters, "slot_bytes", fast::kMostSlotBytes));
  } else {
    GLYD_TRY(packed.min_bits, small_number(parameters, "min_bits", small::kMostMinBits));
    GLYD_TRY(packed.symbols, small_number(parameters, "symbols", small::kMostSymbols));
  }
  GLYD_CHECK(parameters.finish());
  GLYD_CHECK(fields.finish());
  return packed;
}

Result<ManifestSourceFile> source_file_from_json(const Json& value, std::string where) {
  GLYD_TRY(JsonFields fields, JsonFields::of(value, std::move(where)));
  ManifestSourceFile file;
  GLYD_TRY(file.path, plain_path(fields, "path"));
  GLYD_TRY(file.bytes, fields.number("bytes"));
  GLYD_TRY(file.mode, mode_bits(fields, "mode"));
  GLYD_TRY(file.header, fields.string("header"));
  GLYD_TRY(file.sha256, fields.string_or_null("sha256"));
  if (file.sha256 && !is_hex(*file.sha256, 64))
    return corrupt("{}: \"sha256\" is not 64 lower-case hexadecimal digits", fields.where());
  GLYD_TRY(file.shard, fields.string("shard"));
  GLYD_TRY(file.shard_bytes, fields.number("shard_bytes"));
  GLYD_TRY(file.shard_header_sha256, fields.sha256("shard_header_sha256"));
  GLYD_CHECK(fields.finish());
  return file;
}

Result<ManifestFile> file_from_json(const Json& value, std::string where) {
  GLYD_TRY(JsonFields fields, JsonFields::of(value, std::move(where)));
  ManifestFile file;
  GLYD_TRY(file.path, plain_path(fields, "path"));
  GLYD_TRY(file.bytes, fields.number("bytes"));
  GLYD_TRY(file.sha256, fields.sha256("sha256"));
  GLYD_TRY(file.mode, mode_bits(fields, "mode"));
  GLYD_CHECK(fields.finish());
  return file;
}

Result<ManifestConfig> config_from_json(const Json& value, std::string where) {
  GLYD_TRY(JsonFields fields, JsonFields::of(value, std::move(where)));
  ManifestConfig config;
  GLYD_TRY(config.sha256, fields.sha256("sha256"));
  GLYD_TRY(const std::string original, fields.string("original"));
  if (original != kKeptConfigName) return corrupt("{}: \"original\" is not \"{}\"", fields.where(), kKeptConfigName);
  GLYD_TRY(config.original_sha256, fields.sha256("original_sha256"));
  GLYD_TRY(config.original_bytes, fields.number("original_bytes"));
  GLYD_TRY(config.original_mode, mode_bits(fields, "original_mode"));
  GLYD_CHECK(fields.finish());
  return config;
}

Result<void> source_from_json(const Json& value, std::string where, Manifest& manifest) {
  GLYD_TRY(JsonFields fields, JsonFields::of(value, std::move(where)));
  GLYD_TRY(const std::string kind, fields.string("kind"));
  if (kind != "directory" && kind != "file" && kind != "memory")
    return corrupt("{}: unknown kind {}", fields.where(), json_quote(kind));
  manifest.kind = kind == "directory" ? SourceKind::kDirectory
                  : kind == "file"    ? SourceKind::kFile
                                      : SourceKind::kMemory;
  GLYD_TRY(manifest.name, fields.string("name"));
  GLYD_TRY(manifest.repo, fields.string_or_null("repo"));
  GLYD_TRY(manifest.revision, fields.string_or_null("revision"));
  return fields.finish();
}

// Other programs' names, and later versions of ours, get a sentence of their own.
Result<void> check_format(const Json& document, std::string_view where) {
  const auto found = document.find("format");
  if (found == document.end() || !found->is_string())
    return corrupt("{}: no \"format\": not the manifest of a packed checkpoint", where);
  const auto format = found->get<std::string>();
  if (format == kCheckpointFormat) return Ok{};
  if (format == "glyd-v1" || format == "glyd-v2" || format == "glyd-v3") {
    return foreign_format(
        "{}: format {} belongs to another program of this name; this one reads {} only. Unpack the directory with the "
        "program that made it and pack "
        "the result again",
        where, format, kCheckpointFormat);
  }
  if (format.starts_with("glyd-x")) {
    return foreign_format(
        "{}: format {} is not the one that this version reads ({}); use a glyd of the version that wrote it", where,
        json_quote(format), kCheckpointFormat);
  }
  return foreign_format("{}: unknown format {}; this program reads {}", where, json_quote(format), kCheckpointFormat);
}

// The document's own hash: over its bytes with the 64 digits zeroed. The member is the last, so its digits are the last
// of their kind.
Result<void> check_document_hash(const Json& document, std::string_view text, std::string_view where) {
  const auto found = document.find("document_sha256");
  if (found == document.end() || !found->is_string() || !is_hex(found->get<std::string>(), 64)) {
    return corrupt("{}: \"document_sha256\" is missing or not a sha256", where);
  }
  const auto digits = found->get<std::string>();
  const size_t place = text.rfind(digits);
  if (place == std::string_view::npos || place == 0 || text[place - 1] != '"')
    return corrupt("{}: \"document_sha256\" is not written as plain digits", where);
  std::string zeroed(text);
  zeroed.replace(place, digits.size(), std::string(64, '0'));
  if (sha256_hex(ByteSpan(reinterpret_cast<const uint8_t*>(zeroed.data()), zeroed.size())) != digits) {
    return corrupt("{}: its own sha256 (document_sha256) does not match: the manifest is damaged", where);
  }
  return Ok{};
}

}  // namespace

std::string shard_name(size_t index, size_t count) {
  return fmt::format("glyd-{:05}-of-{:05}.safetensors", index + 1, count);
}

const char* layout_text(Layout layout) {
  return layout == Layout::kFast ? "fast" : layout == Layout::kSmall ? "small" : "raw";
}

Grid grid_of(const std::vector<uint64_t>& shape, bool transposed) {
  Grid grid;
  grid.stack = shape.size() == 3 ? shape[0] : 1;
  grid.rows = shape[shape.size() - 2];
  grid.cols = shape[shape.size() - 1];
  if (transposed) std::swap(grid.rows, grid.cols);
  return grid;
}

bool is_plain_path(std::string_view path) {
  if (path.empty() || path.find('\0') != std::string_view::npos || !is_utf8(path)) return false;
  size_t begin = 0;
  while (begin <= path.size()) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view component = path.substr(begin, end - begin);
    if (component.empty() || component == "." || component == "..") return false;
    begin = end + 1;
  }
  return true;
}

OrderedJson tensor_to_json(const ManifestTensor& tensor) {
  return {{"file", tensor.file},
          {"dtype", tensor.dtype->name},
          {"shape", tensor.shape},
          {"sha256", tensor.sha256},
          {"packed", tensor.packed ? packed_json(*tensor.packed) : OrderedJson(nullptr)}};
}

Result<ManifestTensor> tensor_from_json(const Json& value, std::string where) {
  GLYD_TRY(JsonFields fields, JsonFields::of(value, where));
  ManifestTensor tensor;
  GLYD_TRY(tensor.file, fields.number("file"));
  GLYD_TRY(const std::string dtype, fields.string("dtype"));
  tensor.dtype = find_dtype(dtype);
  if (tensor.dtype == nullptr) return corrupt("{}: unknown dtype {}", where, json_quote(dtype));
  GLYD_TRY(const Json* shape, fields.array("shape"));
  GLYD_TRY(tensor.shape, json_numbers(*shape, where + ": shape"));
  auto bytes = tensor_bytes(*tensor.dtype, tensor.shape);
  if (!bytes) return std::move(bytes).at(where).error();
  GLYD_TRY(tensor.sha256, fields.sha256("sha256"));
  GLYD_TRY(const Json* packed, fields.object_or_null("packed"));
  if (packed != nullptr) {
    GLYD_TRY(tensor.packed, packed_from_json(*packed, where + ": packed"));
  }
  GLYD_CHECK(fields.finish());
  return tensor;
}

std::string write_manifest(const Manifest& manifest) {
  OrderedJson tensors = OrderedJson::object();
  // OrderedJson looks a key up by walking: its pairs are appended as they are, sorted and unique already.
  auto& pairs = tensors.get_ref<OrderedJson::object_t&>();
  for (const auto& [name, tensor] : manifest.tensors) pairs.emplace_back(name, tensor_to_json(tensor));
  OrderedJson source_files = OrderedJson::array();
  for (const auto& file : manifest.source_files) source_files.push_back(source_file_json(file));
  OrderedJson files = OrderedJson::array();
  for (const auto& file : manifest.files) {
    files.push_back({{"path", file.path}, {"bytes", file.bytes}, {"sha256", file.sha256}, {"mode", file.mode}});
  }
  OrderedJson config = nullptr;
  if (manifest.config) {
    config = {{"sha256", manifest.config->sha256},
              {"original", kKeptConfigName},
              {"original_sha256", manifest.config->original_sha256},
              {"original_bytes", manifest.config->original_bytes},
              {"original_mode", manifest.config->original_mode}};
  }
  const OrderedJson document = {{"format", kCheckpointFormat},
                                {"glyd_version", manifest.glyd_version},
                                {"layout", layout_text(manifest.layout)},
                                {"source",
                                 {{"kind", kind_text(manifest.kind)},
                                  {"name", manifest.name},
                                  {"repo", optional_json(manifest.repo)},
                                  {"revision", optional_json(manifest.revision)}}},
                                {"source_files", std::move(source_files)},
                                {"tensors", std::move(tensors)},
                                {"files", std::move(files)},
                                {"directories", manifest.directories},
                                {"config", std::move(config)},
                                {"index_sha256", manifest.index_sha256},
                                {"document_sha256", std::string(64, '0')}};
  std::string text = document.dump(1) + "\n";
  const std::string digits = sha256_hex(ByteSpan(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
  text.replace(text.rfind(std::string(64, '0')), 64, digits);
  return text;
}

Result<Manifest> parse_manifest(std::string_view text, std::string_view where, std::vector<SafetensorsHeader>& headers,
                                std::optional<Error>* wrong_hash) {
  GLYD_TRY(const Json document, parse_json_strict(text, where));
  GLYD_TRY(JsonFields fields, JsonFields::of(document, std::string(where)));
  GLYD_CHECK(check_format(document, where));
  auto own_hash = check_document_hash(document, text, where);
  if (!own_hash && wrong_hash == nullptr) return std::move(own_hash).error();
  if (!own_hash) *wrong_hash = std::move(own_hash).error();
  Manifest manifest;
  GLYD_CHECK(fields.string("format"));
  GLYD_CHECK(fields.string("document_sha256"));
  GLYD_TRY(manifest.glyd_version, fields.string("glyd_version"));
  GLYD_TRY(const std::string layout, fields.string("layout"));
  GLYD_TRY(manifest.layout, layout_named(layout, where));
  GLYD_TRY(const Json* source, fields.object("source"));
  GLYD_CHECK(source_from_json(*source, fmt::format("{}: source", where), manifest));
  GLYD_TRY(const Json* source_files, fields.array("source_files"));
  for (const Json& value : *source_files) {
    GLYD_TRY(ManifestSourceFile file,
             source_file_from_json(value, fmt::format("{}: source_files[{}]", where, manifest.source_files.size())));
    manifest.source_files.push_back(std::move(file));
  }
  GLYD_TRY(const Json* tensors, fields.object("tensors"));
  for (const auto& [name, value] : tensors->items()) {
    GLYD_TRY(ManifestTensor tensor, tensor_from_json(value, fmt::format("{}: tensor {}", where, json_quote(name))));
    manifest.tensors.emplace(name, std::move(tensor));
  }
  GLYD_TRY(const Json* files, fields.array("files"));
  for (const Json& value : *files) {
    GLYD_TRY(ManifestFile file, file_from_json(value, fmt::format("{}: files[{}]", where, manifest.files.size())));
    manifest.files.push_back(std::move(file));
  }
  GLYD_TRY(const Json* directories, fields.array("directories"));
  for (const Json& value : *directories) {
    if (!value.is_string() || !is_plain_path(value.get<std::string>()))
      return corrupt("{}: directories: not a list of plain relative paths", where);
    manifest.directories.push_back(value.get<std::string>());
  }
  GLYD_TRY(const Json* config, fields.object_or_null("config"));
  if (config != nullptr) {
    GLYD_TRY(manifest.config, config_from_json(*config, fmt::format("{}: config", where)));
  }
  GLYD_TRY(manifest.index_sha256, fields.sha256("index_sha256"));
  GLYD_CHECK(fields.finish());
  GLYD_CHECK(check_manifest(manifest, where, headers));
  return manifest;
}

}  // namespace glyd
