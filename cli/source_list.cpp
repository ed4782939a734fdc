#include "source_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "report.hpp"

namespace glyd::cli {
namespace {

namespace fs = std::filesystem;

Outcome list_folder(const std::string& folder, Take take, std::vector<std::string>& files) {
  std::error_code error;
  std::vector<std::string> found;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code unknown;
    if (!fs::is_regular_file(at->symlink_status(unknown))) continue;
    const std::string path = at->path().string();
    if (path.ends_with(".glyd-staging")) continue;
    if (has_frame_suffix(path) == (take == Take::kFrames)) found.push_back(path);
  }
  if (error) return {GLYD_ERROR_IO, fmt::format("cannot read {} and what is in it: {}", folder, error.message())};
  std::sort(found.begin(), found.end());
  files.insert(files.end(), found.begin(), found.end());
  return {};
}

}  // namespace

bool has_frame_suffix(const std::string& path) { return path.ends_with(kFrameSuffix); }

bool is_directory(const std::string& path) {
  std::error_code unknown;
  return fs::is_directory(path, unknown);
}

Outcome list_sources(const std::vector<std::string>& named, bool recursive, Take take,
                     std::vector<std::string>& files) {
  for (const std::string& path : named) {
    if (!recursive || !is_directory(path)) {
      files.push_back(path);
    } else if (Outcome listed = list_folder(path, take, files); !listed.ok()) {
      return listed;
    }
  }
  if (named.empty()) files.emplace_back("-");
  return {};
}

int for_each_source(const std::vector<std::string>& files, const std::function<Outcome(const std::string&)>& work) {
  int code = kExitDone;
  for (const std::string& file : files) {
    const Outcome outcome = work(file);
    if (outcome.ok()) continue;
    const int failed = report_failure(outcome);
    if (code == kExitDone) code = failed;
  }
  return code;
}

}  // namespace glyd::cli
