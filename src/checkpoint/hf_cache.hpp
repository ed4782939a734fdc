// hf_cache.hpp - where the Hugging Face cache keeps the files of a repo. Nothing is downloaded; nothing outside the
// cache is ever named.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace glyd {

// "org/name" or "name": letters, digits, '-', '_', '.', at most one '/', no component made of dots.
bool is_repo_id(std::string_view text);

// HF_HUB_CACHE, else HF_HOME/hub, else XDG_CACHE_HOME/huggingface/hub, else ~/.cache/huggingface/hub.
std::filesystem::path hf_cache_directory();

struct Snapshot {
  std::filesystem::path directory;
  std::string commit;
};

// The snapshot of `revision` (a branch, a tag, "refs/pr/1" or a commit) of a repo; GLYD_ERROR_NOT_FOUND says where it
// was looked for and how to fetch it.
Result<Snapshot> find_snapshot(const std::filesystem::path& cache, const std::string& repo,
                               const std::string& revision);

// Is any revision of the repo there?
bool is_cached(const std::filesystem::path& cache, const std::string& repo);

// For a directory <repo>/snapshots/<commit>: <repo>/blobs, where its links may point. Else empty.
std::filesystem::path blobs_of_snapshot(const std::filesystem::path& directory);

// True if `path` is `directory` or lies inside it; both canonical.
bool is_inside(const std::filesystem::path& path, const std::filesystem::path& directory);

}  // namespace glyd
