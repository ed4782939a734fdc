// file.hpp - files by descriptor: positioned reads, checked writes, syncs. Errors name the path and the cause.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/bytes.hpp"
#include "base/result.hpp"

namespace glyd {

// An open file; closed when it goes. Reads are thread-safe (pread), writes append.
class File {
 public:
  File() = default;
  ~File();
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;

  // A regular file (a symbolic link to one is followed). GLYD_ERROR_NOT_FOUND if missing; a directory is GLYD_ERROR_IO.
  static Result<File> open_read(const std::filesystem::path& path);
  // A new file; fails with GLYD_ERROR_EXISTS if the path is taken.
  static Result<File> create(const std::filesystem::path& path, mode_t mode = 0644);

  // Exactly bytes.size() bytes from `offset`; fewer is GLYD_ERROR_CORRUPT ("truncated").
  Result<void> read_at(uint64_t offset, MutableByteSpan bytes) const;
  Result<void> write(ByteSpan bytes);
  // Over bytes that were written already; does not move the place where `write` appends.
  Result<void> write_at(uint64_t offset, ByteSpan bytes);
  Result<void> sync();
  Result<void> close();  // reports what a close can report; safe to call twice

  uint64_t size() const { return size_; }        // when opened for reading
  uint64_t written() const { return written_; }  // since create
  const std::string& path() const { return path_; }
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_ = -1;
  uint64_t size_ = 0, written_ = 0;
  std::string path_;
};

// GLYD_ERROR_IO with strerror(errno): "cannot {what} {path}: No space left on device".
Error errno_error(std::string_view what, const std::filesystem::path& path);

// A whole small file; larger than `limit` is an error that says so.
Result<std::string> read_text_file(const std::filesystem::path& path, uint64_t limit);

// create + write + sync + close.
Result<void> write_new_file(const std::filesystem::path& path, ByteSpan bytes, mode_t mode = 0644);

// Makes a rename in `directory` durable.
Result<void> sync_directory(const std::filesystem::path& directory);

}  // namespace glyd
