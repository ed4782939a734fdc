#include "checkpoint/hf_cache.hpp"

#include <algorithm>
#include <cstdlib>

#include "base/file.hpp"
#include "checkpoint/manifest.hpp"
#include "format/json_text.hpp"

namespace glyd {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostRepoId = 200, kMostRefBytes = 1024;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// The public library expands "~" in these variables.
fs::path expand_home(const std::string& text) {
  if (text == "~" || text.starts_with("~/"))
    return fs::path(environment("HOME")) / text.substr(std::min<size_t>(text.size(), 2));
  return text;
}

fs::path folder_of(const fs::path& cache, const std::string& repo) {
  std::string folder = "models--" + repo;
  if (const size_t slash = folder.find('/'); slash != std::string::npos) folder.replace(slash, 1, "--");
  return cache / folder;
}

bool is_commit(std::string_view text) { return is_hex(text, 40); }

}  // namespace

bool is_repo_id(std::string_view text) {
  if (text.empty() || text.size() > kMostRepoId || std::count(text.begin(), text.end(), '/') > 1) return false;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                       c == '_' || c == '.' || c == '/';
    if (!plain) return false;
  }
  const auto bad = [](std::string_view part) {
    return part.empty() || part.find_first_not_of('.') == std::string_view::npos;
  };
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return !bad(text);
  return !bad(text.substr(0, slash)) && !bad(text.substr(slash + 1));
}

fs::path hf_cache_directory() {
  if (const auto cache = environment("HF_HUB_CACHE"); !cache.empty()) return expand_home(cache);
  if (const auto home = environment("HF_HOME"); !home.empty()) return expand_home(home) / "hub";
  if (const auto xdg = environment("XDG_CACHE_HOME"); !xdg.empty()) return expand_home(xdg) / "huggingface" / "hub";
  return fs::path(environment("HOME")) / ".cache" / "huggingface" / "hub";
}

bool is_inside(const fs::path& path, const fs::path& directory) {
  const auto [end, unused] = std::mismatch(directory.begin(), directory.end(), path.begin(), path.end());
  (void)unused;
  return end == directory.end();
}

Result<Snapshot> find_snapshot(const fs::path& cache, const std::string& repo, const std::string& revision) {
  if (!is_repo_id(repo)) return invalid_argument("{} is neither a path nor a repo id", json_quote(repo));
  if (!is_plain_path(revision))
    return invalid_argument("revision {} is not a branch, tag or commit", json_quote(revision));
  const fs::path root = folder_of(cache, repo);
  const auto missing = [&](std::string_view what) {
    return not_found("{}: {} (looked in {}); give a path, or fetch it first: hf download {}{}", repo, what,
                     root.string(), repo, revision == "main" ? "" : " --revision " + revision);
  };
  std::error_code error;
  if (!fs::is_directory(root, error)) return missing("no such file, directory or repo in the Hugging Face cache");
  Snapshot snapshot{{}, revision};
  if (const fs::path ref = root / "refs" / revision; fs::is_regular_file(ref, error)) {
    GLYD_TRY(snapshot.commit, read_text_file(ref, kMostRefBytes));
    while (!snapshot.commit.empty() && snapshot.commit.back() <= ' ') snapshot.commit.pop_back();
    if (!is_commit(snapshot.commit)) return corrupt("{}: does not hold a commit", ref.string());
  } else if (!is_commit(revision)) {
    return missing("revision " + json_quote(revision) + " is not in the Hugging Face cache");
  }
  const fs::path place = fs::canonical(root / "snapshots" / snapshot.commit, error);
  if (error || !fs::is_directory(place, error))
    return missing("commit " + snapshot.commit + " is not in the Hugging Face cache");
  if (!is_inside(place, fs::canonical(root, error)))
    return corrupt("{}: leaves the repo's folder in the cache", (root / "snapshots" / snapshot.commit).string());
  snapshot.directory = place;
  return snapshot;
}

bool is_cached(const fs::path& cache, const std::string& repo) {
  std::error_code error;
  return fs::is_directory(folder_of(cache, repo), error);
}

fs::path blobs_of_snapshot(const fs::path& directory) {
  if (directory.parent_path().filename() != "snapshots") return {};
  std::error_code error;
  const fs::path blobs = fs::canonical(directory.parent_path().parent_path() / "blobs", error);
  return error ? fs::path() : blobs;
}

}  // namespace glyd
