// foreign.hpp - files that lie in a directory of ours and are not ours. Spec: docs/spec/checkpoint.md 5, 6.
#pragma once

#include <filesystem>
#include <functional>
#include <set>
#include <string>

#include "base/result.hpp"

namespace glyd {

// What hubs, git and desktops put into a directory: .git, .gitattributes, .gitignore and .cache at its top, .DS_Store
// and Thumbs.db anywhere. Packed checkpoints do not mind them.
bool is_housekeeping(const std::string& path);

// Refuses to replace the directory `target` where that would lose files (or empty directories) other than those in
// `replaced` and those for which `is_ours` is true. Paths are relative, with '/'; `replaced` has "name/" for empty
// directories.
Result<void> refuse_to_lose(const std::filesystem::path& target, const std::set<std::string>& replaced,
                            const std::function<bool(const std::string&)>& is_ours);

}  // namespace glyd
