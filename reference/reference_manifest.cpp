// reference_manifest.cpp - reads glyd.json (docs/spec/checkpoint.md 3) and safetensors headers (5).
#include "reference_manifest.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <set>

namespace glyd_reference {

namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file || !fs::is_regular_file(path)) throw Corrupt(path.string() + ": missing or not a file");
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (file.bad()) throw std::runtime_error(path.string() + ": cannot be read");
  return bytes;
}

void require_members(const Json& value, const std::string& what, std::initializer_list<std::string_view> names) {
  require(value.kind == Json::Kind::kObject, what + ": not an object");
  for (const auto name : names) require(value.find(name) != nullptr, what + ": no member " + std::string(name));
  require(value.keys.size() == names.size(), what + ": unknown members");
}

namespace {

// 3: relative, with /, no component empty, . or .. ; a NUL byte cannot stand in a file's name.
bool is_plain_path(std::string_view path) {
  if (path.find('\0') != std::string_view::npos) return false;
  for (std::size_t begin = 0;;) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") return false;
    if (end == path.size()) return true;
    begin = end + 1;
  }
}

// ---- JSON by schema ----

using Kind = Json::Kind;

std::string string_of(const Json& value, const std::string& what) {
  require(value.kind == Kind::kString, what + ": not a string");
  return value.text;
}

std::uint64_t integer_of(const Json& value, const std::string& what) {
  require(value.kind == Kind::kNumber && value.text.size() <= 19 &&
              value.text.find_first_not_of("0123456789") == std::string::npos,
          what + ": not a non-negative integer below 10^19");
  return std::stoull(value.text);
}

std::string hash_of(const Json& value, const std::string& what) {
  const std::string text = string_of(value, what);
  require(text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos,
          what + ": not a sha256");
  return text;
}

std::uint64_t mode_of(const Json& value, const std::string& what) {
  const std::uint64_t mode = integer_of(value, what);
  require(mode <= 0777, what + ": not permission bits");
  return mode;
}

std::string path_of(const Json& value, const std::string& what) {
  const std::string path = string_of(value, what);
  require(is_plain_path(path), what + ": not a plain relative path");
  return path;
}

const std::vector<Json>& list_of(const Json& value, const std::string& what) {
  require(value.kind == Kind::kArray, what + ": not a list");
  return value.items;
}

// ---- safetensors headers ----

unsigned bits_of_dtype(const std::string& dtype) {
  static const std::map<std::string, unsigned> kBits{
      {"BOOL", 8},        {"U8", 8},          {"I8", 8},    {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8},
      {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"F4", 4},    {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"I16", 16},
      {"U16", 16},        {"F16", 16},        {"BF16", 16}, {"I32", 32},    {"U32", 32},    {"F32", 32},
      {"I64", 64},        {"U64", 64},        {"F64", 64},  {"C64", 64}};
  const auto found = kBits.find(dtype);
  return found == kBits.end() ? 0 : found->second;
}

std::vector<std::uint64_t> shape_of(const Json& value, const std::string& what) {
  std::vector<std::uint64_t> shape;
  for (const Json& item : list_of(value, what)) shape.push_back(integer_of(item, what));
  return shape;
}

// 5: offsets ascend without holes or overlap, sizes equal dtype x shape.
TensorEntry read_entry(const Json& value, const std::string& name, const std::string& what) {
  require(!name.empty() && name.find('\0') == std::string::npos && ("/" + name + "/").find("/../") == std::string::npos,
          what + ": not a tensor's name");
  require_members(value, what, {"dtype", "shape", "data_offsets"});
  TensorEntry entry{name, string_of(member(value, "dtype"), what), shape_of(member(value, "shape"), what), 0, 0};
  const auto& offsets = list_of(member(value, "data_offsets"), what);
  require(offsets.size() == 2, what + ": data_offsets are not two");
  entry.begin = integer_of(offsets[0], what);
  entry.end = integer_of(offsets[1], what);
  require(entry.begin <= entry.end, what + ": ends before it begins");
  unsigned __int128 bits = bits_of_dtype(entry.dtype);
  require(bits != 0, what + ": unknown dtype " + entry.dtype);
  const bool empty = std::find(entry.shape.begin(), entry.shape.end(), 0u) != entry.shape.end();
  for (const auto side : entry.shape) {
    bits = empty ? 0 : bits * side;
    require(bits >> 66 == 0, what + ": its size overflows");
  }
  require(bits % 8 == 0 && bits / 8 == entry.end - entry.begin, what + ": size is not that of its dtype and shape");
  return entry;
}

}  // namespace

Safetensors read_safetensors_header(std::string_view header, const std::string& what) {
  require(header.size() <= kMaxHeaderBytes, what + ": header above 100 MB");
  require(!header.empty() && header[0] == '{', what + ": header does not begin with {");
  const Json json = parse_json(header, what);
  Safetensors file;
  for (std::size_t i = 0; i < json.keys.size(); ++i) {
    file.header_order.push_back(json.keys[i]);
    if (json.keys[i] == "__metadata__") {
      file.metadata = json.items[i];
      require(file.metadata.kind == Kind::kObject, what + ": __metadata__ is not an object");
      for (const Json& item : file.metadata.items) string_of(item, what + ": __metadata__");
    } else {
      file.tensors.push_back(read_entry(json.items[i], json.keys[i], what + ": " + json.keys[i]));
    }
  }
  std::stable_sort(file.tensors.begin(), file.tensors.end(),
                   [](const auto& a, const auto& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
  for (const auto& tensor : file.tensors) {
    require(tensor.begin == file.data_bytes, what + ": " + tensor.name + ": a hole or an overlap before it");
    file.data_bytes = tensor.end;
  }
  return file;
}

namespace {

// ---- 3: the manifest ----

SourceFile read_source_file(const Json& value, const std::string& what) {
  require_members(value, what,
                  {"path", "bytes", "mode", "header", "sha256", "shard", "shard_bytes", "shard_header_sha256"});
  SourceFile file;
  file.path = path_of(member(value, "path"), what + ": path");
  file.bytes = integer_of(member(value, "bytes"), what + ": bytes");
  file.mode = mode_of(member(value, "mode"), what + ": mode");
  file.header = string_of(member(value, "header"), what + ": header");
  if (member(value, "sha256").kind != Kind::kNull) file.sha256 = hash_of(member(value, "sha256"), what + ": sha256");
  file.shard = path_of(member(value, "shard"), what + ": shard");
  file.shard_bytes = integer_of(member(value, "shard_bytes"), what + ": shard_bytes");
  file.shard_header_sha256 = hash_of(member(value, "shard_header_sha256"), what + ": shard_header_sha256");
  file.tensors = read_safetensors_header(file.header, what + ": header");
  require(file.bytes == 8 + file.header.size() + file.tensors.data_bytes, what + ": bytes are not those of its header");
  return file;
}

PackedEntry read_packed(const Json& value, const std::string& what) {
  require_members(value, what, {"layout", "reduction_axis", "bytes", "parameters"});
  PackedEntry pack;
  pack.layout = string_of(member(value, "layout"), what + ": layout");
  require(pack.layout == "fast" || pack.layout == "small", what + ": unknown layout");
  const Json& axis = member(value, "reduction_axis");
  require(axis.kind == Kind::kNumber && (axis.text == "-1" || axis.text == "-2"),
          what + ": reduction_axis is not -1 or -2");
  pack.transposed = axis.text == "-2";
  pack.bytes = integer_of(member(value, "bytes"), what + ": bytes");
  const Json& parameters = member(value, "parameters");
  if (pack.layout == "fast") {
    require_members(parameters, what + ": parameters", {"base", "slot_bytes"});
  } else {
    require_members(parameters, what + ": parameters", {"min_bits", "symbols"});
  }
  for (std::size_t i = 0; i < parameters.keys.size(); ++i)
    pack.parameters[parameters.keys[i]] = integer_of(parameters.items[i], what);
  return pack;
}

ManifestTensor read_tensor(const Json& value, const std::string& what) {
  require_members(value, what, {"file", "dtype", "shape", "sha256", "packed"});
  ManifestTensor tensor;
  tensor.file = integer_of(member(value, "file"), what + ": file");
  tensor.dtype = string_of(member(value, "dtype"), what + ": dtype");
  tensor.shape = shape_of(member(value, "shape"), what + ": shape");
  tensor.sha256 = hash_of(member(value, "sha256"), what + ": sha256");
  tensor.packed = member(value, "packed").kind != Kind::kNull;
  if (tensor.packed) {
    tensor.pack = read_packed(member(value, "packed"), what + ": packed");
    require(tensor.dtype == "BF16" && (tensor.shape.size() == 2 || tensor.shape.size() == 3),
            what + ": packed, but no bf16 matrix");
  }
  return tensor;
}

CarriedFile read_carried(const Json& value, const std::string& what) {
  require_members(value, what, {"path", "bytes", "sha256", "mode"});
  CarriedFile file;
  file.path = path_of(member(value, "path"), what + ": path");
  file.bytes = integer_of(member(value, "bytes"), what + ": bytes");
  file.sha256 = hash_of(member(value, "sha256"), what + ": sha256");
  file.mode = mode_of(member(value, "mode"), what + ": mode");
  return file;
}

// The document's own hash: its digits replaced by zeros.
void check_document_hash(std::string document, const Json& root) {
  const Json* hash = root.find("document_sha256");
  require(hash != nullptr, "glyd.json: no member document_sha256");
  const std::string expected = hash_of(*hash, "glyd.json: document_sha256");
  require(document.compare(hash->at + 1, 64, expected) == 0, "glyd.json: document_sha256 is written with escapes");
  document.replace(hash->at + 1, 64, 64, '0');
  require(sha256_hex(as_bytes(document)) == expected, "glyd.json: its own hash is wrong");
}

void read_source(const Json& value, Manifest& manifest) {
  require_members(value, "glyd.json: source", {"kind", "name", "repo", "revision"});
  manifest.kind = string_of(member(value, "kind"), "glyd.json: source: kind");
  require(manifest.kind == "directory" || manifest.kind == "file" || manifest.kind == "memory",
          "glyd.json: source: unknown kind");
  string_of(member(value, "name"), "glyd.json: source: name");
  for (const auto name : {"repo", "revision"}) {
    const Kind kind = member(value, name).kind;
    require(kind == Kind::kNull || kind == Kind::kString, std::string("glyd.json: source: ") + name);
  }
}

void read_config(const Json& value, Manifest& manifest) {
  if (value.kind == Kind::kNull) return;
  require_members(value, "glyd.json: config",
                  {"sha256", "original", "original_sha256", "original_bytes", "original_mode"});
  manifest.has_config = true;
  manifest.config_sha256 = hash_of(member(value, "sha256"), "glyd.json: config: sha256");
  manifest.original_config.path = string_of(member(value, "original"), "glyd.json: config: original");
  require(manifest.original_config.path == "glyd-source/config.json", "glyd.json: config: original is another path");
  manifest.original_config.sha256 = hash_of(member(value, "original_sha256"), "glyd.json: config: original_sha256");
  manifest.original_config.bytes = integer_of(member(value, "original_bytes"), "glyd.json: config: original_bytes");
  manifest.original_config.mode = mode_of(member(value, "original_mode"), "glyd.json: config: original_mode");
}

std::string shard_name(std::size_t number, std::size_t count) {
  char name[64];
  std::snprintf(name, sizeof name, "glyd-%05zu-of-%05zu.safetensors", number, count);
  return name;
}

// 1: names that the format takes for itself.
bool is_taken(const std::string& path, const Manifest& manifest) {
  if (path == "glyd.json" || path == "glyd.safetensors.index.json" || path == "config.json" ||
      path.starts_with("glyd-source/"))
    return true;
  return std::any_of(manifest.source_files.begin(), manifest.source_files.end(),
                     [&](const auto& file) { return file.shard == path; });
}

// The source's paths: each once, and none inside another that is a file.
void check_source_paths(const Manifest& manifest) {
  std::set<std::string> files;
  for (const auto& file : manifest.source_files) {
    require(files.insert(file.path).second, file.path + ": named twice");
    require(!is_taken(file.path, manifest), file.path + ": a name that the format takes for itself");
  }
  for (const auto& file : manifest.files) {
    require(files.insert(file.path).second, file.path + ": named twice");
    require(!is_taken(file.path, manifest), file.path + ": a name that the format takes for itself");
  }
  if (manifest.has_config) files.insert("config.json");
  std::set<std::string> all = files;
  for (const auto& directory : manifest.directories) require(all.insert(directory).second, directory + ": named twice");
  for (const auto& path : all) {
    for (std::size_t at = path.find('/'); at != std::string::npos; at = path.find('/', at + 1)) {
      require(!files.contains(path.substr(0, at)), path + ": lies inside a file");
    }
  }
}

// Every tensor of the kept headers is in `tensors`, and no other.
void check_tensors(const Manifest& manifest) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < manifest.source_files.size(); ++i) {
    for (const auto& entry : manifest.source_files[i].tensors.tensors) {
      const auto found = manifest.tensors.find(entry.name);
      require(found != manifest.tensors.end(), entry.name + ": in a source file, but not in the manifest");
      const ManifestTensor& tensor = found->second;
      require(tensor.file == i && tensor.dtype == entry.dtype && tensor.shape == entry.shape,
              entry.name + ": manifest and kept header differ");
      require(!tensor.packed || tensor.pack.bytes < entry.end - entry.begin, entry.name + ": its pack is not smaller");
      ++count;
    }
  }
  require(count == manifest.tensors.size(), "glyd.json: tensors that no source file has");
}

}  // namespace

Manifest read_manifest(const fs::path& directory) {
  const std::string document = read_file(directory / "glyd.json");
  const Json root = parse_json(document, "glyd.json");
  require(root.kind == Kind::kObject && root.find("format") != nullptr, "glyd.json: no format");
  require(string_of(member(root, "format"), "glyd.json: format") == kFormat, "glyd.json: another format than glyd-x1");
  check_document_hash(document, root);
  require_members(root, "glyd.json",
                  {"format", "glyd_version", "layout", "source", "source_files", "tensors", "files", "directories",
                   "config", "index_sha256", "document_sha256"});
  require(root.keys.back() == "document_sha256", "glyd.json: document_sha256 is not the last member");
  Manifest manifest;
  manifest.version = string_of(member(root, "glyd_version"), "glyd.json: glyd_version");
  manifest.layout = string_of(member(root, "layout"), "glyd.json: layout");
  require(manifest.layout == "fast" || manifest.layout == "small", "glyd.json: unknown layout");
  read_source(member(root, "source"), manifest);
  const auto& source_files = list_of(member(root, "source_files"), "glyd.json: source_files");
  for (std::size_t i = 0; i < source_files.size(); ++i) {
    const std::string what = "glyd.json: source_files " + std::to_string(i);
    manifest.source_files.push_back(read_source_file(source_files[i], what));
    require(manifest.source_files[i].shard == shard_name(i + 1, source_files.size()), what + ": shard is misnamed");
    require(i == 0 || manifest.source_files[i - 1].path < manifest.source_files[i].path,
            what + ": paths do not ascend");
  }
  const Json& tensors = member(root, "tensors");
  require(tensors.kind == Kind::kObject, "glyd.json: tensors is not an object");
  for (std::size_t i = 0; i < tensors.keys.size(); ++i) {
    manifest.tensors[tensors.keys[i]] = read_tensor(tensors.items[i], "glyd.json: " + tensors.keys[i]);
  }
  for (const Json& item : list_of(member(root, "files"), "glyd.json: files")) {
    manifest.files.push_back(read_carried(item, "glyd.json: files"));
    const std::size_t n = manifest.files.size();
    require(n < 2 || manifest.files[n - 2].path < manifest.files[n - 1].path, "glyd.json: files do not ascend");
  }
  for (const Json& item : list_of(member(root, "directories"), "glyd.json: directories")) {
    const std::string path = path_of(item, "glyd.json: directories");
    require(manifest.directories.empty() || manifest.directories.back() < path, "glyd.json: directories do not ascend");
    manifest.directories.push_back(path);
  }
  read_config(member(root, "config"), manifest);
  manifest.index_sha256 = hash_of(member(root, "index_sha256"), "glyd.json: index_sha256");
  if (manifest.kind == "file") {
    require(manifest.source_files.size() == 1 && manifest.files.empty() && manifest.directories.empty() &&
                !manifest.has_config,
            "glyd.json: a source of one file has others");
  }
  check_source_paths(manifest);
  check_tensors(manifest);
  return manifest;
}

std::string stored_name(const std::string& name, const ManifestTensor& tensor) {
  return tensor.packed ? name + "_glyd" : name;
}

}  // namespace glyd_reference
