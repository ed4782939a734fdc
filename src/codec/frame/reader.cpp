#include "codec/frame/reader.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>

#include "base/parallel.hpp"

namespace glyd::codec {
namespace {

constexpr uint64_t kWorkerBytes = 4 << 20;  // tables and streams of one block

}  // namespace

struct FrameReader::Worker {
  UnitDecoder decoder;
  std::vector<uint8_t> chunk, content;
};

uint64_t FrameReader::memory_bytes(int threads) const {
  uint64_t largest = 0, stored = 0;
  for (const UnitPlace& unit : units_) {
    largest = std::max<uint64_t>(largest, unit.raw_bytes);
    stored = std::max<uint64_t>(stored, unit.stored_bytes);
  }
  return static_cast<uint64_t>(std::max(threads, 1)) * (largest + stored + kWorkerBytes) +
         units_.size() * sizeof(UnitPlace);
}

// The unit at `place` into `out`, all checks made.
Result<void> FrameReader::decode(const UnitPlace& place, MutableByteSpan out, Worker& worker,
                                 ChunkHeader& header) const {
  const auto where = [&] {
    return fmt::format("unit at {}, content {} to {}", place.chunk_offset, place.content_begin,
                       place.content_begin + place.raw_bytes);
  };
  const size_t bytes = kChunkHeaderBytes + place.stored_bytes;
  // A frame's footer follows at least: 16 bytes more are there, and may be loaded.
  GLYD_TRY(const ByteSpan chunk, source_->view(place.chunk_offset, bytes + kFrameFooterBytes, worker.chunk));
  auto parsed = parse_chunk_header(chunk, frames_[place.frame].header.unit_log);
  if (!parsed) return std::move(parsed).at(where()).error();
  header = parsed.value();
  if (!header.is_unit() || header.raw_bytes != place.raw_bytes || header.stored_bytes != place.stored_bytes ||
      header.position != place.content_begin - frames_[place.frame].content_begin) {
    return corrupt("{}: its header differs from the index", where());
  }
  const ByteSpan payload = chunk.subspan(kChunkHeaderBytes, place.stored_bytes);
  if (auto read = read_unit(header, payload, chunk.data() + chunk.size(), worker.decoder, out); !read)
    return std::move(read).at(where()).error();
  return {};
}

// Units that touch [begin, begin + bytes), each on any thread; into `out`, or nowhere if it is null.
Result<void> FrameReader::run(uint64_t begin, uint64_t bytes, uint8_t* out, bool whole,
                              const ReaderOptions& options) const {
  if (begin > content_bytes_ || bytes > content_bytes_ - begin)
    return invalid_argument("range {} to {}: the content has {} bytes", begin, begin + bytes, content_bytes_);
  const uint64_t end = begin + bytes;
  const auto first = static_cast<size_t>(
      std::upper_bound(units_.begin(), units_.end(), begin,
                       [](uint64_t at, const UnitPlace& u) { return at < u.content_begin + u.raw_bytes; }) -
      units_.begin());
  size_t last = first;
  while (last < units_.size() && units_[last].content_begin < end) ++last;

  int threads = std::min(resolve_threads(options.threads), static_cast<int>(std::max<size_t>(last - first, 1)));
  if (options.memory_limit != 0) {
    while (threads > 1 && memory_bytes(threads) > options.memory_limit) --threads;
    if (memory_bytes(threads) > options.memory_limit) {
      return Error{GLYD_ERROR_OUT_OF_MEMORY, fmt::format("decoding needs {} bytes of memory, the limit is {}: raise it",
                                                         memory_bytes(threads), options.memory_limit)};
    }
  }
  std::vector<uint32_t> content_checks(whole ? last - first : 0);
  std::mutex mutex;
  std::vector<std::unique_ptr<Worker>> idle;
  std::optional<Error> failure;
  size_t failed_unit = SIZE_MAX;
  std::atomic<bool> stop{false};
  uint64_t done = 0;
  parallel_for(last - first, 1, threads, [&](uint64_t from, uint64_t to) {
    if (stop.load(std::memory_order_relaxed)) return;
    std::unique_ptr<Worker> worker;
    {
      const std::lock_guard lock(mutex);
      if (!idle.empty()) worker = std::move(idle.back()), idle.pop_back();
    }
    if (!worker) worker = std::make_unique<Worker>();
    for (uint64_t k = from; k < to; ++k) {
      const UnitPlace& unit = units_[first + k];
      const uint64_t wanted_begin = std::max(begin, unit.content_begin),
                     wanted_end = std::min(end, unit.content_begin + unit.raw_bytes);
      const bool direct = out != nullptr && wanted_end - wanted_begin == unit.raw_bytes;
      MutableByteSpan target;
      if (direct) {
        target = {out + (unit.content_begin - begin), unit.raw_bytes};
      } else {
        if (worker->content.size() < unit.raw_bytes) worker->content.resize(unit.raw_bytes);
        target = {worker->content.data(), unit.raw_bytes};
      }
      ChunkHeader header;
      auto result = decode(unit, target, *worker, header);
      if (result && out != nullptr && !direct)
        std::memcpy(out + (wanted_begin - begin), target.data() + (wanted_begin - unit.content_begin),
                    wanted_end - wanted_begin);
      if (result && whole) content_checks[k] = header.content_check;
      const std::lock_guard lock(mutex);
      done += wanted_end - wanted_begin;
      if (result && options.progress && !options.progress(done)) result = cancelled("stopped by the caller");
      if (!result) {
        stop.store(true, std::memory_order_relaxed);
        if (first + k < failed_unit) failed_unit = first + k, failure = std::move(result).error();
        break;
      }
    }
    const std::lock_guard lock(mutex);
    idle.push_back(std::move(worker));
  });
  if (failure) return *failure;
  for (size_t f = 0; whole && f < frames_.size(); ++f) {
    WholeCheck check;
    for (size_t u = frames_[f].first_unit; u < frames_[f].first_unit + frames_[f].unit_count; ++u)
      check.add(units_[u].raw_bytes, content_checks[u]);
    if (check.value() != frames_[f].whole_check)
      return corrupt("frame at {}: its units are whole, but their check together differs", frames_[f].begin);
    GLYD_TRY(const auto unused, metadata(f));
    (void)unused;
  }
  return {};
}

Result<void> FrameReader::read(uint64_t begin, MutableByteSpan out, const ReaderOptions& options) const {
  return run(begin, out.size(), out.data(), false, options);
}

Result<void> FrameReader::read_all(MutableByteSpan out, const ReaderOptions& options) const {
  if (out.size() != content_bytes_)
    return invalid_argument("{} bytes of room for {} of content", out.size(), content_bytes_);
  return run(0, out.size(), out.data(), true, options);
}

Result<void> FrameReader::verify(const ReaderOptions& options) const {
  return run(0, content_bytes_, nullptr, true, options);
}

}  // namespace glyd::codec
