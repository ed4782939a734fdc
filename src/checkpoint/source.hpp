// source.hpp - what is to be packed: a directory, one .safetensors file or a repo in the Hugging Face cache, and every
// file in it. Spec: docs/spec/checkpoint.md 1.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "base/result.hpp"
#include "format/safetensors.hpp"

namespace glyd {

struct SourceFile {
  std::string path;                // in the source, with '/'
  std::filesystem::path absolute;  // links resolved
  uint64_t bytes = 0;
  uint32_t mode = 0644;
  // Which file it was and in which state. The time of change (ctime) is the kernel's own: a file put in this one's
  // place has another, even where its size and time of modification are the same.
  int64_t modified_ns = 0, changed_ns = 0;
  uint64_t inode = 0;
};

struct Source {
  std::filesystem::path root;  // canonical: the directory, or the one file
  bool is_file = false;
  std::string name;
  std::optional<std::string> repo, revision;
  std::vector<SourceFile> tensor_files;    // sorted by path
  std::vector<SourceFile> other_files;     // sorted by path
  std::vector<std::string> directories;    // that hold nothing; sorted
  std::vector<SafetensorsHeader> headers;  // of tensor_files
  uint64_t bytes() const;
  const SourceFile* find_other(std::string_view path) const;
};

// `revision` null: "main" for repo ids; given for a path it is an error.
Result<Source> open_source(const std::string& text, const char* revision);

// An error unless the opened file is the one that was listed, and still as it was then.
Result<void> check_unchanged(const SourceFile& listed, const File& opened);

// True if another file is at its place now, or other bytes are in it; permissions and names do not matter.
bool was_replaced(const SourceFile& listed);

// Where a source text leads: the canonical directory or file, with name, repo and revision set and nothing read.
Result<Source> locate_source(const std::string& text, const char* revision);

// The same for a directory made by pack. One that is missing may be one whose pack was stopped: the error says so.
Result<Source> locate_packed(const std::string& text);

// Every file below a directory. Symbolic links that leave it, links to directories and special files are refused.
struct Listing {
  std::vector<SourceFile> files;
  std::vector<std::string> empty_directories;
};
// What `skip` is true for (a path in the directory) is not looked at, with all below it.
using SkipPath = std::function<bool(const std::string& path)>;
Result<Listing> list_directory(const std::filesystem::path& root, const SkipPath& skip = {});

// The first few names, and how many more there are.
std::string some_of(const std::vector<std::string>& names);

}  // namespace glyd
