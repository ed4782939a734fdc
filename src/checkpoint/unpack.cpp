// unpack.cpp - the source of a packed checkpoint again, byte for byte. Spec: docs/spec/checkpoint.md 5, 6.
#include <chrono>
#include <nlohmann/json.hpp>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/hf_cache.hpp"
#include "checkpoint/packed_directory.hpp"
#include "checkpoint/restore.hpp"
#include "checkpoint/staging.hpp"
#include "checkpoint/streams.hpp"

namespace glyd {
namespace {

namespace fs = std::filesystem;

// --overwrite replaces what unpack itself would make: a model's directory, an empty one, or a file for a file.
Result<void> may_replace(const fs::path& target, bool is_file) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(target, error);
  if (is_file && fs::is_regular_file(status)) return Ok{};
  if (!is_file && fs::is_directory(status)) {
    if (fs::is_empty(target, error)) return Ok{};
    for (const auto& entry : fs::directory_iterator(target, error)) {
      if (entry.path().extension() == ".safetensors") return Ok{};
    }
  }
  return exists("{}: not {}, so it is not overwritten; remove it yourself, or choose another name", target.string(),
                is_file ? "a file" : "a directory with a model in it, or an empty one");
}

}  // namespace

Result<OrderedJson> unpack_checkpoint(const std::string& directory, const std::string& target_text,
                                      const UnpackOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  GLYD_TRY(const fs::path target, resolve_target(target_text));
  GLYD_TRY(const PackedDirectory packed, PackedDirectory::open(directory));
  if (is_inside(target, packed.root()))
    return invalid_argument("{}: the target lies in the packed checkpoint itself; choose a place outside",
                            target.string());
  if (is_inside(packed.root(), target))
    return invalid_argument("{}: the packed checkpoint lies in the target {}", packed.root().string(), target.string());
  const Manifest& manifest = packed.manifest();
  const bool is_file = manifest.kind == SourceKind::kFile;
  GLYD_TRY(Staging staging,
           Staging::open(target, options.overwrite, [&](const fs::path& path) { return may_replace(path, is_file); }));
  std::error_code error;
  fs::remove_all(staging.new_path(), error);  // of an unpack that was killed
  Progress progress(options.progress, packed.source_bytes());
  if (auto done = check_everything(packed, options.threads, progress, staging.new_path()); !done) {
    return with_space_needed(std::move(done).error(), staging.directory(), packed.source_bytes());
  }
  GLYD_CHECK(progress.finish(target.string()));
  GLYD_CHECK(staging.commit());
  return OrderedJson{{"target", target.string()},
                     {"files", manifest.source_files.size() + manifest.files.size() + (manifest.config ? 1 : 0)},
                     {"bytes", packed.source_bytes()},
                     {"seconds", std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()}};
}

}  // namespace glyd
