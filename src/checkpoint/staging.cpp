#include "checkpoint/staging.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

namespace glyd {
namespace {

namespace fs = std::filesystem;

constexpr int kLockAttempts = 100;  // each lost to a process that removed the directory just then

bool there(const fs::path& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0;
}

// A rename that replaces nothing. File systems without the flag get a check and a plain rename.
Result<void> rename_to_free_name(const fs::path& from, const fs::path& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return Ok{};
  if (errno != EINVAL && errno != ENOSYS) return errno_error("create", to);
  if (there(to)) return exists("{}: exists already", to.string());
  if (::rename(from.c_str(), to.c_str()) != 0) return errno_error("create", to);
  return Ok{};
}

// Swaps two paths, in one step where the file system can. Otherwise the target is missing for a moment.
Result<void> swap_names(const fs::path& fresh, const fs::path& target, const fs::path& spare) {
  if (::renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0) return Ok{};
  if (errno != EINVAL && errno != ENOSYS) return errno_error("replace", target);
  if (::rename(target.c_str(), spare.c_str()) != 0) return errno_error("move away", target);
  if (::rename(fresh.c_str(), target.c_str()) != 0) {
    const Error error = errno_error("replace", target);
    (void)::rename(spare.c_str(), target.c_str());
    return error;
  }
  return Ok{};
}

}  // namespace

Result<fs::path> resolve_target(const std::string& text) {
  if (text.empty()) return invalid_argument("the target is an empty string");
  fs::path path = fs::path(text).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();  // "out/"
  const std::string name = path.filename().string();
  if (name.empty() || name == "." || name == "..") return invalid_argument("{}: not a name for a new target", text);
  std::error_code error;
  const fs::path parent = fs::canonical(path.has_parent_path() ? path.parent_path() : fs::path("."), error);
  if (error) {
    return not_found("{}: the directory it should be made in is missing: {}; mkdir -p {} makes it", text,
                     error.message(), path.parent_path().string());
  }
  return parent / name;
}

Staging::Staging(Staging&& other) noexcept
    : target_(std::move(other.target_)),
      directory_(std::move(other.directory_)),
      may_replace_(std::move(other.may_replace_)),
      overwrite_(other.overwrite_),
      keep_(other.keep_),
      lock_(std::exchange(other.lock_, -1)) {}

Staging::~Staging() {
  if (lock_ < 0) return;
  if (!keep_) remove();
  ::close(lock_);
}

Result<Staging> Staging::open(const fs::path& target, bool overwrite, const MayReplace& may_replace) {
  Staging staging;
  staging.target_ = target;
  staging.overwrite_ = overwrite;
  staging.may_replace_ = may_replace;
  staging.directory_ = target.parent_path() / ("." + target.filename().string() + ".glyd-staging");
  const auto check_target = [&]() -> Result<void> {
    if (!there(target)) return Ok{};
    if (!overwrite)
      return exists("{}: exists already; choose another name, or overwrite it (--overwrite, in Python overwrite=True)",
                    target.string());
    return may_replace(target);
  };
  // Without the lock first, so that a refused target costs nothing; with it again, since another process may just have
  // finished.
  GLYD_CHECK(check_target());
  GLYD_CHECK(staging.lock());
  // A swap in two steps that was cut short left the old target here.
  if (const fs::path spare = staging.directory_ / "old"; there(spare) && !there(target)) {
    staging.keep();  // never to be removed before it is back
    GLYD_CHECK(rename_to_free_name(spare, target));
    staging.keep_ = false;
  }
  GLYD_CHECK(check_target());
  return staging;
}

Result<void> Staging::lock() {
  const fs::path path = directory_ / "lock";
  for (int attempt = 0; attempt < kLockAttempts; ++attempt) {
    if (::mkdir(directory_.c_str(), 0700) != 0 && errno != EEXIST) return errno_error("create", directory_);
    struct stat made {};
    if (::lstat(directory_.c_str(), &made) == 0 && !S_ISDIR(made.st_mode)) {
      return io_error("{}: not a directory of its own (a link or a file); remove it", directory_.string());
    }
    const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (descriptor < 0) {
      if (errno == ENOENT) continue;  // removed between the two calls
      return errno_error("create", path);
    }
    if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
      const int code = errno;
      ::close(descriptor);
      if (code == EWOULDBLOCK)
        return busy("{}: another process is writing it (lock {}); wait for it to end", target_.string(), path.string());
      errno = code;
      return errno_error("lock", path);
    }
    // The file that we locked must still be the one at the path: its last holder may have removed it.
    struct stat locked {
    }, named{};
    if (::fstat(descriptor, &locked) == 0 && ::lstat(path.c_str(), &named) == 0 && locked.st_ino == named.st_ino &&
        locked.st_dev == named.st_dev) {
      lock_ = descriptor;
      return Ok{};
    }
    ::close(descriptor);
  }
  return busy("{}: other processes keep writing it", target_.string());
}

void Staging::remove() {
  std::error_code ignored;  // what cannot be removed now, the next pack removes
  for (const auto& entry : fs::directory_iterator(directory_, ignored)) {
    if (entry.path().filename() != "lock") fs::remove_all(entry.path(), ignored);
  }
  ::unlink((directory_ / "lock").c_str());
  ::rmdir(directory_.c_str());
}

Result<void> Staging::commit() {
  if (overwrite_ && there(target_)) GLYD_CHECK(may_replace_(target_));
  if (!overwrite_ && there(target_))
    return exists("{}: was made by somebody else meanwhile; move it away", target_.string());
  // From here on nothing in the directory may be taken for a pack to be resumed: after the swap, `new` is the old
  // target.
  std::error_code ignored;
  fs::remove(journal_path(), ignored);
  if (fs::is_directory(new_path(), ignored)) GLYD_CHECK(sync_directory(new_path()));
  GLYD_CHECK(sync_directory(directory_));
  if (overwrite_ && there(target_)) {
    GLYD_CHECK(swap_names(new_path(), target_, directory_ / "old"));
  } else {
    GLYD_CHECK(rename_to_free_name(new_path(), target_));
  }
  GLYD_CHECK(sync_directory(target_.parent_path()));
  keep_ = false;
  remove();
  ::close(std::exchange(lock_, -1));
  return Ok{};
}

}  // namespace glyd
