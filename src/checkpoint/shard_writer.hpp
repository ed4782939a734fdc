// shard_writer.hpp - one source tensor file becomes one shard, tensor by tensor. Spec: docs/spec/checkpoint.md 2.
//
// Memory: the largest tensor three times at most (its bytes, its pack, and either the packer's working memory or the
// decoded copy), or a batch of small ones of 64 MiB together, whatever the size of the file.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "checkpoint/manifest.hpp"
#include "checkpoint/progress.hpp"
#include "checkpoint/source.hpp"

namespace glyd {

struct ShardOptions {
  Layout layout = Layout::kFast;
  int threads = 0;
  bool verify = true;
  bool hash_file = false;
  std::string model_type;
};

struct FinishedShard {
  std::string shard;
  uint64_t shard_bytes = 0;
  std::string shard_header_sha256;
  std::optional<std::string> source_sha256;
  std::vector<std::pair<std::string, ManifestTensor>> tensors;  // ManifestTensor::file is set
};

// True for tensors that are packed where it pays.
bool is_packable(const TensorEntry& tensor);

// Packs source.tensor_files[index] into the new file `path` and syncs it.
Result<FinishedShard> write_shard(const Source& source, size_t index, const std::filesystem::path& path,
                                  const ShardOptions& options, Progress& progress);

inline SafetensorsMetadata shard_metadata() { return {{"format", "pt"}, {"glyd", kCheckpointFormat}}; }

}  // namespace glyd
