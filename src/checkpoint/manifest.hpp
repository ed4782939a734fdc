// manifest.hpp - glyd.json: what a packed directory says of itself. Spec: docs/spec/checkpoint.md 3.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "format/json_text.hpp"
#include "format/pack_header.hpp"
#include "format/safetensors.hpp"

namespace glyd {

inline constexpr const char* kCheckpointFormat = "glyd-x1";
inline constexpr const char* kManifestName = "glyd.json";
inline constexpr const char* kShardIndexName = "glyd.safetensors.index.json";
inline constexpr const char* kConfigName = "config.json";
inline constexpr const char* kKeptConfigName = "glyd-source/config.json";
inline constexpr const char* kKeptPrefix = "glyd-source/";
inline constexpr const char* kPackSuffix = "_glyd";
inline constexpr uint64_t kMostManifestBytes = uint64_t{256} << 20;
inline constexpr size_t kMostShards = 99'999;  // five digits in a shard's name

// "glyd-00001-of-00002.safetensors"; `index` from 0.
std::string shard_name(size_t index, size_t count);

// "fast", "small", "raw".
const char* layout_text(Layout layout);

// How a tensor was packed.
struct PackedTensor {
  Layout layout = Layout::kFast;
  bool transposed = false;  // reduction_axis -2
  uint64_t bytes = 0;
  uint32_t base = 0, slot_bytes = 0;   // fast
  uint32_t min_bits = 0, symbols = 0;  // small
};

struct ManifestTensor {
  uint64_t file = 0;
  const Dtype* dtype = nullptr;
  std::vector<uint64_t> shape;
  std::string sha256;
  std::optional<PackedTensor> packed;
};

struct ManifestSourceFile {
  std::string path;
  uint64_t bytes = 0;
  uint64_t mode = 0644;
  std::string header;  // verbatim
  std::optional<std::string> sha256;
  std::string shard;
  uint64_t shard_bytes = 0;
  std::string shard_header_sha256;
};

struct ManifestFile {
  std::string path;
  uint64_t bytes = 0;
  std::string sha256;
  uint64_t mode = 0644;
};

struct ManifestConfig {
  std::string sha256;  // of the edited one
  std::string original_sha256;
  uint64_t original_bytes = 0;
  uint64_t original_mode = 0644;
};

enum class SourceKind { kDirectory, kFile, kMemory };

struct Manifest {
  std::string glyd_version;
  Layout layout = Layout::kFast;
  SourceKind kind = SourceKind::kDirectory;
  std::string name;
  std::optional<std::string> repo, revision;
  std::vector<ManifestSourceFile> source_files;
  std::map<std::string, ManifestTensor> tensors;
  std::vector<ManifestFile> files;
  std::vector<std::string> directories;
  std::optional<ManifestConfig> config;
  std::string index_sha256;
};

// The document, document_sha256 filled in.
std::string write_manifest(const Manifest& manifest);

// Checks the document's hash, its schema and that its parts agree with each other; `where` is the file's path.
// `headers` gets the parsed header of each source file. With `wrong_hash`, a wrong hash of the document goes there and
// the rest is read all the same.
Result<Manifest> parse_manifest(std::string_view text, std::string_view where, std::vector<SafetensorsHeader>& headers,
                                std::optional<Error>* wrong_hash = nullptr);

// The second half of parse_manifest: do the parts agree with each other?
Result<void> check_manifest(const Manifest& manifest, std::string_view where, std::vector<SafetensorsHeader>& headers);

// One tensor's entry, as in the manifest (the journal keeps the same).
OrderedJson tensor_to_json(const ManifestTensor& tensor);
Result<ManifestTensor> tensor_from_json(const Json& value, std::string where);

// The grid that a packed tensor of this shape has.
Grid grid_of(const std::vector<uint64_t>& shape, bool transposed);

// A relative path with '/', UTF-8, no empty component, no "." or "..", no NUL.
bool is_plain_path(std::string_view path);

}  // namespace glyd
