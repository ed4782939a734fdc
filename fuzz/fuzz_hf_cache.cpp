// fuzz_hf_cache.cpp - any text as a repo id and a revision: what is found lies inside the repo's folder of the cache.
// The cache is a small one with snapshots, refs, and links that lead out of it.
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "checkpoint/hf_cache.hpp"
#include "common/guarded_buffer.hpp"

namespace {

namespace fs = std::filesystem;
using glyd::fuzz::check;

constexpr const char* kCommit = "0123456789abcdef0123456789abcdef01234567";
constexpr const char* kStrayCommit = "ffffffffffffffffffffffffffffffffffffffff";

void write_text(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

struct Cache {
  fs::path root, hub;

  Cache() {
    std::string name = (fs::temp_directory_path() / "glyd-fuzz-XXXXXX").string();
    check(mkdtemp(name.data()) != nullptr);
    root = fs::canonical(name);
    hub = root / "hub";
    const fs::path repo = hub / "models--org--name";
    fs::create_directories(repo / "snapshots" / kCommit);
    write_text(repo / "refs" / "main", kCommit);
    write_text(repo / "refs" / "pr" / "1", std::string(kCommit) + "\n");
    write_text(repo / "refs" / "bad", "../../../outside");
    write_text(root / "outside" / "secret", "x");
    fs::create_directory_symlink(root / "outside", repo / "snapshots" / kStrayCommit);
    fs::create_directories(hub / "models--alone" / "snapshots" / kCommit);
    write_text(hub / "models--alone" / "refs" / "main", kCommit);
  }
  ~Cache() { fs::remove_all(root); }
};

const Cache& cache() {
  static const Cache made;
  return made;
}

}  // namespace

// Repo id, newline, revision, and after a second newline the text of refs/fuzz.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::size_t first = text.find('\n');
  if (first == std::string::npos) return 0;
  const std::size_t second = std::min(text.find('\n', first + 1), text.size());
  const std::string repo = text.substr(0, first), revision = text.substr(first + 1, second - first - 1);
  if (second < text.size()) write_text(cache().hub / "models--org--name" / "refs" / "fuzz", text.substr(second + 1));
  if (glyd::is_repo_id(repo)) {
    const fs::path inside = fs::path("hub") / repo;
    check(inside.lexically_normal() == inside && repo.front() != '/');
  }
  const auto snapshot = glyd::find_snapshot(cache().hub, repo, revision);
  if (!snapshot) {
    check(!snapshot.error().message.empty());
    return 0;
  }
  check(glyd::is_repo_id(repo));
  const fs::path found = fs::canonical(snapshot.value().directory);
  const std::string relative = found.lexically_relative(cache().hub).string();
  check(relative.starts_with("models--") && relative.find("..") == std::string::npos);
  check(found.parent_path().filename() == "snapshots" && snapshot.value().commit == kCommit);
  const fs::path blobs = glyd::blobs_of_snapshot(found);
  check(blobs.empty() || glyd::is_inside(blobs, cache().hub));
  return 0;
}
