#include "input_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace glyd::cli {
namespace {

constexpr size_t kMostBytesACall = size_t{1} << 30;  // Linux moves at most 2 GiB - 4 KiB a call

}  // namespace

InputFile::~InputFile() {
  if (descriptor_ >= 0 && !standard_) ::close(descriptor_);
}

Outcome InputFile::open(const std::string& path, Reads reads) {
  standard_ = path == "-";
  name_ = standard_ ? "standard input" : path;
  const int waits = reads == Reads::kAnywhere ? O_NONBLOCK : 0;  // to what is no pipe it makes no difference
  descriptor_ = standard_ ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC | waits);
  if (descriptor_ < 0) return system_failure("open", name_);
  if (::fstat(descriptor_, &info_) != 0) return system_failure("read", name_);
  if (S_ISDIR(info_.st_mode)) {
    const bool packed = ::access((path + "/glyd.json").c_str(), F_OK) == 0;
    return {GLYD_ERROR_IO, fmt::format("{} is {}", name_,
                                       packed ? "a packed model: `glyd inspect`, `verify` and `unpack` read it"
                                              : "a directory; --recursive takes the files in it")};
  }
  if (!seekable()) return {};
  const off_t at = ::lseek(descriptor_, 0, SEEK_CUR);
  const off_t end = S_ISREG(info_.st_mode) ? info_.st_size : ::lseek(descriptor_, 0, SEEK_END);
  if (at < 0 || end < 0 || ::lseek(descriptor_, at, SEEK_SET) < 0) return system_failure("read", name_);
  offset_ = static_cast<uint64_t>(at);
  size_ = static_cast<uint64_t>(end);
  return {};
}

std::optional<uint64_t> InputFile::bytes_left() const {
  if (!S_ISREG(info_.st_mode)) return std::nullopt;
  // Files of /proc and /sys say 0 and hold something: their size is not known.
  if (size_ == 0) return std::nullopt;
  return size_ - std::min(offset_, size_);
}

Outcome InputFile::read(void* bytes, size_t capacity, size_t& count) {
  for (;;) {
    const ssize_t got = ::read(descriptor_, bytes, std::min(capacity, kMostBytesACall));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_failure("read", name_);
    count = static_cast<size_t>(got);
    return {};
  }
}

Outcome InputFile::read_at(uint64_t offset, void* bytes, size_t count) const {
  for (size_t done = 0; done < count;) {
    const size_t want = std::min(count - done, kMostBytesACall);
    const ssize_t got = ::pread(descriptor_, static_cast<char*>(bytes) + done, want, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_failure("read", name_);
    if (got == 0) return {GLYD_ERROR_IO, fmt::format("{} became shorter while it was read", name_)};
    done += static_cast<size_t>(got);
  }
  return {};
}

}  // namespace glyd::cli
