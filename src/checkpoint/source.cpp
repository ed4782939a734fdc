#include "checkpoint/source.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "base/file.hpp"
#include "checkpoint/hf_cache.hpp"
#include "checkpoint/manifest.hpp"
#include "checkpoint/safetensors_file.hpp"
#include "format/json_text.hpp"

namespace glyd {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSourceIndexName = "model.safetensors.index.json";
constexpr const char* kSourceModelName = "model.safetensors";
constexpr uint64_t kMostIndexBytes = uint64_t{256} << 20;
constexpr size_t kMostNamesInError = 5;
constexpr size_t kMostDepth = 64;

int64_t nanoseconds(const struct timespec& time) {
  return static_cast<int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

SourceFile describe(std::string path, fs::path absolute, const struct stat& info) {
  return {std::move(path),
          std::move(absolute),
          static_cast<uint64_t>(info.st_size),
          static_cast<uint32_t>(info.st_mode & 0777),
          nanoseconds(info.st_mtim),
          nanoseconds(info.st_ctim),
          info.st_ino};
}

bool has_its_bytes(const SourceFile& listed, const struct stat& info) {
  return listed.bytes == static_cast<uint64_t>(info.st_size) && listed.inode == info.st_ino &&
         listed.modified_ns == nanoseconds(info.st_mtim);
}

class Lister {
 public:
  Lister(const fs::path& root, const SkipPath& skip) : root_(root), skip_(skip), blobs_(blobs_of_snapshot(root)) {}

  Result<void> walk(const std::string& prefix, size_t depth) {
    const fs::path directory = prefix.empty() ? root_ : root_ / prefix;
    if (depth > kMostDepth) return corrupt("{}: folders nested more than {} deep", directory.string(), kMostDepth);
    GLYD_TRY(const std::vector<std::string> names, names_in(directory));
    if (names.empty() && !prefix.empty()) listing_.empty_directories.push_back(prefix);
    for (const std::string& name : names) {
      const std::string path = prefix.empty() ? name : prefix + "/" + name;
      if (!is_utf8(path))
        return unsupported("{}: a file name that is not UTF-8 cannot be kept; rename it", (directory / name).string());
      if (!skip_ || !skip_(path)) GLYD_CHECK(visit(path, depth));
    }
    return Ok{};
  }
  Listing take() {
    std::sort(listing_.empty_directories.begin(), listing_.empty_directories.end());
    std::sort(listing_.files.begin(), listing_.files.end(),
              [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; });
    return std::move(listing_);
  }

 private:
  static Result<std::vector<std::string>> names_in(const fs::path& directory) {
    const std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(directory.c_str()), ::closedir);
    if (!stream) return errno_error("list", directory);
    std::vector<std::string> names;
    errno = 0;
    while (const dirent* entry = ::readdir(stream.get())) {
      const std::string name = entry->d_name;
      if (name != "." && name != "..") names.push_back(name);
    }
    if (errno != 0) return errno_error("list", directory);
    std::sort(names.begin(), names.end());
    return names;
  }

  Result<void> visit(const std::string& path, size_t depth) {
    const fs::path place = root_ / path;
    struct stat info {};
    if (::lstat(place.c_str(), &info) != 0) return errno_error("stat", place);
    fs::path absolute = place;
    if (S_ISLNK(info.st_mode)) {
      std::error_code error;
      absolute = fs::canonical(place, error);
      if (error)
        return not_found("{}: a symbolic link that leads nowhere (to {}); remove it, or fetch what it names",
                         place.string(), fs::read_symlink(place, error).string());
      if (!is_inside(absolute, root_) && (blobs_.empty() || !is_inside(absolute, blobs_))) {
        return unsupported("{}: a symbolic link that leaves the directory (to {}); replace it by the file itself",
                           place.string(), absolute.string());
      }
      if (::stat(absolute.c_str(), &info) != 0) return errno_error("stat", absolute);
      if (S_ISDIR(info.st_mode))
        return unsupported("{}: a symbolic link to a directory; replace it by the directory itself", place.string());
    }
    if (S_ISDIR(info.st_mode)) return walk(path, depth + 1);
    if (!S_ISREG(info.st_mode))
      return unsupported("{}: neither a file nor a directory (a socket, pipe or device); move it away", place.string());
    listing_.files.push_back(describe(path, std::move(absolute), info));
    return Ok{};
  }

  const fs::path& root_;
  const SkipPath& skip_;
  fs::path blobs_;
  Listing listing_;
};

using WeightMap = std::map<std::string, std::string>;

Result<WeightMap> read_index(const SourceFile& file) {
  GLYD_TRY(const std::string text, read_text_file(file.absolute, kMostIndexBytes));
  GLYD_TRY(const Json document, parse_json_strict(text, file.absolute.string()));
  if (!document.is_object() || !document.contains("weight_map") || !document["weight_map"].is_object()) {
    return corrupt("{}: no object \"weight_map\"", file.absolute.string());
  }
  WeightMap map;
  for (const auto& [tensor, shard] : document["weight_map"].items()) {
    if (!shard.is_string() || !is_plain_path(shard.get<std::string>())) {
      return corrupt("{}: tensor {}: its shard is not a plain relative path", file.absolute.string(),
                     json_quote(tensor));
    }
    map.emplace(tensor, shard.get<std::string>());
  }
  if (map.empty()) return corrupt("{}: \"weight_map\" names no tensors", file.absolute.string());
  return map;
}

// Which of a directory's files hold the model (spec 1).
Result<std::set<std::string>> tensor_paths(const Source& source, const std::vector<SourceFile>& files,
                                           const std::optional<WeightMap>& index) {
  std::set<std::string> paths, all;
  for (const auto& file : files) all.insert(file.path);
  if (index) {
    for (const auto& [tensor, shard] : *index) paths.insert(shard);
    std::vector<std::string> missing;
    std::set_difference(paths.begin(), paths.end(), all.begin(), all.end(), std::back_inserter(missing));
    if (!missing.empty()) {
      return not_found("{}: names shards that are not there: {}; fetch them, or remove the index",
                       (source.root / kSourceIndexName).string(), some_of(missing));
    }
    return paths;
  }
  if (all.contains(kSourceModelName)) return std::set<std::string>{kSourceModelName};
  for (const auto& path : all) {
    if (path.ends_with(".safetensors") && path.find('/') == std::string::npos) paths.insert(path);
  }
  std::error_code error;
  if (paths.empty() && fs::is_directory(source.root / "snapshots", error)) {
    return not_found("{}: a repo's folder in the Hugging Face cache: give the repo id (org/name), or a folder below {}",
                     source.root.string(), (source.root / "snapshots").string());
  }
  if (paths.empty()) {
    return not_found(
        "{}: no .safetensors files directly in it; glyd packs safetensors checkpoints (other formats must be converted "
        "first)",
        source.root.string());
  }
  return paths;
}

Result<void> refuse_packed(const Source& source, const std::vector<SourceFile>& files) {
  if (std::none_of(files.begin(), files.end(), [](const SourceFile& file) { return file.path == kManifestName; }))
    return Ok{};
  return invalid_argument("{}: a packed checkpoint already ({} is in it); give its source, or unpack it first",
                          source.root.string(), kManifestName);
}

Result<void> refuse_taken_names(const Source& source, const std::vector<SourceFile>& files, size_t shards) {
  std::set<std::string> taken = {kShardIndexName};
  for (size_t i = 0; i < shards; ++i) taken.insert(shard_name(i, shards));
  for (const auto& file : files) {
    if (taken.contains(file.path) || file.path.starts_with(kKeptPrefix)) {
      return invalid_argument("{}: the name {} is one that packed checkpoints use themselves; rename the file",
                              source.root.string(), json_quote(file.path));
    }
  }
  for (const auto& directory : source.directories) {
    if (taken.contains(directory) || (directory + "/").starts_with(kKeptPrefix)) {
      return invalid_argument("{}: the name {} is one that packed checkpoints use themselves; rename the folder",
                              source.root.string(), json_quote(directory));
    }
  }
  return Ok{};
}

Result<void> read_headers(Source& source) {
  std::map<std::string, std::string> owner;
  for (const auto& file : source.tensor_files) {
    GLYD_TRY(File opened, File::open_read(file.absolute));
    GLYD_TRY(SafetensorsHeader header, read_safetensors_header(opened));
    for (const auto& tensor : header.tensors) {
      const auto [place, added] = owner.emplace(tensor.name, file.path);
      if (!added)
        return corrupt("{}: tensor {} is in {} and in {}", source.root.string(), json_quote(tensor.name), place->second,
                       file.path);
    }
    source.headers.push_back(std::move(header));
  }
  return Ok{};
}

Result<void> check_index(const Source& source, const WeightMap& index) {
  std::map<std::string_view, std::set<std::string_view>> names;
  for (size_t i = 0; i < source.tensor_files.size(); ++i) {
    for (const auto& tensor : source.headers[i].tensors) names[source.tensor_files[i].path].insert(tensor.name);
  }
  std::vector<std::string> missing;
  for (const auto& [tensor, shard] : index) {
    if (!names[shard].contains(tensor))
      missing.push_back(fmt::format("{} (should be in {})", json_quote(tensor), shard));
  }
  if (missing.empty()) return Ok{};
  return corrupt("{}: names tensors that are not in their shards: {}", (source.root / kSourceIndexName).string(),
                 some_of(missing));
}

Result<void> open_directory(Source& source) {
  GLYD_TRY(Listing listing, list_directory(source.root));
  source.directories = std::move(listing.empty_directories);
  GLYD_CHECK(refuse_packed(source, listing.files));  // first: a carried index names files that it does not have
  std::optional<WeightMap> index;
  for (const auto& file : listing.files) {
    if (file.path != kSourceIndexName) continue;
    GLYD_TRY(index, read_index(file));
  }
  GLYD_TRY(const std::set<std::string> paths, tensor_paths(source, listing.files, index));
  GLYD_CHECK(refuse_taken_names(source, listing.files, paths.size()));
  for (auto& file : listing.files)
    (paths.contains(file.path) ? source.tensor_files : source.other_files).push_back(std::move(file));
  GLYD_CHECK(read_headers(source));
  return index ? check_index(source, *index) : Ok{};
}

Result<void> open_one_file(Source& source) {
  struct stat info {};
  if (::stat(source.root.c_str(), &info) != 0) return errno_error("stat", source.root);
  source.tensor_files.push_back(describe(source.name, source.root, info));
  return read_headers(source);
}

}  // namespace

std::string some_of(const std::vector<std::string>& names) {
  const size_t shown = std::min(names.size(), kMostNamesInError);
  std::string text =
      fmt::format("{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  return names.size() > shown ? fmt::format("{} and {} more", text, names.size() - shown) : text;
}

uint64_t Source::bytes() const {
  uint64_t total = 0;
  for (const auto& file : tensor_files) total += file.bytes;
  for (const auto& file : other_files) total += file.bytes;
  return total;
}

const SourceFile* Source::find_other(std::string_view path) const {
  const auto found =
      std::find_if(other_files.begin(), other_files.end(), [&](const SourceFile& file) { return file.path == path; });
  return found == other_files.end() ? nullptr : &*found;
}

Result<void> check_unchanged(const SourceFile& listed, const File& opened) {
  struct stat info {};
  if (::fstat(opened.descriptor(), &info) != 0) return errno_error("stat", listed.absolute);
  if (has_its_bytes(listed, info) && listed.changed_ns == nanoseconds(info.st_ctim)) return Ok{};
  return mismatch("{}: changed or replaced while it was being packed; pack again when nothing writes to it",
                  listed.absolute.string());
}

bool was_replaced(const SourceFile& listed) {
  struct stat info {};
  return ::stat(listed.absolute.c_str(), &info) != 0 || !has_its_bytes(listed, info);
}

Result<Listing> list_directory(const fs::path& root, const SkipPath& skip) {
  Lister lister(root, skip);
  GLYD_CHECK(lister.walk("", 0));
  return lister.take();
}

Result<Source> locate_source(const std::string& text, const char* revision) {
  if (text.empty()) return invalid_argument("the source is an empty string");
  Source source;
  std::error_code error;
  const fs::file_status status = fs::status(text, error);
  if (fs::exists(status)) {
    if (revision != nullptr) return invalid_argument("{}: a revision is for repo ids, and this is a path", text);
    if (!fs::is_directory(status) && !fs::is_regular_file(status))
      return invalid_argument("{}: neither a directory nor a file", text);
    source.root = fs::canonical(text, error);
    if (error) return io_error("cannot resolve {}: {}", text, error.message());
    source.is_file = fs::is_regular_file(status);
    // A link's own name is the one that the user knows (the cache's blobs have none).
    source.name = source.is_file ? fs::path(text).filename().string() : source.root.filename().string();
    return source;
  }
  if (error && status.type() != fs::file_type::not_found) return io_error("cannot open {}: {}", text, error.message());
  if (fs::is_symlink(fs::symlink_status(text, error)))
    return not_found("{}: a symbolic link that leads nowhere (to {})", text, fs::read_symlink(text, error).string());
  // "models/foo" where there is a folder "models" is a slip in a path, and no repo of somebody called models.
  const bool has_parent = text.find('/') != std::string::npos && fs::is_directory(fs::path(text).parent_path(), error);
  if (!is_repo_id(text) || (has_parent && !is_cached(hf_cache_directory(), text)))
    return not_found("{}: no such file or directory", text);
  GLYD_TRY(const Snapshot snapshot, find_snapshot(hf_cache_directory(), text, revision == nullptr ? "main" : revision));
  source.root = snapshot.directory;
  source.name = text;
  source.repo = text;
  source.revision = snapshot.commit;
  return source;
}

Result<Source> locate_packed(const std::string& text) {
  std::error_code error;
  const fs::path path = fs::path(text).lexically_normal();
  const fs::path named = path.has_filename() ? path : path.parent_path();
  if (fs::exists(named, error) || (is_repo_id(text) && is_cached(hf_cache_directory(), text)))
    return locate_source(text, nullptr);
  if (text.empty()) return invalid_argument("the directory is an empty string");
  const fs::path staging = named.parent_path() / ("." + named.filename().string() + ".glyd-staging");
  if (fs::exists(staging, error)) {
    return not_found(
        "{}: not there yet: a pack to it is running or was stopped ({}); the same glyd pack goes on from there", text,
        staging.string());
  }
  return not_found("{}: no such directory (`glyd pack` makes one)", text);
}

Result<Source> open_source(const std::string& text, const char* revision) {
  GLYD_TRY(Source source, locate_source(text, revision));
  if (!is_utf8(source.name)) return unsupported("{}: a name that is not UTF-8 cannot be kept; rename it", text);
  if (!source.is_file) {
    GLYD_CHECK(open_directory(source));
    return source;
  }
  if (!source.name.ends_with(".safetensors"))
    return invalid_argument("{}: not a .safetensors file; give one, or a directory that holds some", text);
  GLYD_CHECK(open_one_file(source));
  return source;
}

}  // namespace glyd
