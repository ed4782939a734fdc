#include "staged_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <functional>

#include "report.hpp"

namespace glyd::cli {
namespace {

constexpr size_t kLongestName = 255 - 32;  // of NAME, so that the staging file's stays below the usual limit of 255
constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};

// What the signal handler reads. A signal that comes while the file is being made waits until it is known to be ours.
enum : std::sig_atomic_t { kNothing, kOpening, kOurs };
volatile std::sig_atomic_t state = kNothing;
volatile std::sig_atomic_t waiting_signal = 0;
volatile std::sig_atomic_t on_terminal = 0;
char staged_path[PATH_MAX];  // written only in kOpening

void take_away(int signal_number) {
  if (state == kOpening) {
    waiting_signal = signal_number;
    return;
  }
  take_staging_away();
  static constexpr char kClear[] = "\r\x1b[K";
  static constexpr char kText[] = "glyd: interrupted; nothing half-written is left\n";
  // Should the message not arrive, the status still tells.
  if (on_terminal != 0) [[maybe_unused]]
    const ssize_t cleared = ::write(STDERR_FILENO, kClear, sizeof kClear - 1);
  [[maybe_unused]] const ssize_t told = ::write(STDERR_FILENO, kText, sizeof kText - 1);
  ::_exit(kExitSignal + signal_number);
}

void watch_signals() {
  on_terminal = ::isatty(STDERR_FILENO);
  state = kOpening;
  struct sigaction action {};
  action.sa_handler = take_away;
  for (const int number : kSignals) ::sigaddset(&action.sa_mask, number);
  for (const int number : kSignals) {
    struct sigaction before {};
    ::sigaction(number, nullptr, &before);
    if (before.sa_handler != SIG_IGN) ::sigaction(number, &action, nullptr);  // nohup stays deaf
  }
}

void end_opening(std::sig_atomic_t now) {
  state = now;
  if (waiting_signal != 0) take_away(waiting_signal);
}

// Of an open file at the staging path: OK if it is ours alone; `gone` if it no longer lies there.
Outcome claim(int opened, const std::string& path, const std::string& target, bool& gone) {
  struct stat ours {
  }, there{};
  // Anybody may put something there in a folder that all may write: only a file of our own is taken over.
  if (opened < 0 || ::fstat(opened, &ours) != 0 || !S_ISREG(ours.st_mode) || ours.st_nlink > 1 ||
      ours.st_uid != ::geteuid())
    return {GLYD_ERROR_EXISTS, fmt::format("{} is in the way and not ours: remove it", path)};
  if (::flock(opened, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return system_failure("lock", path);
    return {GLYD_ERROR_BUSY, fmt::format("{} is being written by another process", target)};
  }
  // Its maker may have given it its name, or taken it away, before we had the lock.
  gone = ::stat(path.c_str(), &there) != 0 || ours.st_ino != there.st_ino || ours.st_dev != there.st_dev;
  return {};
}

Outcome open_ours(const std::string& path, const std::string& target, int& descriptor) {
  for (;;) {
    const int opened = ::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    if (opened < 0 && errno != ELOOP) return system_failure("create", target);
    bool gone = false;
    Outcome claimed = claim(opened, path, target, gone);
    if (claimed.ok() && !gone) {
      if (::ftruncate(opened, 0) == 0) {
        descriptor = opened;
        return {};
      }
      claimed = system_failure("write", target);
      ::unlink(path.c_str());
    }
    if (opened >= 0) ::close(opened);
    if (!claimed.ok()) return claimed;
  }
}

}  // namespace

std::string staging_path(const std::string& target) {
  const size_t slash = target.rfind('/');
  const size_t begin = slash == std::string::npos ? 0 : slash + 1;
  std::string name = target.substr(begin);
  if (name.size() > kLongestName)
    name = fmt::format("{}-{:016x}", name.substr(0, kLongestName - 17), std::hash<std::string>{}(name));
  return fmt::format("{}.{}.glyd-staging", target.substr(0, begin), name);
}

Outcome open_staging_file(const std::string& path, const std::string& target, int& descriptor) {
  if (path.size() >= sizeof staged_path) return {GLYD_ERROR_IO, fmt::format("{}: too long a path", target)};
  watch_signals();
  std::memcpy(staged_path, path.c_str(), path.size() + 1);
  Outcome opened = open_ours(path, target, descriptor);
  end_opening(opened.ok() ? kOurs : kNothing);
  return opened;
}

void forget_staging() { state = kNothing; }

void take_staging_away() {
  if (state == kOurs) ::unlink(staged_path);
}

}  // namespace glyd::cli
