// pack.cpp - a source directory or file becomes a packed checkpoint. Spec: docs/spec/checkpoint.md 1, 6.
#include <chrono>
#include <nlohmann/json.hpp>
#include <set>

#include "base/sha256.hpp"
#include "checkpoint/checkpoint.hpp"
#include "checkpoint/foreign.hpp"
#include "checkpoint/hf_cache.hpp"
#include "checkpoint/journal.hpp"
#include "checkpoint/model_config.hpp"
#include "checkpoint/packed_directory.hpp"
#include "checkpoint/shard_writer.hpp"
#include "checkpoint/source.hpp"
#include "checkpoint/staging.hpp"
#include "checkpoint/streams.hpp"

namespace glyd {
namespace {

namespace fs = std::filesystem;

// What the model's config.json says, and what becomes of it.
struct Config {
  std::string original, edited, model_type;
  uint32_t mode = 0644;
  bool present = false;
};

Result<Config> read_config(const Source& source, const PackOptions& options) {
  Config config;
  const SourceFile* file = source.find_other(kConfigName);
  if (file == nullptr) return config;
  GLYD_TRY(config.original, read_text_file(file->absolute, kMostConfigBytes));
  GLYD_TRY(const OrderedJson document, parse_config(config.original, file->absolute.string()));
  config.model_type = model_type_of(document);
  GLYD_TRY(config.edited,
           edited_config(config.original, file->absolute.string(), options.layout, options.glyd_version));
  config.mode = file->mode;
  config.present = true;
  return config;
}

class Packer {
 public:
  Packer(const Source& source, const Config& config, const PackOptions& options, Staging& staging)
      : source_(source),
        config_(config),
        options_(options),
        staging_(staging),
        progress_(options.progress, total_bytes()),
        journal_(Journal::open(staging, source, settings())) {}

  Result<void> run() {
    manifest_.glyd_version = options_.glyd_version;
    manifest_.layout = options_.layout;
    manifest_.kind = source_.is_file ? SourceKind::kFile : SourceKind::kDirectory;
    manifest_.name = source_.name;
    manifest_.repo = source_.repo;
    manifest_.revision = source_.revision;
    GLYD_CHECK(make_directory(staging_.new_path()));
    if (const std::string unused = journal_.left_out(); !unused.empty()) say(unused);
    GLYD_CHECK(remove_all_but_finished());
    GLYD_CHECK(count_finished());
    GLYD_CHECK(check_space(staging_.target().parent_path(), least_bytes(), needed_bytes()));
    for (size_t i = 0; i < source_.tensor_files.size(); ++i) GLYD_CHECK(add_shard(i));
    for (const auto& file : source_.other_files) GLYD_CHECK(add_file(file));
    for (const auto& directory : source_.directories) GLYD_CHECK(make_directory(staging_.new_path() / directory));
    manifest_.directories = source_.directories;
    GLYD_CHECK(add_config());
    GLYD_CHECK(add_index());
    GLYD_CHECK(add_manifest());
    GLYD_CHECK(sync_directories());
    GLYD_CHECK(progress_.finish(staging_.target().string()));
    say_what_was_replaced();
    return Ok{};
  }

  // After a stop or an error what is whole stays for the next pack.
  void keep_finished(Error& error) {
    if (finished_shards() == 0 || !remove_all_but_finished()) return;
    staging_.keep();
    error.message += fmt::format(
        "; {} of {} shards are done and kept in {}: the same pack goes on from there, and removing it gives the room "
        "back",
        finished_shards(), source_.tensor_files.size(), staging_.directory().string());
  }

  // About what is to be written yet.
  uint64_t needed_bytes() const { return still_needed(options_.layout == Layout::kSmall ? 0.67 : 0.705); }

  OrderedJson document(double seconds) const {
    uint64_t packed = 0, bf16_bytes = 0, packed_bytes = 0;
    for (const auto& [name, tensor] : manifest_.tensors) {
      if (!tensor.packed) continue;
      ++packed;
      packed_bytes += tensor.packed->bytes;
      bf16_bytes += tensor_bytes(*tensor.dtype, tensor.shape).value();
    }
    const double weights = static_cast<double>(bf16_bytes) / 2;
    return {{"target", staging_.target().string()},
            {"layout", layout_text(options_.layout)},
            {"tensors_packed", packed},
            {"tensors_carried", manifest_.tensors.size() - packed},
            {"bf16_bytes", bf16_bytes},
            {"packed_bytes", packed_bytes},
            {"source_bytes", source_.bytes()},
            {"target_bytes", target_bytes_},
            {"bits_per_weight", weights == 0 ? 0.0 : 8 * static_cast<double>(packed_bytes) / weights},
            {"shards", source_.tensor_files.size()},
            {"shards_resumed", resumed_},
            {"verified", options_.verify},
            {"seconds", seconds}};
  }

 private:
  void say(const std::string& note) const {
    if (options_.note) options_.note(note.c_str());
  }

  // What was packed is whole all the same: each file was as listed when its last byte had been read.
  void say_what_was_replaced() const {
    std::vector<std::string> replaced;
    for (const auto* files : {&source_.tensor_files, &source_.other_files}) {
      for (const auto& file : *files) {
        if (was_replaced(file)) replaced.push_back(file.path);
      }
    }
    if (replaced.empty()) return;
    say(fmt::format("{}: changed since it was packed, a moment ago: {}; {} holds what was there before",
                    source_.root.string(), some_of(replaced), staging_.target().string()));
  }

  uint64_t total_bytes() const {
    uint64_t total = source_.bytes();
    if (options_.hash_files) {
      for (const auto& file : source_.tensor_files) total += file.bytes;
    }
    return total;
  }

  // No model packs into less than this; a disk with less room would be full before the end.
  uint64_t least_bytes() const { return still_needed(0.6); }

  // The files that are not done yet, with their matrices at `ratio` of their bytes.
  uint64_t still_needed(double ratio) const {
    double bytes = 0;
    for (const auto& file : source_.other_files) bytes += static_cast<double>(file.bytes);
    for (size_t i = 0; i < source_.tensor_files.size(); ++i) {
      if (journal_.finished(i)) continue;
      for (const auto& tensor : source_.headers[i].tensors)
        bytes += static_cast<double>(tensor.bytes()) * (is_packable(tensor) ? ratio : 1);
    }
    return static_cast<uint64_t>(bytes);
  }

  size_t finished_shards() const {
    size_t count = 0;
    for (size_t i = 0; i < source_.tensor_files.size(); ++i) count += journal_.finished(i) ? 1 : 0;
    return count;
  }

  // Reported before anything is worked on, so that a rate is one of the work done now.
  Result<void> count_finished() {
    uint64_t bytes = 0;
    for (size_t i = 0; i < source_.tensor_files.size(); ++i) {
      if (journal_.finished(i)) bytes += source_.tensor_files[i].bytes;
    }
    resumed_ = finished_shards();
    return resumed_ == 0 ? Ok{} : progress_.advance(bytes, "what an earlier pack finished");
  }

  OrderedJson settings() const {
    return {{"format", kCheckpointFormat},
            {"glyd_version", options_.glyd_version},
            {"layout", layout_text(options_.layout)},
            {"verify", options_.verify},
            {"hash_files", options_.hash_files},
            {"model_type", config_.model_type},
            {"source", source_.root.string()},
            {"shards", source_.tensor_files.size()}};
  }

  Result<void> remove_all_but_finished() const {
    std::set<std::string> kept;
    for (size_t i = 0; i < source_.tensor_files.size(); ++i) {
      if (const auto shard = journal_.finished(i)) kept.insert(shard->shard);
    }
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(staging_.new_path(), error)) {
      if (!kept.contains(entry.path().filename().string())) fs::remove_all(entry.path(), error);
      if (error) return io_error("cannot remove {}: {}", entry.path().string(), error.message());
    }
    return Ok{};
  }

  Result<void> add_shard(size_t index) {
    const SourceFile& file = source_.tensor_files[index];
    auto finished = journal_.finished(index);
    if (!finished) {
      const fs::path path = staging_.new_path() / shard_name(index, source_.tensor_files.size());
      const ShardOptions options{options_.layout, options_.threads, options_.verify, options_.hash_files,
                                 config_.model_type};
      GLYD_TRY(finished, write_shard(source_, index, path, options, progress_));
      GLYD_CHECK(journal_.add(index, *finished));
    }
    manifest_.source_files.push_back({file.path, file.bytes, file.mode, source_.headers[index].text,
                                      finished->source_sha256, finished->shard, finished->shard_bytes,
                                      finished->shard_header_sha256});
    for (auto& [name, tensor] : finished->tensors) {
      tensor.file = index;
      weight_map_[tensor.packed ? name + kPackSuffix : name] = finished->shard;
      tensors_total_ += tensor.packed ? tensor.packed->bytes : tensor_bytes(*tensor.dtype, tensor.shape).value();
      manifest_.tensors.emplace(name, std::move(tensor));
    }
    target_bytes_ += finished->shard_bytes;
    return Ok{};
  }

  Result<void> add_file(const SourceFile& file) {
    if (file.path == kConfigName) return Ok{};
    GLYD_CHECK(make_parents(staging_.new_path(), file.path));
    GLYD_TRY(const File input, File::open_read(file.absolute));
    GLYD_CHECK(check_unchanged(file, input));
    GLYD_TRY(File output, File::create(staging_.new_path() / file.path));
    GLYD_TRY(std::string hash, copy_range(input, 0, file.bytes, &output, progress_, file.path));
    GLYD_CHECK(check_unchanged(file, input));
    GLYD_CHECK(finish_file(output, file.mode));
    manifest_.files.push_back({file.path, file.bytes, std::move(hash), file.mode});
    target_bytes_ += file.bytes;
    return Ok{};
  }

  Result<void> add_text(const std::string& path, const std::string& text, uint64_t mode) {
    GLYD_CHECK(make_parents(staging_.new_path(), path));
    GLYD_TRY(File file, File::create(staging_.new_path() / path));
    GLYD_CHECK(file.write(as_bytes(text)));
    target_bytes_ += text.size();
    return finish_file(file, mode);
  }

  Result<void> add_config() {
    if (!config_.present) return Ok{};
    GLYD_CHECK(add_text(kConfigName, config_.edited, config_.mode));
    GLYD_CHECK(add_text(kKeptConfigName, config_.original, config_.mode));
    manifest_.config = ManifestConfig{sha256_hex(as_bytes(config_.edited)), sha256_hex(as_bytes(config_.original)),
                                      config_.original.size(), config_.mode};
    return progress_.advance(config_.original.size(), kConfigName);
  }

  Result<void> add_index() {
    const Json document = {{"metadata", {{"total_size", tensors_total_}}}, {"weight_map", weight_map_}};
    const std::string text = document.dump(2, ' ', true) + "\n";
    manifest_.index_sha256 = sha256_hex(as_bytes(text));
    return add_text(kShardIndexName, text, 0644);
  }

  Result<void> add_manifest() {
    const std::string text = write_manifest(manifest_);
    // What is written must be readable: a source can hold what the format forbids in ways that only the whole shows.
    std::vector<SafetensorsHeader> headers;
    const auto read_back = parse_manifest(text, kManifestName, headers);
    if (!read_back) return unsupported("{}: cannot be described: {}", source_.root.string(), read_back.error().message);
    return add_text(kManifestName, text, 0644);
  }

  Result<void> sync_directories() const {
    std::error_code error;
    for (const auto& entry : fs::recursive_directory_iterator(staging_.new_path(), error)) {
      if (entry.is_directory(error)) GLYD_CHECK(sync_directory(entry.path()));
    }
    return error ? Result<void>(io_error("cannot list {}: {}", staging_.new_path().string(), error.message())) : Ok{};
  }

  const Source& source_;
  const Config& config_;
  const PackOptions& options_;
  Staging& staging_;
  Progress progress_;
  Journal journal_;
  Manifest manifest_;
  std::map<std::string, std::string> weight_map_;
  uint64_t tensors_total_ = 0, target_bytes_ = 0;
  size_t resumed_ = 0;
};

bool is_own_file(const std::string& path) {
  const std::string pattern = shard_name(0, 1);
  const bool is_shard = path.size() == pattern.size() && path.starts_with("glyd-") && path.substr(10, 4) == "-of-" &&
                        path.ends_with(".safetensors");
  return path == kManifestName || path == kShardIndexName || is_shard;
}

// Adds what the packed checkpoint in `target` was made of and still has, byte for byte: its files and empty
// directories, which are replaced together with its weights.
void add_unchanged(const fs::path& target, std::set<std::string>& replaced) {
  const auto packed = PackedDirectory::open(target.string(), nullptr);
  if (!packed) return;
  const Manifest& manifest = packed.value().manifest();
  const auto is_unchanged = [&](const std::string& path, const std::string& sha256) {
    const auto file = File::open_read(target / path);
    Progress quiet(nullptr, 0);
    const auto hash = file ? copy_range(file.value(), 0, file.value().size(), nullptr, quiet, path) : file.error();
    return hash && hash.value() == sha256;
  };
  for (const ManifestFile& file : manifest.files) {
    if (is_unchanged(file.path, file.sha256)) replaced.insert(file.path);
  }
  if (manifest.config && is_unchanged(kConfigName, manifest.config->sha256)) replaced.insert(kConfigName);
  for (const auto& directory : manifest.directories) replaced.insert(directory + "/");
}

// --overwrite must not delete a directory that somebody cannot make again, nor a file that is neither of the model
// packed nor of the one that was.
Result<void> may_replace(const fs::path& target, const Source& source) {
  std::error_code error;
  const bool is_directory = fs::is_directory(fs::symlink_status(target, error));
  if (is_directory && fs::is_empty(target, error)) return Ok{};
  if (!is_directory || !looks_packed(target)) {
    return exists(
        "{}: neither a packed checkpoint nor an empty directory, so it is not overwritten; remove it yourself, or "
        "choose another name",
        target.string());
  }
  std::set<std::string> replaced;
  for (const auto& file : source.other_files) replaced.insert(file.path);
  for (const auto& directory : source.directories) replaced.insert(directory + "/");
  add_unchanged(target, replaced);
  if (replaced.contains(kConfigName)) replaced.insert(kKeptConfigName);
  return refuse_to_lose(target, replaced, is_own_file);
}

}  // namespace

Result<OrderedJson> pack_checkpoint(const std::string& source_text, const std::string& target_text,
                                    const PackOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  GLYD_TRY(const fs::path target, resolve_target(target_text));
  GLYD_TRY(const Source source, open_source(source_text, options.revision));
  if (is_inside(target, source.root))
    return invalid_argument("{}: the target lies in the source {}; choose a place outside", target.string(),
                            source.root.string());
  if (is_inside(source.root, target))
    return invalid_argument("{}: the source lies in the target {}", source.root.string(), target.string());
  GLYD_TRY(const Config config, read_config(source, options));
  GLYD_TRY(Staging staging,
           Staging::open(target, options.overwrite, [&](const fs::path& path) { return may_replace(path, source); }));
  Packer packer(source, config, options, staging);
  if (auto done = packer.run(); !done) {
    const bool resumable = done.error().status != GLYD_ERROR_INTERNAL;
    Error error = with_space_needed(std::move(done).error(), staging.directory(), packer.needed_bytes());
    if (resumable) packer.keep_finished(error);
    return error;
  }
  if (auto done = staging.commit(); !done) {
    Error error = std::move(done).error();
    if (error.status == GLYD_ERROR_EXISTS) packer.keep_finished(error);
    return error;
  }
  return packer.document(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
}

}  // namespace glyd
