// packed_directory.hpp - a packed checkpoint opened for reading: manifest and shard headers checked and matched. Spec:
// docs/spec/checkpoint.md 3, 5.
#pragma once

#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/aligned_buffer.hpp"
#include "base/file.hpp"
#include "checkpoint/faults.hpp"
#include "checkpoint/manifest.hpp"
#include "checkpoint/progress.hpp"

namespace glyd {

// What to do about a damaged file; it follows the message.
inline constexpr const char* kDamageRemedy =
    "fetch the file again, or pack again; `glyd unpack --salvage` restores the rest";

// True if the directory has a glyd.json of a format of ours.
bool looks_packed(const std::filesystem::path& directory);

// A tensor of a source file and where its bytes lie in the shard.
struct ShardTensor {
  const TensorEntry* source = nullptr;  // in the kept header
  const ManifestTensor* manifest = nullptr;
  uint64_t offset = 0, bytes = 0;  // in the shard, from the file's start
};

struct Shard {
  size_t index = 0;
  File file;
  std::vector<ShardTensor> tensors;  // in the source file's data order
};

class PackedDirectory {
 public:
  // Reads the manifest and nothing else. `text` is a directory, or a repo id in the Hugging Face cache. With `faults`,
  // a manifest that can be read though its own hash is wrong is one, and no error: everything else has hashes too.
  static Result<PackedDirectory> open(const std::string& text, Faults* faults = nullptr);

  const std::filesystem::path& root() const { return root_; }
  const Manifest& manifest() const { return manifest_; }
  const SafetensorsHeader& source_header(size_t index) const { return headers_[index]; }

  // A shard with its size, header hash and header checked against the manifest, and its packs' headers against their
  // entries.
  Result<Shard> open_shard(size_t index) const;

  // Loaders find the tensors by the shards' index.
  Result<void> check_index_hash() const;

  // True if config.json is not the one that was packed: missing, or edited since, which may be meant.
  bool config_changed() const;

  // A shard that open_shard refuses, its tensors where the manifest's sizes put them: any of them may be damaged.
  Result<Shard> open_damaged_shard(size_t index) const;

  std::set<std::string> named_files() const;  // every path that a directory of this manifest has
  uint64_t source_files() const;              // how many files the source had
  uint64_t source_bytes() const;              // of all of them

  // Files that the manifest does not name. What hubs and desktops add goes into `ignored` instead (spec 5).
  Result<std::vector<std::string>> foreign_files(std::vector<std::string>& ignored) const;

  // Reads a shard's tensors in the source's order, checks structure and sha256, and hands each one's source bytes to
  // `sink` from the calling thread, in pieces that follow each other. A tensor's hash may only be known after its
  // pieces were handed over: what is made of them counts once this returns.
  using Sink = std::function<Result<void>(ByteSpan bytes)>;
  // Told of each damaged tensor, so that the others are read too; without it the first one ends the walk.
  using OnFault = std::function<void(const ShardTensor& tensor, Error fault)>;
  struct TensorWalk {
    Sink sink;
    OnFault on_fault;
    bool whole_only = false;  // `sink` gets zeros for a damaged tensor, never its bytes
  };
  Result<void> check_tensors(const Shard& shard, int threads, Progress& progress, const TensorWalk& walk) const;

 private:
  struct Pending;
  std::string place(const Shard& shard, const ShardTensor& tensor) const;
  Result<void> match_header(const SafetensorsHeader& header, Shard& shard) const;
  Result<void> match_pack(const Shard& shard, const ShardTensor& tensor, ByteSpan header_bytes) const;
  Result<AlignedBuffer> load(const Shard& shard, const ShardTensor& tensor, int threads) const;
  Result<void> stream_carried(const Shard& shard, const ShardTensor& tensor, Progress& progress,
                              const TensorWalk& walk) const;
  Result<void> check_batch(const Shard& shard, size_t begin, size_t end, int threads, Progress& progress,
                           const TensorWalk& walk, Pending& pending) const;
  Result<void> settle(const Shard& shard, Pending& pending, const TensorWalk& walk) const;
  Error wrong_hash(const Shard& shard, const ShardTensor& tensor) const;

  std::filesystem::path root_;
  Manifest manifest_;
  std::vector<SafetensorsHeader> headers_;
};

}  // namespace glyd
