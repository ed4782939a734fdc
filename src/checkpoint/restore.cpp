#include "checkpoint/restore.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/sha256.hpp"
#include "checkpoint/hf_cache.hpp"
#include "checkpoint/model_config.hpp"
#include "checkpoint/streams.hpp"

namespace glyd {
namespace {

namespace fs = std::filesystem;

constexpr const char* kChanged =
    "damaged, or changed since it was packed; fetch it again, or pack the changed source; `glyd unpack --salvage` "
    "restores it as it is";
constexpr const char* kOwnChanged = "damaged, or changed since it was packed; fetch it again, or pack again";

class Restorer {
 public:
  Restorer(const PackedDirectory& packed, const RestoreOptions& options, Progress& progress)
      : packed_(packed), manifest_(packed.manifest()), options_(options), out_(options.out), progress_(progress) {}

  Result<void> run() {
    if (!options_.salvage) GLYD_CHECK(listing());
    GLYD_CHECK(find_missing());
    if (out_ && manifest_.kind != SourceKind::kFile) GLYD_CHECK(make_directory(*out_));
    std::optional<std::string> index;
    if (wanted(kShardIndexName) && !options_.salvage)
      GLYD_CHECK(note(read_small(kShardIndexName, kMostManifestBytes, manifest_.index_sha256, index)));
    GLYD_CHECK(config());
    for (const auto& file : manifest_.files)
      GLYD_CHECK(carried_file(file.path, file.path, file.bytes, file.mode, file.sha256));
    for (size_t i = 0; i < manifest_.source_files.size(); ++i) GLYD_CHECK(source_file(i));
    if (index) GLYD_CHECK(note(check_index(*index)));  // after the shards, whose errors say more
    if (out_) {
      for (const auto& directory : manifest_.directories) GLYD_CHECK(make_directory(*out_ / directory));
    }
    return Ok{};
  }

 private:
  // A fault is written down where all are wanted. Every other error ends the walk, one of writing too.
  Result<void> note(Result<void> done, const char* consequence = "") {
    if (done || options_.faults == nullptr || !is_fault(done.error())) return done;
    const bool of_writing =
        done.error().status == GLYD_ERROR_IO && out_ && done.error().message.find(out_->string()) != std::string::npos;
    if (of_writing) return done;
    if (options_.salvage) {  // which is what the remedy asks for
      std::string& message = done.error().message;
      message.resize(std::min(message.size(), message.find("; `glyd unpack --salvage`")));
      message += consequence;
    }
    options_.faults->add(std::move(done).error());
    return Ok{};
  }

  bool wanted(const std::string& path) const { return !missing_.contains(path); }

  void count(uint64_t Losses::*files, uint64_t bytes) const {
    if (options_.losses == nullptr) return;
    ++(options_.losses->*files);
    options_.losses->bytes += bytes;
  }
  uint64_t fault_count() const { return options_.faults == nullptr ? 0 : options_.faults->count(); }

  Result<void> listing() {
    std::vector<std::string> ignored;
    auto foreign = packed_.foreign_files(ignored);
    if (options_.ignored != nullptr) *options_.ignored = std::move(ignored);
    if (!foreign) return note(std::move(foreign).error());
    for (const auto& path : foreign.value()) {
      GLYD_CHECK(note(corrupt(
          "{}: not a file of this checkpoint ({} does not name it); remove it, or pack again with it in the source",
          (packed_.root() / path).string(), kManifestName)));
    }
    return Ok{};
  }

  bool leads_out(const fs::path& place) const {
    std::error_code error;
    if (!options_.salvage || !fs::is_symlink(place, error)) return false;
    const fs::path real = fs::canonical(place, error), blobs = blobs_of_snapshot(packed_.root());
    return !error && !is_inside(real, packed_.root()) && (blobs.empty() || !is_inside(real, blobs));
  }

  Result<void> find_missing() {
    for (const auto& path : packed_.named_files()) {
      const fs::path place = packed_.root() / path;
      std::error_code error;
      if (leads_out(place)) {  // listing() has refused it unless this is a salvage
        missing_.insert(path);
        GLYD_CHECK(note(unsupported("{}: a symbolic link that leaves the directory", place.string()), "; left out"));
        continue;
      }
      if (fs::exists(place, error) && !fs::is_directory(place, error)) continue;
      missing_.insert(path);
      // Salvage has no use for files that only loaders read.
      if (options_.salvage && (path == kShardIndexName || path == kConfigName)) continue;
      GLYD_CHECK(note(corrupt("{}: missing, though {} names it; {}", place.string(), kManifestName, kDamageRemedy),
                      "; left out"));
    }
    return Ok{};
  }

  Result<void> read_small(const char* name, uint64_t limit, const std::string& sha256,
                          std::optional<std::string>& text) const {
    const fs::path path = packed_.root() / name;
    GLYD_TRY(std::string read, read_text_file(path, limit));
    if (sha256_hex(as_bytes(read)) != sha256) return wrong_hash(path, kOwnChanged);
    text = std::move(read);
    return Ok{};
  }

  static Error wrong_hash(const fs::path& path, const char* remedy) {
    return corrupt("{}: does not have the sha256 that {} gives: {}", path.string(), kManifestName, remedy);
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
    if (wanted(kConfigName) && !options_.salvage) GLYD_CHECK(note(check_edited_config(config)));
    return carried_file(kKeptConfigName, kConfigName, config.original_bytes, config.original_mode,
                        config.original_sha256);
  }

  Result<void> check_edited_config(const ManifestConfig& config) const {
    std::optional<std::string> text;
    GLYD_CHECK(read_small(kConfigName, 2 * kMostConfigBytes, config.sha256, text));
    const std::string path = (packed_.root() / kConfigName).string();
    GLYD_TRY(const OrderedJson document, parse_config(*text, path));
    const auto added = document.find("quantization_config");
    if (added == document.end() || *added != quantization_config(manifest_.layout, manifest_.glyd_version))
      return corrupt("{}: its quantization_config is not what {} says", path, kManifestName);
    return Ok{};
  }

  Result<void> carried_file(const std::string& from, const std::string& to, uint64_t bytes, uint64_t mode,
                            const std::string& sha256) {
    if (!wanted(from)) {
      count(&Losses::files_missing, bytes);
      return Ok{};
    }
    const uint64_t faults = fault_count();
    GLYD_CHECK(note(copy_carried(from, to, bytes, mode, sha256), "; restored as it is now"));
    if (fault_count() != faults) count(&Losses::files_changed, 0);
    return Ok{};
  }

  // Salvage copies a file that was changed as it is: text that somebody edited is worth more than none.
  Result<void> copy_carried(const std::string& from, const std::string& to, uint64_t bytes, uint64_t mode,
                            const std::string& sha256) {
    const fs::path path = packed_.root() / from;
    GLYD_TRY(const File file, File::open_read(path));
    const bool right_size = file.size() == bytes;
    const auto wrong_size = [&] {
      return corrupt("{}: {} bytes, but {} gives {}: {}", path.string(), file.size(), kManifestName, bytes, kChanged);
    };
    if (!right_size && !options_.salvage) return wrong_size();
    File copy;
    if (out_) {
      GLYD_CHECK(make_parents(*out_, to));
      GLYD_TRY(copy, File::create(*out_ / to));
    }
    GLYD_TRY(const std::string hash, copy_range(file, 0, file.size(), out_ ? &copy : nullptr, progress_, to));
    if (out_) GLYD_CHECK(finish_file(copy, mode));
    if (!right_size) return wrong_size();
    return hash == sha256 ? Ok{} : Result<void>(wrong_hash(path, kChanged));
  }

  Result<void> source_file(size_t index) {
    const ManifestSourceFile& file = manifest_.source_files[index];
    if (!wanted(file.shard)) {
      count(&Losses::files_missing, file.bytes);
      return Ok{};
    }
    bool whole = true;
    auto shard = packed_.open_shard(index);
    if (!shard) {
      whole = false;
      GLYD_CHECK(note(std::move(shard).error()));
      if (!options_.salvage) return Ok{};
      shard = packed_.open_damaged_shard(index);
    }
    if (!shard) {
      count(&Losses::files_missing, file.bytes);
      return note(std::move(shard).error(), "; left out");
    }
    return restore_file(shard.value(), file, whole);
  }

  Result<void> restore_file(const Shard& shard, const ManifestSourceFile& file, bool whole) {
    File output;
    if (out_ && manifest_.kind == SourceKind::kFile) {
      GLYD_TRY(output, File::create(*out_));
    } else if (out_) {
      GLYD_CHECK(make_parents(*out_, file.path));
      GLYD_TRY(output, File::create(*out_ / file.path));
    }
    Sha256 hash;
    bool as_it_was = true;
    PackedDirectory::TensorWalk walk;
    walk.sink = [&](ByteSpan bytes) -> Result<void> {
      if (file.sha256) hash.update(bytes);
      return out_ ? output.write(bytes) : Ok{};
    };
    walk.whole_only = options_.salvage;
    if (options_.faults != nullptr) {
      walk.on_fault = [&](const ShardTensor& tensor, Error fault) {
        whole = as_it_was = false;
        if (options_.losses != nullptr) ++options_.losses->tensors, options_.losses->bytes += tensor.source->bytes();
        (void)note(std::move(fault), "; zeros in its place");
      };
    }
    uint8_t length[8];
    store_le<uint64_t>(length, file.header.size());
    GLYD_CHECK(walk.sink(length));
    GLYD_CHECK(walk.sink(as_bytes(file.header)));
    GLYD_CHECK(progress_.advance(8 + file.header.size(), file.path));
    GLYD_CHECK(packed_.check_tensors(shard, options_.threads, progress_, walk));
    if (whole && file.sha256 && hash.hex() != *file.sha256) {
      as_it_was = false;
      GLYD_CHECK(note(corrupt("{}: the file restored from it, {}, does not have the sha256 that {} gives",
                              shard.file.path(), file.path, kManifestName),
                      "; restored all the same"));
    }
    if (!as_it_was) count(&Losses::files_damaged, 0);
    return out_ ? finish_file(output, file.mode) : Ok{};
  }

  const PackedDirectory& packed_;
  const Manifest& manifest_;
  const RestoreOptions& options_;
  const std::optional<fs::path>& out_;
  Progress& progress_;
  std::set<std::string> missing_;
};

}  // namespace

Result<void> check_everything(const PackedDirectory& packed, const RestoreOptions& options, Progress& progress) {
  return Restorer(packed, options, progress).run();
}

}  // namespace glyd
