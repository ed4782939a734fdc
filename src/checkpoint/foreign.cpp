#include "checkpoint/foreign.hpp"

#include <algorithm>
#include <vector>

namespace glyd {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostNamed = 5;

}  // namespace

bool is_housekeeping(const std::string& path) {
  const std::string top = path.substr(0, path.find('/'));
  const std::string last = path.substr(path.rfind('/') + 1);
  return top == ".git" || top == ".gitattributes" || top == ".gitignore" || top == ".cache" || last == ".DS_Store" ||
         last == "Thumbs.db";
}

Result<void> refuse_to_lose(const fs::path& target, const std::set<std::string>& replaced,
                            const std::function<bool(const std::string&)>& is_ours) {
  std::vector<std::string> lost;
  std::error_code error;
  fs::recursive_directory_iterator entry(target, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    std::string path = entry->path().lexically_relative(target).generic_string();
    const bool is_directory = fs::is_directory(entry->symlink_status(error));
    if (is_directory && !error && !fs::is_empty(entry->path(), error)) continue;
    if (is_directory) path += "/";
    if (!replaced.contains(path) && !is_ours(path)) lost.push_back(path);
    if (error) break;
  }
  if (error) return io_error("cannot list {}: {}", target.string(), error.message());
  if (lost.empty()) return Ok{};
  std::sort(lost.begin(), lost.end());
  const size_t shown = std::min(lost.size(), kMostNamed);
  std::string names =
      fmt::format("{}", fmt::join(lost.begin(), lost.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  if (lost.size() > shown) names += fmt::format(" and {} more", lost.size() - shown);
  return exists(
      "{}: not overwritten, since that would lose what the new one does not have: {}; move it away, or choose another "
      "target",
      target.string(), names);
}

}  // namespace glyd
