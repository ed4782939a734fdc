#include "checkpoint/restore.hpp"

#include <nlohmann/json.hpp>

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
    GLYD_TRY(const std::string index, read_small(kShardIndexName, kMostManifestBytes, manifest_.index_sha256));
    GLYD_CHECK(config());
    for (const auto& file : manifest_.files)
      GLYD_CHECK(carried_file(file.path, file.path, file.bytes, file.mode, file.sha256));
    for (size_t i = 0; i < manifest_.source_files.size(); ++i) GLYD_CHECK(source_file(i));
    GLYD_CHECK(check_index(index));  // after the shards, whose errors say more
    if (out_) {
      for (const auto& directory : manifest_.directories) GLYD_CHECK(make_directory(*out_ / directory));
    }
    return Ok{};
  }

 private:
  Result<std::string> read_small(const char* name, uint64_t limit, const std::string& sha256) const {
    const fs::path path = packed_.root() / name;
    GLYD_TRY(std::string text, read_text_file(path, limit));
    if (sha256_hex(as_bytes(text)) != sha256) return wrong_hash(path);
    return text;
  }

  static Error wrong_hash(const fs::path& path) {
    return corrupt("{}: does not have the sha256 that {} gives: damaged, or changed since it was packed", path.string(),
                   kManifestName);
  }

  // Loaders find tensors by it, so it must say what the manifest says.
  Result<void> check_index(std::string_view text) const {
    const std::string path = (packed_.root() / kShardIndexName).string();
    GLYD_TRY(const Json document, parse_json_strict(text, path));
    Json weight_map = Json::object();
    uint64_t total = 0;
    for (const auto& [name, tensor] : manifest_.tensors) {
      weight_map[tensor.packed ? name + kPackSuffix : name] = manifest_.source_files[tensor.file].shard;
      GLYD_TRY(const uint64_t carried, tensor_bytes(*tensor.dtype, tensor.shape));
      total += tensor.packed ? tensor.packed->bytes : carried;
    }
    const Json expected = {{"metadata", {{"total_size", total}}}, {"weight_map", std::move(weight_map)}};
    if (document != expected)
      return corrupt("{}: its tensors, shards or total size are not those of {}", path, kManifestName);
    return Ok{};
  }

  Result<void> config() {
    if (!manifest_.config) return Ok{};
    const ManifestConfig& config = *manifest_.config;
    GLYD_TRY(const std::string text, read_small(kConfigName, 2 * kMostConfigBytes, config.sha256));
    const std::string path = (packed_.root() / kConfigName).string();
    GLYD_TRY(const OrderedJson document, parse_config(text, path));
    const auto added = document.find("quantization_config");
    if (added == document.end() || *added != quantization_config(manifest_.layout, manifest_.glyd_version))
      return corrupt("{}: its quantization_config is not what {} says", path, kManifestName);
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
