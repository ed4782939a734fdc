#include "base/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace glyd {
namespace {

constexpr size_t kMostBytesACall = size_t{1} << 30;  // Linux moves at most 2 GiB - 4 KiB a call

}  // namespace

Error errno_error(std::string_view what, const std::filesystem::path& path) {
  const int code = errno;
  const Status status = code == ENOENT || code == ENOTDIR ? GLYD_ERROR_NOT_FOUND
                        : code == EEXIST                  ? GLYD_ERROR_EXISTS
                                                          : GLYD_ERROR_IO;
  return make_error(status, "cannot {} {}: {}", what, path.string(), std::strerror(code));
}

File::~File() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

File::File(File&& other) noexcept { *this = std::move(other); }

File& File::operator=(File&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(size_, other.size_);
  std::swap(written_, other.written_);
  std::swap(path_, other.path_);
  return *this;
}

Result<File> File::open_read(const std::filesystem::path& path) {
  File file;
  file.path_ = path.string();
  file.descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // NONBLOCK: a FIFO must not hang us
  if (file.descriptor_ < 0) return errno_error("open", path);
  struct stat info {};
  if (::fstat(file.descriptor_, &info) != 0) return errno_error("stat", path);
  if (S_ISDIR(info.st_mode)) return io_error("{} is a directory, not a file", path.string());
  if (!S_ISREG(info.st_mode)) return io_error("{} is not a regular file", path.string());
  file.size_ = static_cast<uint64_t>(info.st_size);
  return file;
}

Result<File> File::create(const std::filesystem::path& path, mode_t mode) {
  File file;
  file.path_ = path.string();
  file.descriptor_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (file.descriptor_ < 0) return errno_error("create", path);
  return file;
}

Result<void> File::read_at(uint64_t offset, MutableByteSpan bytes) const {
  size_t done = 0;
  while (done < bytes.size()) {
    const size_t want = std::min(bytes.size() - done, kMostBytesACall);
    const ssize_t got = ::pread(descriptor_, bytes.data() + done, want, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error("read", path_);
    if (got == 0)
      return corrupt("{}: truncated: wanted {} bytes at offset {}, the file ends at {}", path_, bytes.size(), offset,
                     offset + done);
    done += static_cast<size_t>(got);
  }
  return Ok{};
}

Result<void> File::write(ByteSpan bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t put = ::write(descriptor_, bytes.data() + done, std::min(bytes.size() - done, kMostBytesACall));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return errno_error("write", path_);
    done += static_cast<size_t>(put);
  }
  written_ += bytes.size();
  return Ok{};
}

Result<void> File::write_at(uint64_t offset, ByteSpan bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const size_t want = std::min(bytes.size() - done, kMostBytesACall);
    const ssize_t put = ::pwrite(descriptor_, bytes.data() + done, want, static_cast<off_t>(offset + done));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return errno_error("write", path_);
    done += static_cast<size_t>(put);
  }
  return Ok{};
}

Result<void> File::sync() {
  if (::fsync(descriptor_) != 0) return errno_error("sync", path_);
  return Ok{};
}

Result<void> File::close() {
  if (descriptor_ < 0) return Ok{};
  const int descriptor = std::exchange(descriptor_, -1);
  if (::close(descriptor) != 0) return errno_error("close", path_);
  return Ok{};
}

Result<std::string> read_text_file(const std::filesystem::path& path, uint64_t limit) {
  GLYD_TRY(File file, File::open_read(path));
  if (file.size() > limit)
    return corrupt("{}: {} bytes, more than the {} allowed here", path.string(), file.size(), limit);
  std::string text(file.size(), '\0');
  GLYD_CHECK(file.read_at(0, MutableByteSpan(reinterpret_cast<uint8_t*>(text.data()), text.size())));
  return text;
}

Result<void> write_new_file(const std::filesystem::path& path, ByteSpan bytes, mode_t mode) {
  GLYD_TRY(File file, File::create(path, mode));
  GLYD_CHECK(file.write(bytes));
  GLYD_CHECK(file.sync());
  return file.close();
}

Result<void> sync_directory(const std::filesystem::path& directory) {
  const int descriptor = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return errno_error("open", directory);
  const int failed = ::fsync(descriptor);
  ::close(descriptor);
  if (failed != 0) return errno_error("sync", directory);
  return Ok{};
}

}  // namespace glyd
