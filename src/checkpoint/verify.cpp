// verify.cpp - is a packed checkpoint whole, and does it hold what a source holds? Spec: docs/spec/checkpoint.md 5.
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>

#include "base/sha256.hpp"
#include "checkpoint/checkpoint.hpp"
#include "checkpoint/packed_directory.hpp"
#include "checkpoint/restore.hpp"
#include "checkpoint/source.hpp"
#include "checkpoint/streams.hpp"

namespace glyd {
namespace {

// A packed directory that check_everything has passed, against a source: byte for byte, since every hash in the
// manifest has been seen to be that of the restored bytes.
class Comparison {
 public:
  Comparison(const PackedDirectory& packed, const Source& source, Progress& progress)
      : packed_(packed), manifest_(packed.manifest()), source_(source), progress_(progress) {}

  Result<void> run() const {
    GLYD_CHECK(same_names());
    for (size_t i = 0; i < source_.tensor_files.size(); ++i) GLYD_CHECK(compare_tensors(i));
    for (const auto& file : manifest_.files) GLYD_CHECK(compare_file(file.path, file.bytes, file.sha256));
    if (manifest_.config)
      GLYD_CHECK(compare_file(kConfigName, manifest_.config->original_bytes, manifest_.config->original_sha256));
    return Ok{};
  }

 private:
  std::string path_of(const std::string& name) const {
    return source_.is_file ? source_.root.string() : (source_.root / name).string();
  }

  // Where a file of the source is in the packed checkpoint: as it was, or in a shard.
  std::string packed_place(const std::string& name) const {
    for (const auto& file : manifest_.source_files) {
      if (file.path == name || source_.is_file)
        return fmt::format("{} ({})", (packed_.root() / file.shard).string(), name);
    }
    return (packed_.root() / (name == kConfigName ? kKeptConfigName : name)).string();
  }

  Result<void> same_names() const {
    std::map<std::string, int> sides;  // 1: in the source, 2: in the packed checkpoint
    for (const auto& file : source_.tensor_files) sides[file.path] |= 1;
    for (const auto& file : source_.other_files) sides[file.path] |= 1;
    for (const auto& directory : source_.directories) sides[directory + "/"] |= 1;
    for (const auto& file : manifest_.source_files) sides[source_.is_file ? source_.name : file.path] |= 2;
    for (const auto& file : manifest_.files) sides[file.path] |= 2;
    for (const auto& directory : manifest_.directories) sides[directory + "/"] |= 2;
    if (manifest_.config) sides[kConfigName] |= 2;
    for (const auto& [name, side] : sides) {
      if (side == 1) return mismatch("{}: in the source, but not in {}", path_of(name), packed_.root().string());
      if (side == 2) return mismatch("{}: not in the source {}", packed_place(name), source_.root.string());
    }
    if (source_.tensor_files.size() != manifest_.source_files.size())
      return mismatch("{}: other tensor files than in {}", source_.root.string(), packed_.root().string());
    return Ok{};
  }

  Result<void> compare_tensors(size_t index) const {
    const SourceFile& file = source_.tensor_files[index];
    const ManifestSourceFile& kept = manifest_.source_files[index];
    if ((!source_.is_file && file.path != kept.path) || source_.headers[index].text != kept.header ||
        file.bytes != kept.bytes) {
      return mismatch("{}: its header or size is not that of the file that was packed", file.absolute.string());
    }
    GLYD_TRY(const File opened, File::open_read(file.absolute));
    const uint64_t start = source_.headers[index].data_offset();
    GLYD_CHECK(progress_.advance(start, file.path));
    for (const auto& tensor : source_.headers[index].tensors) {
      GLYD_TRY(const std::string hash,
               copy_range(opened, start + tensor.begin, tensor.bytes(), nullptr, progress_, tensor.name));
      if (hash != manifest_.tensors.at(tensor.name).sha256) {
        return mismatch("{}: tensor {} differs from the one in {}", file.absolute.string(), json_quote(tensor.name),
                        packed_.root().string());
      }
    }
    return Ok{};
  }

  Result<void> compare_file(const std::string& path, uint64_t bytes, const std::string& sha256) const {
    const SourceFile* file = source_.find_other(path);
    if (file == nullptr) return mismatch("{}: not in the source", path_of(path));
    GLYD_TRY(const File opened, File::open_read(file->absolute));
    const auto differs = [&] {
      return mismatch("{}: differs from the one in {}", file->absolute.string(), packed_.root().string());
    };
    if (opened.size() != bytes) return differs();
    GLYD_TRY(const std::string hash, copy_range(opened, 0, bytes, nullptr, progress_, path));
    if (hash != sha256) return differs();
    return Ok{};
  }

  const PackedDirectory& packed_;
  const Manifest& manifest_;
  const Source& source_;
  Progress& progress_;
};

}  // namespace

Result<OrderedJson> verify_checkpoint(const std::string& directory, const VerifyOptions& options, OrderedJson* report) {
  const auto start = std::chrono::steady_clock::now();
  GLYD_TRY(const PackedDirectory packed, PackedDirectory::open(directory));
  std::optional<Source> source;
  if (options.source != nullptr) {
    GLYD_TRY(source, open_source(options.source, options.revision));
  }
  Progress progress(options.progress, packed.source_bytes() + (source ? source->bytes() : 0));
  Faults faults;
  std::vector<std::string> ignored;
  RestoreOptions how;
  how.threads = options.threads;
  how.faults = &faults;
  how.ignored = &ignored;
  GLYD_CHECK(check_everything(packed, how, progress));
  // What is damaged differs from the source too: that would be the same faults again.
  if (source && faults.empty()) GLYD_CHECK(Comparison(packed, *source, progress).run());
  GLYD_CHECK(progress.finish(directory));
  OrderedJson document{{"directory", packed.root().string()},
                       {"format", kCheckpointFormat},
                       {"layout", layout_text(packed.manifest().layout)},
                       {"tensors", packed.manifest().tensors.size()},
                       {"files", packed.source_files()},
                       {"bytes", packed.source_bytes()},
                       {"seconds", std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()},
                       {"ignored", ignored},
                       {"faults", faults.json()},
                       {"ok", faults.empty()}};
  if (report != nullptr) *report = document;
  if (!faults.empty()) return faults.as_error();
  return document;
}

}  // namespace glyd
