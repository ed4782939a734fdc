// input_file.hpp - what a codec verb reads: a file, a pipe, a device or standard input.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <string>

#include "outcome.hpp"

namespace glyd::cli {

class InputFile {
 public:
  InputFile() = default;
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  // "-" is standard input. Links are followed; a directory is refused. A pipe is waited for until something writes to
  // it, unless the caller reads at any place (kAnywhere), which no pipe can do.
  enum class Reads { kForward, kAnywhere };
  Outcome open(const std::string& path, Reads reads = Reads::kForward);

  // The next bytes; 0 at the end.
  Outcome read(void* bytes, size_t capacity, size_t& count);
  // Exactly `count` bytes at `offset`; only of a seekable file.
  Outcome read_at(uint64_t offset, void* bytes, size_t count) const;

  bool seekable() const { return S_ISREG(info_.st_mode) || S_ISBLK(info_.st_mode); }
  std::optional<uint64_t> bytes_left() const;  // when opened; known of regular files alone
  uint64_t size() const { return size_; }      // of a seekable one
  bool is_file() const { return S_ISREG(info_.st_mode) && !standard_; }
  int descriptor() const { return descriptor_; }
  const struct stat& info() const { return info_; }
  const std::string& name() const { return name_; }  // for messages

 private:
  int descriptor_ = -1;
  bool standard_ = false;
  uint64_t size_ = 0, offset_ = 0;
  std::string name_;
  struct stat info_ {};
};

}  // namespace glyd::cli
