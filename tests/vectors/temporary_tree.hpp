// temporary_tree.hpp - a directory that goes with the object, and directory trees as maps that can be compared.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

namespace vectors {

class TemporaryTree {
 public:
  TemporaryTree() {
    std::string name = (std::filesystem::temp_directory_path() / "glyd-vectors-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error(name + ": cannot be made");
    path_ = name;
  }
  ~TemporaryTree() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  TemporaryTree(const TemporaryTree&) = delete;
  TemporaryTree& operator=(const TemporaryTree&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

// Every file's contents by its path, empty directories as "path/"; a lone file is one entry named "".
using Tree = std::map<std::string, std::string>;
inline Tree tree_of(const std::filesystem::path& root) {
  if (std::filesystem::is_regular_file(root)) return {{"", read_text(root)}};
  Tree tree;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    const std::string name = entry.path().lexically_relative(root).string();
    if (entry.is_regular_file()) tree[name] = read_text(entry.path());
    if (entry.is_directory() && std::filesystem::is_empty(entry.path())) tree[name + "/"] = "";
  }
  return tree;
}

// The paths that only one of them has or whose contents differ: short enough to be read, unlike the contents.
inline std::string difference(const Tree& found, const Tree& expected) {
  std::string text;
  for (const auto& [path, contents] : found) {
    const auto same = expected.find(path);
    if (same == expected.end()) text += "unexpected: " + path + "\n";
    if (same != expected.end() && same->second != contents) text += "differs: " + path + "\n";
  }
  for (const auto& [path, contents] : expected) {
    if (!found.contains(path)) text += "missing: " + path + "\n";
  }
  return text;
}

}  // namespace vectors
