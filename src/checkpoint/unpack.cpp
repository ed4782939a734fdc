// unpack.cpp - the source of a packed checkpoint again, byte for byte. Spec: docs/spec/checkpoint.md 5, 6.
#include <chrono>
#include <nlohmann/json.hpp>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/foreign.hpp"
#include "checkpoint/hf_cache.hpp"
#include "checkpoint/packed_directory.hpp"
#include "checkpoint/restore.hpp"
#include "checkpoint/staging.hpp"
#include "checkpoint/streams.hpp"

namespace glyd {
namespace {

namespace fs = std::filesystem;

// --overwrite replaces what unpack itself would make: a model's directory, an empty one, or a file for a file. Nothing
// goes that the new one does not have.
Result<void> may_replace(const fs::path& target, const Manifest& manifest) {
  std::error_code error;
  const bool is_file = manifest.kind == SourceKind::kFile;
  const fs::file_status status = fs::symlink_status(target, error);
  if (is_file && fs::is_regular_file(status)) return Ok{};
  if (is_file || !fs::is_directory(status)) {
    return exists("{}: not {}, so it is not overwritten; remove it yourself, or choose another name", target.string(),
                  is_file ? "a file" : "a directory");
  }
  std::set<std::string> replaced;
  for (const auto& file : manifest.source_files) replaced.insert(file.path);
  for (const auto& file : manifest.files) replaced.insert(file.path);
  for (const auto& directory : manifest.directories) replaced.insert(directory + "/");
  if (manifest.config) replaced.insert(kConfigName);
  return refuse_to_lose(target, replaced, [](const std::string&) { return false; });
}

// Whether the packed files could hold what the manifest says: no layout packs to a sixteenth. What a damaged manifest
// claims beyond that is for the checks to name, not a want of room.
bool is_believable(const PackedDirectory& packed) {
  uint64_t bytes = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator at(packed.root(), error), end; !error && at != end; at.increment(error)) {
    std::error_code unreadable;
    const uint64_t size = at->is_regular_file(unreadable) ? at->file_size(unreadable) : 0;
    if (!unreadable) bytes += size;
  }
  return packed.source_bytes() / 16 <= bytes;
}

}  // namespace

Result<OrderedJson> unpack_checkpoint(const std::string& directory, const std::string& target_text,
                                      const UnpackOptions& options, OrderedJson* report) {
  const auto start = std::chrono::steady_clock::now();
  if (options.salvage && options.overwrite) {
    return invalid_argument(
        "{}: what a salvage brings back may lack what is there, so it never overwrites; choose a new target",
        target_text);
  }
  GLYD_TRY(const fs::path target, resolve_target(target_text));
  Faults faults;
  GLYD_TRY(const PackedDirectory packed, PackedDirectory::open(directory, options.salvage ? &faults : nullptr));
  if (is_inside(target, packed.root()))
    return invalid_argument("{}: the target lies in the packed checkpoint itself; choose a place outside",
                            target.string());
  if (is_inside(packed.root(), target))
    return invalid_argument("{}: the packed checkpoint lies in the target {}", packed.root().string(), target.string());
  GLYD_TRY(Staging staging, Staging::open(target, options.overwrite,
                                          [&](const fs::path& path) { return may_replace(path, packed.manifest()); }));
  std::error_code error;
  if (fs::exists(staging.journal_path(), error)) {
    staging.keep();
    return exists("{}: holds what a stopped pack to {} finished; run that pack again, or remove the directory",
                  staging.directory().string(), target.string());
  }
  fs::remove_all(staging.new_path(), error);  // of an unpack that was killed
  if (is_believable(packed)) {
    const uint64_t needed = packed.source_bytes();
    GLYD_CHECK(check_space(target.parent_path(), needed, needed));
  }
  Progress progress(options.progress, packed.source_bytes());
  RestoreOptions how;
  how.threads = options.threads;
  how.out = staging.new_path();
  how.faults = options.salvage ? &faults : nullptr;
  how.salvage = options.salvage;
  Losses losses;
  how.losses = options.salvage ? &losses : nullptr;
  if (auto done = check_everything(packed, how, progress); !done)
    return with_space_needed(std::move(done).error(), staging.directory(), packed.source_bytes());
  GLYD_CHECK(progress.finish(target.string()));
  if (!faults.empty() && !fs::exists(staging.new_path(), error)) return faults.as_error();  // the one file there was
  GLYD_CHECK(staging.commit());
  OrderedJson document{{"target", target.string()},
                       {"files", packed.source_files()},
                       {"bytes", packed.source_bytes()},
                       {"seconds", std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()},
                       {"faults", faults.json()},
                       {"ok", faults.empty()}};
  if (options.salvage) {
    document["files"] = packed.source_files() - losses.files_missing;
    document["salvage"] = {
        {"files_whole", packed.source_files() - losses.files_damaged - losses.files_changed - losses.files_missing},
        {"files_damaged", losses.files_damaged},
        {"files_changed", losses.files_changed},
        {"files_missing", losses.files_missing},
        {"tensors_lost", losses.tensors},
        {"bytes_lost", losses.bytes}};
  }
  if (report != nullptr) *report = document;
  if (!faults.empty()) return faults.as_error();
  return document;
}

}  // namespace glyd
