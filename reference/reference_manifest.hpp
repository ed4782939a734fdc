// reference_manifest.hpp - glyd.json and safetensors headers, read and checked. Section numbers are those of
// docs/spec/checkpoint.md.
#pragma once

#include <map>

#include "glyd_reference.hpp"
#include "reference_basics.hpp"

namespace glyd_reference {

inline constexpr std::string_view kFormat = "glyd-x1";
inline constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;

inline void require(bool holds, const std::string& what) {
  if (!holds) throw Corrupt(what);
}
inline Bytes as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

// The whole file; throws Corrupt if there is none.
std::string read_file(const std::filesystem::path& path);

// `value` is an object with exactly these members.
void require_members(const Json& value, const std::string& what, std::initializer_list<std::string_view> names);
inline const Json& member(const Json& value, std::string_view name) { return *value.find(name); }

struct TensorEntry {
  std::string name, dtype;
  std::vector<std::uint64_t> shape;
  std::uint64_t begin = 0, end = 0;
};

struct Safetensors {
  std::vector<TensorEntry> tensors;  // in data order
  std::vector<std::string> header_order;
  Json metadata;
  std::uint64_t data_bytes = 0;
};

struct SourceFile {
  std::string path, header, shard;
  std::uint64_t bytes = 0, mode = 0, shard_bytes = 0;
  std::string sha256, shard_header_sha256;  // sha256 may be empty
  Safetensors tensors;                      // of the kept header
};

struct PackedEntry {
  std::string layout;
  bool transposed = false;
  std::uint64_t bytes = 0;
  std::map<std::string, std::uint64_t> parameters;
};

struct ManifestTensor {
  std::uint64_t file = 0;
  std::string dtype, sha256;
  std::vector<std::uint64_t> shape;
  bool packed = false;
  PackedEntry pack;
};

struct CarriedFile {
  std::string path, sha256;
  std::uint64_t bytes = 0;
  std::uint64_t mode = 0;
};

struct Manifest {
  std::string layout, kind, version;
  std::vector<SourceFile> source_files;
  std::map<std::string, ManifestTensor> tensors;
  std::vector<CarriedFile> files;
  std::vector<std::string> directories;
  bool has_config = false;
  std::string config_sha256;
  CarriedFile original_config;
  std::string index_sha256;
};

Safetensors read_safetensors_header(std::string_view header, const std::string& what);

// The manifest of a directory, checked as far as it can be without the other files.
Manifest read_manifest(const std::filesystem::path& directory);

// A tensor's name in its shard (2).
std::string stored_name(const std::string& name, const ManifestTensor& tensor);

}  // namespace glyd_reference
