#include "salvage_file.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "report.hpp"
#include "staged_file.hpp"

namespace glyd::cli {
namespace {

constexpr size_t kPieceBytes = 4 << 20;

char unreadable_message[8192];  // written before the handler that reads it is set
size_t unreadable_bytes = 0;

void end_unreadable(int) {
  take_staging_away();
  [[maybe_unused]] const ssize_t told = ::write(STDERR_FILENO, unreadable_message, unreadable_bytes);
  ::_exit(kExitIo);
}

// While it lives, a mapped page that cannot be read ends the program with a message: the kernel knows no other answer
// to a disk that fails, or to a file that somebody cuts short, than SIGBUS.
class PageWatch {
 public:
  explicit PageWatch(const std::string& name) {
    const auto end = fmt::format_to_n(unreadable_message, sizeof unreadable_message,
                                      "glyd: error: {}: a part of it can no longer be read: it became shorter, or its "
                                      "disk fails; copy what can be read, and salvage the copy\n",
                                      name);
    unreadable_bytes = std::min(end.size, sizeof unreadable_message);
    struct sigaction action {};
    action.sa_handler = end_unreadable;
    ::sigaction(SIGBUS, &action, &before_);
  }
  ~PageWatch() { ::sigaction(SIGBUS, &before_, nullptr); }
  PageWatch(const PageWatch&) = delete;
  PageWatch& operator=(const PageWatch&) = delete;

 private:
  struct sigaction before_ {};
};

// The whole source: mapped, or read where it is a pipe.
class Whole {
 public:
  Whole() = default;
  ~Whole() {
    if (mapped_ != nullptr) ::munmap(mapped_, size_);
  }
  Whole(const Whole&) = delete;
  Whole& operator=(const Whole&) = delete;

  Outcome load(InputFile& source) {
    if (!source.seekable()) return load_pipe(source);
    size_ = source.size();
    if (size_ == 0) return {};
    void* mapped = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, source.descriptor(), 0);
    if (mapped == MAP_FAILED) return system_failure("map", source.name());
    mapped_ = mapped;
    return {};
  }
  const void* data() const { return mapped_ != nullptr ? mapped_ : read_.data(); }
  size_t size() const { return size_; }

 private:
  Outcome load_pipe(InputFile& source) {
    for (size_t count = 1; count != 0; size_ += count) {
      read_.resize(size_ + kPieceBytes);
      if (Outcome read = source.read(read_.data() + size_, kPieceBytes, count); !read.ok()) return read;
    }
    return {};
  }

  void* mapped_ = nullptr;
  size_t size_ = 0;
  std::vector<char> read_;
};

struct Taker {
  OutputFile& target;
  Salvaged& result;
  uint64_t end = 0;  // of the content so far
  Outcome problem;
};

glyd_status take(void* context, uint64_t position, const void* content, size_t bytes) {
  auto& taker = *static_cast<Taker*>(context);
  if (position > taker.end) {
    taker.result.lost.push_back({taker.end, position});
    taker.problem = taker.target.skip(position - taker.end);
    if (!taker.problem.ok()) return taker.problem.status;
  }
  taker.end = position + bytes;
  taker.problem = taker.target.write(content, bytes);
  return taker.problem.status;
}

}  // namespace

Outcome salvage_file(InputFile& source, OutputFile& target, Salvaged& result) {
  Whole whole;
  if (Outcome loaded = whole.load(source); !loaded.ok()) return loaded;
  const PageWatch watch(source.name());
  Taker taker{target, result, 0, {}};
  glyd_salvage_report report{};
  report.struct_size = sizeof report;
  const glyd_status status = glyd_salvage(whole.data(), whole.size(), take, &taker, &report);
  if (status != GLYD_OK) return taker.problem.ok() ? library_failure(status, source.name()) : taker.problem;
  if (report.content_end > taker.end) result.lost.push_back({taker.end, report.content_end});
  result.recovered_bytes = report.recovered_bytes;
  result.complete = report.complete != 0;
  return {};
}

}  // namespace glyd::cli
