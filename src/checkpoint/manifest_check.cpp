// manifest_check.cpp - do the parts of a manifest agree with each other? Spec: docs/spec/checkpoint.md 2, 3.
#include <algorithm>
#include <set>

#include "checkpoint/manifest.hpp"

namespace glyd {
namespace {

// Every path that a packed directory and its restored source would hold: none twice, none a directory of another, none
// of glyd's own names.
class PathSet {
 public:
  explicit PathSet(std::string_view where) : where_(where) {}
  Result<void> add(const std::string& path) {
    if (!paths_.insert(path).second) return corrupt("{}: path {} is named twice", where_, json_quote(path));
    return Ok{};
  }
  Result<void> check_nesting() const {
    for (const std::string& path : paths_) {
      for (size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1)) {
        if (paths_.contains(path.substr(0, slash))) {
          return corrupt("{}: path {} lies inside {}, which is a file", where_, json_quote(path),
                         json_quote(path.substr(0, slash)));
        }
      }
    }
    return Ok{};
  }

 private:
  std::string_view where_;
  std::set<std::string> paths_;
};

bool is_taken(const std::string& path) {
  return path == kManifestName || path == kShardIndexName || path.starts_with(kKeptPrefix) || path + "/" == kKeptPrefix;
}

Result<void> check_paths(const Manifest& manifest, std::string_view where) {
  PathSet paths(where);
  for (const auto& file : manifest.source_files) {
    GLYD_CHECK(paths.add(file.path));
    GLYD_CHECK(paths.add(file.shard));
  }
  for (const auto& file : manifest.files) {
    if (is_taken(file.path)) return corrupt("{}: files: {} is a name of glyd's own", where, json_quote(file.path));
    GLYD_CHECK(paths.add(file.path));
  }
  for (const auto& directory : manifest.directories) {
    if (is_taken(directory))
      return corrupt("{}: directories: {} is a name of glyd's own", where, json_quote(directory));
    GLYD_CHECK(paths.add(directory));
  }
  if (manifest.config) GLYD_CHECK(paths.add(kConfigName));
  const auto by_path = [](const ManifestFile& a, const ManifestFile& b) { return a.path < b.path; };
  if (!std::is_sorted(manifest.files.begin(), manifest.files.end(), by_path))
    return corrupt("{}: files are not sorted by path", where);
  if (!std::is_sorted(manifest.directories.begin(), manifest.directories.end()))
    return corrupt("{}: directories are not sorted", where);
  return paths.check_nesting();
}

Result<void> check_packed(const ManifestTensor& tensor, const std::string& place) {
  if (std::string_view(tensor.dtype->name) != "BF16" || (tensor.shape.size() != 2 && tensor.shape.size() != 3)) {
    return corrupt("{}: {} {} cannot be packed (2-D and 3-D BF16 only)", place, tensor.dtype->name,
                   shape_text(tensor.shape));
  }
  auto shape = check_shape(grid_of(tensor.shape, tensor.packed->transposed));
  if (!shape) return std::move(shape).at(place).error();
  GLYD_TRY(const uint64_t bytes, tensor_bytes(*tensor.dtype, tensor.shape));
  if (tensor.packed->bytes >= bytes)
    return corrupt("{}: a pack of {} bytes is not smaller than its {} bf16 bytes", place, tensor.packed->bytes, bytes);
  return Ok{};
}

// The kept header and the tensors' entries must describe the same file.
Result<size_t> check_source_file(const Manifest& manifest, uint64_t index, std::string_view where,
                                 SafetensorsHeader& header) {
  const ManifestSourceFile& file = manifest.source_files[index];
  const std::string place = fmt::format("{}: header of {}", where, file.path);
  if (file.shard != shard_name(index, manifest.source_files.size()))
    return corrupt("{}: shard {} of {} is not named {}", where, json_quote(file.shard), file.path,
                   shard_name(index, manifest.source_files.size()));
  GLYD_TRY(header, parse_safetensors_header(file.header, file.bytes, place));
  for (const TensorEntry& entry : header.tensors) {
    const auto found = manifest.tensors.find(entry.name);
    if (found == manifest.tensors.end())
      return corrupt("{}: tensor {} is missing from the manifest", place, json_quote(entry.name));
    const ManifestTensor& tensor = found->second;
    if (tensor.file != index || tensor.dtype != entry.dtype || tensor.shape != entry.shape) {
      return corrupt("{}: tensor {} has another file, dtype or shape in the manifest", place, json_quote(entry.name));
    }
    if (tensor.packed) GLYD_CHECK(check_packed(tensor, fmt::format("{}: tensor {}", where, json_quote(entry.name))));
  }
  return header.tensors.size();
}

}  // namespace

Result<void> check_manifest(const Manifest& manifest, std::string_view where, std::vector<SafetensorsHeader>& headers) {
  const size_t count = manifest.source_files.size();
  if (count == 0 || count > kMostShards) return corrupt("{}: {} source files", where, count);
  if (manifest.kind == SourceKind::kFile &&
      (count != 1 || !manifest.files.empty() || !manifest.directories.empty() || manifest.config)) {
    return corrupt("{}: a source of kind \"file\" has one file and nothing else", where);
  }
  GLYD_CHECK(check_paths(manifest, where));
  headers.assign(count, {});
  size_t named = 0;
  for (size_t i = 0; i < count; ++i) {
    GLYD_TRY(const size_t tensors, check_source_file(manifest, i, where, headers[i]));
    named += tensors;
  }
  // Each header's tensors are in the manifest and say which file they are of, so equal counts leave none over.
  if (named != manifest.tensors.size())
    return corrupt("{}: {} tensors in the manifest, {} in the kept headers", where, manifest.tensors.size(), named);
  for (const auto& [name, tensor] : manifest.tensors) {
    if (tensor.packed && manifest.tensors.contains(name + kPackSuffix)) {
      return corrupt("{}: tensor {} is beside a packed {}", where, json_quote(name + kPackSuffix), json_quote(name));
    }
  }
  return Ok{};
}

}  // namespace glyd
