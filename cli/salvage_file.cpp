#include "salvage_file.hpp"

#include <sys/mman.h>

#include <cerrno>

namespace glyd::cli {
namespace {

constexpr size_t kPieceBytes = 4 << 20;

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
