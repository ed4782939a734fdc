#include "output_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "staged_file.hpp"

namespace glyd::cli {
namespace {

constexpr size_t kMostBytesACall = size_t{1} << 30;
// Zeros shorter than this are written: holes of single pages cut a file into pieces and are slow to read.
constexpr size_t kHoleBytes = 64 << 10;

bool same_file(const struct stat& a, const struct stat& b) { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }

Outcome refuse_source(const std::string& name) {
  return {GLYD_ERROR_INVALID_ARGUMENT,
          fmt::format("{} is the source itself, which would be lost: choose another output", name)};
}

bool all_zero(const uint8_t* bytes, size_t count) {
  return count == 0 || (bytes[0] == 0 && std::memcmp(bytes, bytes + 1, count - 1) == 0);
}

void sync_folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const int opened = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (opened < 0) return;
  ::fsync(opened);
  ::close(opened);
}

}  // namespace

OutputFile::~OutputFile() {
  if (staged_) {
    ::unlink(staging_.c_str());
    forget_staging();
  }
  if (descriptor_ >= 0 && !standard_) ::close(descriptor_);
}

Outcome OutputFile::open(const std::string& target, const InputFile& source, const OutputOptions& options) {
  options_ = options;
  if (target == "-") {
    standard_ = true;
    name_ = "standard output";
    descriptor_ = STDOUT_FILENO;
    struct stat there {};
    const bool refused = ::fstat(descriptor_, &there) == 0 && S_ISREG(there.st_mode) && same_file(there, source.info());
    return refused ? refuse_source(name_) : Outcome{};
  }
  name_ = target_ = target;
  bool found = false;
  if (const Outcome existing = open_existing(source, found); !existing.ok() || found) return existing;
  return open_staging();
}

// `found`: a device, a pipe: what writes there keeps what is there, and nothing is taken away.
Outcome OutputFile::open_existing(const InputFile& source, bool& found) {
  struct stat there {};
  if (::stat(target_.c_str(), &there) != 0) {
    if (errno != ENOENT) return system_failure("create", target_);
    if (::lstat(target_.c_str(), &there) != 0) return {};
    return {GLYD_ERROR_EXISTS,
            fmt::format("{} is a link to nothing; remove it, or name the file it should be", target_)};
  }
  if (same_file(there, source.info()) && !S_ISCHR(there.st_mode)) return refuse_source(target_);
  if (S_ISDIR(there.st_mode)) return {GLYD_ERROR_IO, fmt::format("{} is a directory; name the file to make", target_)};
  if (!S_ISREG(there.st_mode)) {
    found = true;
    descriptor_ = ::open(target_.c_str(), O_WRONLY | O_CLOEXEC);
    return descriptor_ < 0 ? system_failure("open", target_) : Outcome{};
  }
  if (!options_.overwrite)
    return {
        GLYD_ERROR_EXISTS,
        fmt::format("{}: exists already; choose another name, or ask for it to be overwritten (--overwrite)", name_)};
  replaces_ = true;
  struct stat link {};
  if (::lstat(target_.c_str(), &link) == 0 && S_ISLNK(link.st_mode)) {  // what the link points to is replaced
    char resolved[PATH_MAX];
    if (::realpath(target_.c_str(), resolved) == nullptr) return system_failure("open", target_);
    target_ = resolved;
  }
  return {};
}

Outcome OutputFile::open_staging() {
  staging_ = staging_path(target_);
  if (Outcome opened = open_staging_file(staging_, name_, descriptor_); !opened.ok()) return opened;
  staged_ = true;
  return {};
}

Outcome OutputFile::write_here(const uint8_t* bytes, size_t count) {
  for (size_t done = 0; done < count;) {
    const size_t want = std::min(count - done, kMostBytesACall);
    const ssize_t put = staged_ ? ::pwrite(descriptor_, bytes + done, want, static_cast<off_t>(position_ + done))
                                : ::write(descriptor_, bytes + done, want);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && errno == EPIPE && standard_) {  // whoever ignores SIGPIPE for us: the reader has what it wanted
      std::signal(SIGPIPE, SIG_DFL);
      std::raise(SIGPIPE);
    }
    if (put < 0) return system_failure("write", name_);
    done += static_cast<size_t>(put);
  }
  position_ += count;
  end_ = position_;
  return {};
}

// In aligned pieces: file systems have holes of whole blocks only.
Outcome OutputFile::write_sparse(const uint8_t* bytes, size_t count) {
  size_t begin = 0;  // of what is neither written nor skipped
  for (size_t at = 0; at < count;) {
    const size_t piece = std::min<size_t>(count - at, kHoleBytes - (position_ + (at - begin)) % kHoleBytes);
    if (piece == kHoleBytes && all_zero(bytes + at, piece)) {
      if (Outcome written = write_here(bytes + begin, at - begin); !written.ok()) return written;
      position_ += piece;
      begin = at + piece;
    }
    at += piece;
  }
  if (begin == count) return {};
  return write_here(bytes + begin, count - begin);
}

Outcome OutputFile::write(const void* bytes, size_t count) {
  const auto* at = static_cast<const uint8_t*>(bytes);
  return staged_ && options_.sparse ? write_sparse(at, count) : write_here(at, count);
}

Outcome OutputFile::skip(uint64_t count) {
  if (staged_ && options_.sparse) {
    position_ += count;
    return {};
  }
  static constexpr std::array<uint8_t, kHoleBytes> kZeros{};
  while (count > 0) {
    const size_t piece = std::min<uint64_t>(count, kZeros.size());
    if (Outcome written = write_here(kZeros.data(), piece); !written.ok()) return written;
    count -= piece;
  }
  return {};
}

// Permissions, owner where we may, and times of a source that is a file; what a pipe's content gets is as usual.
Outcome OutputFile::take_attributes(const InputFile& source) {
  if (!source.is_file()) {
    const mode_t mask = ::umask(0);
    ::umask(mask);
    return ::fchmod(descriptor_, 0666 & ~mask) == 0 ? Outcome{} : system_failure("set the permissions of", name_);
  }
  const struct stat& from = source.info();
  mode_t mode = from.st_mode & 0777;
  if (::geteuid() == 0 && ::fchown(descriptor_, from.st_uid, static_cast<gid_t>(-1)) != 0) mode &= 0700u;
  // Another group than the source's must not see more than others do.
  if (::fchown(descriptor_, static_cast<uid_t>(-1), from.st_gid) != 0) mode &= 0700u | (mode & 07u) << 3 | 07u;
  const struct timespec times[2] = {from.st_atim, from.st_mtim};
  // File systems without modes or times are no reason to fail: the content is there.
  if (::fchmod(descriptor_, mode) != 0 && errno != EPERM && errno != ENOTSUP)
    return system_failure("set the permissions of", name_);
  if (::futimens(descriptor_, times) != 0 && errno != EPERM && errno != ENOTSUP)
    return system_failure("set the time of", name_);
  return {};
}

Outcome OutputFile::take_name() {
  const unsigned flags = replaces_ ? 0 : RENAME_NOREPLACE;
  int failed = ::renameat2(AT_FDCWD, staging_.c_str(), AT_FDCWD, target_.c_str(), flags);
  if (failed != 0 && errno == EINVAL) {  // a file system that does not know the flag
    failed = ::access(target_.c_str(), F_OK) == 0 ? (errno = EEXIST, -1) : ::rename(staging_.c_str(), target_.c_str());
  }
  if (failed == 0) return {};
  if (errno == EEXIST)
    return {GLYD_ERROR_EXISTS, fmt::format("{} was made by somebody else meanwhile; it is kept", name_)};
  return system_failure("make", name_);
}

Outcome OutputFile::finish(const InputFile& source) {
  if (!staged_) return {};
  if (end_ < position_ && ::ftruncate(descriptor_, static_cast<off_t>(position_)) != 0)
    return system_failure("write", name_);
  if (Outcome taken = take_attributes(source); !taken.ok()) return taken;
  const bool sync = options_.durable || replaces_;
  if (sync && ::fsync(descriptor_) != 0) return system_failure("write", name_);
  if (Outcome named = take_name(); !named.ok()) return named;
  staged_ = false;
  forget_staging();
  if (sync) sync_folder_of(target_);
  const int closing = std::exchange(descriptor_, -1);
  return ::close(closing) == 0 ? Outcome{} : system_failure("write", name_);
}

}  // namespace glyd::cli
