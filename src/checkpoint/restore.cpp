#include "checkpoint/restore.hpp"

#include "base/sha256.hpp"
#include "checkpoint/model_config.hpp"
#include "checkpoint/streams.hpp"

namespace glyd {
namespace {

namespace fs = std::filesystem;

class Restorer {
 public:
  Restorer(const PackedDirectory& packed, int threads, Progress& progress, const std::optional<fs::path>& out)
      : packed_(packed), manifest_(packed.manifest()), threads_(threads), progress_(progress), out_(out) {}

  Result<void> run() {
    GLYD_CHECK(packed_.check_listing());
    if (out_ && manifest_.kind != SourceKind::kFile) GLYD_CHECK(make_directory(*out_));
    GLYD_CHECK(check_small(kShardIndexName, kMostManifestBytes, manifest_.index_sha256));
    GLYD_CHECK(config());
    for (const auto& file : manifest_.files)
      GLYD_CHECK(carried_file(file.path, file.path, file.bytes, file.mode, file.sha256));
    for (size_t i = 0; i < manifest_.source_files.size(); ++i) GLYD_CHECK(source_file(i));
    if (out_) {
      for (const auto& directory : manifest_.directories) GLYD_CHECK(make_directory(*out_ / directory));
    }
    return Ok{};
  }

 private:
  Result<void> check_small(const char* name, uint64_t limit, const std::string& sha256) const {
    const fs::path path = packed_.root() / name;
    GLYD_TRY(const std::string text, read_text_file(path, limit));
    if (sha256_hex(as_bytes(text)) != sha256) return wrong_hash(path);
    return Ok{};
  }

  static Error wrong_hash(const fs::path& path) {
    return corrupt("{}: does not have the sha256 that {} gives: damaged, or changed since it was packed", path.string(),
                   kManifestName);
  }

  Result<void> config() {
    if (!manifest_.config) return Ok{};
    const ManifestConfig& config = *manifest_.config;
    GLYD_CHECK(check_small(kConfigName, 2 * kMostConfigBytes, config.sha256));
    return carried_file(kKeptConfigName, kConfigName, config.original_bytes, config.original_mode,
                        config.original_sha256);
  }

  Result<void> carried_file(const std::string& from, const std::string& to, uint64_t bytes, uint64_t mode,
                            const std::string& sha256) {
    const fs::path path = packed_.root() / from;
    GLYD_TRY(const File file, File::open_read(path));
    if (file.size() != bytes)
      return corrupt("{}: {} bytes, but {} gives {}: damaged, or changed since it was packed", path.string(),
                     file.size(), kManifestName, bytes);
    File copy;
    if (out_) {
      GLYD_CHECK(make_parents(*out_, to));
      GLYD_TRY(copy, File::create(*out_ / to));
    }
    GLYD_TRY(const std::string hash, copy_range(file, 0, bytes, out_ ? &copy : nullptr, progress_, to));
    if (hash != sha256) return wrong_hash(path);
    return out_ ? finish_file(copy, mode) : Ok{};
  }

  Result<void> source_file(size_t index) {
    const ManifestSourceFile& file = manifest_.source_files[index];
    GLYD_TRY(const Shard shard, packed_.open_shard(index));
    File output;
    if (out_ && manifest_.kind == SourceKind::kFile) {
      GLYD_TRY(output, File::create(*out_));
    } else if (out_) {
      GLYD_CHECK(make_parents(*out_, file.path));
      GLYD_TRY(output, File::create(*out_ / file.path));
    }
    Sha256 whole;
    const auto sink = [&](ByteSpan bytes) -> Result<void> {
      if (file.sha256) whole.update(bytes);
      return out_ ? output.write(bytes) : Ok{};
    };
    uint8_t length[8];
    store_le<uint64_t>(length, file.header.size());
    GLYD_CHECK(sink(length));
    GLYD_CHECK(sink(as_bytes(file.header)));
    GLYD_CHECK(progress_.advance(8 + file.header.size(), file.path));
    GLYD_CHECK(packed_.check_tensors(shard, threads_, progress_, sink));
    if (file.sha256 && whole.hex() != *file.sha256) {
      return corrupt("{}: the file restored from it, {}, does not have the sha256 that {} gives", shard.file.path(),
                     file.path, kManifestName);
    }
    return out_ ? finish_file(output, file.mode) : Ok{};
  }

  const PackedDirectory& packed_;
  const Manifest& manifest_;
  int threads_;
  Progress& progress_;
  const std::optional<fs::path>& out_;
};

}  // namespace

Result<void> check_everything(const PackedDirectory& packed, int threads, Progress& progress,
                              const std::optional<fs::path>& out) {
  return Restorer(packed, threads, progress, out).run();
}

}  // namespace glyd
