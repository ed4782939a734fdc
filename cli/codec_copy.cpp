#include "codec_copy.hpp"

#include <fmt/format.h>

#include <memory>
#include <mutex>

#include "progress.hpp"

namespace glyd::cli {
namespace {

constexpr size_t kPieceBytes = 4 << 20;

// Both ends of a stream, as the library's callbacks see them.
struct Ends {
  InputFile* source;
  OutputFile* target;
  Progress* progress;
  uint64_t total;
  Outcome problem;  // of an end, which the library only knows by its status
  uint64_t fetched = 0, put = 0;

  Outcome failure(glyd_status status) const { return problem.ok() ? library_failure(status, source->name()) : problem; }
};

glyd_status put(void* context, const void* bytes, size_t count) {
  auto& ends = *static_cast<Ends*>(context);
  ends.problem = ends.target->write(bytes, count);
  ends.put += count;
  return ends.problem.status;
}

glyd_status fetch(void* context, void* bytes, size_t capacity, size_t* count) {
  auto& ends = *static_cast<Ends*>(context);
  ends.problem = ends.source->read(bytes, capacity, *count);
  ends.fetched += *count;
  return ends.problem.status;
}

int show(void* context, uint64_t content_bytes) {
  auto& ends = *static_cast<Ends*>(context);
  return Progress::callback(ends.progress, content_bytes, ends.total, ends.source->name().c_str());
}

// What a file's frames hold, to show progress by; a broken one tells nothing.
uint64_t content_of(const InputFile& source) {
  FrameFile frame;
  glyd_frame_info info{};
  const bool known = source.seekable() && frame.open(source).ok() && frame.info(info).ok();
  return known ? info.content_bytes : kUnknownTotal;
}

}  // namespace

Outcome compress_file(InputFile& source, OutputFile& target, glyd_compress_options options, const Common& common,
                      CopyResult& result) {
  const std::optional<uint64_t> size = source.bytes_left();
  Progress progress("compressing", common, false);
  Ends ends{&source, &target, &progress, size.value_or(kUnknownTotal), {}};
  options.progress = show;
  options.progress_context = &ends;
  options.has_content_bytes = size.has_value();
  options.content_bytes = size.value_or(0);
  glyd_compressor* created = nullptr;
  if (const glyd_status status = glyd_compressor_create(&options, put, &ends, &created); status != GLYD_OK)
    return ends.failure(status);
  const std::unique_ptr<glyd_compressor, void (*)(glyd_compressor*)> compressor(
      created, [](glyd_compressor* object) { glyd_compressor_free(object); });
  const std::unique_ptr<char[]> piece(new char[kPieceBytes]);
  for (;;) {
    size_t count = 0;
    if (Outcome read = source.read(piece.get(), kPieceBytes, count); !read.ok()) return read;
    if (count == 0) break;
    result.content_bytes += count;
    if (size && result.content_bytes > *size) break;
    if (const glyd_status status = glyd_compressor_write(compressor.get(), piece.get(), count); status != GLYD_OK)
      return ends.failure(status);
  }
  if (size && result.content_bytes != *size)
    return {GLYD_ERROR_IO,
            fmt::format("{} changed its size while it was read; try again when nobody writes to it", source.name())};
  const glyd_status status = glyd_compressor_finish(compressor.get());
  result.frame_bytes = ends.put;
  return status == GLYD_OK ? Outcome{} : ends.failure(status);
}

Outcome decompress_file(InputFile& source, OutputFile* target, glyd_decompress_options options, const Common& common,
                        CopyResult& result) {
  Progress progress(target == nullptr ? "testing" : "decompressing", common, false);
  Ends ends{&source, target, &progress, content_of(source), {}};
  options.progress = show;
  options.progress_context = &ends;
  glyd_decompressor* created = nullptr;
  if (const glyd_status status = glyd_decompressor_create(&options, fetch, &ends, &created); status != GLYD_OK)
    return ends.failure(status);
  const std::unique_ptr<glyd_decompressor, void (*)(glyd_decompressor*)> decompressor(
      created, [](glyd_decompressor* object) { glyd_decompressor_free(object); });
  const std::unique_ptr<char[]> piece(new char[kPieceBytes]);
  for (size_t count = 1; count != 0;) {
    const glyd_status status = glyd_decompressor_read(decompressor.get(), piece.get(), kPieceBytes, &count);
    if (status != GLYD_OK) return ends.failure(status);
    result.content_bytes += count;
    if (target == nullptr) continue;
    if (Outcome written = target->write(piece.get(), count); !written.ok()) return written;
  }
  result.frame_bytes = ends.fetched;
  return {};
}

glyd_status FrameFile::read_at(void* context, uint64_t offset, void* bytes, size_t count) {
  static std::mutex mutex;  // several threads may fail at once
  const auto* self = static_cast<const FrameFile*>(context);
  Outcome read = self->source_->read_at(offset, bytes, count);
  if (read.ok()) return GLYD_OK;
  const std::lock_guard lock(mutex);
  self->problem_ = read;
  return read.status;
}

Outcome FrameFile::failure(glyd_status status) const {
  return problem_.ok() ? library_failure(status, source_->name()) : problem_;
}

Outcome FrameFile::open(const InputFile& source) {
  source_ = &source;
  if (!source.seekable()) {
    return {GLYD_ERROR_UNSUPPORTED,
            fmt::format("{} cannot be read at any place, as this needs: save it to a file first", source.name())};
  }
  const glyd_status status = glyd_reader_open(read_at, this, source.size(), &reader_);
  return status == GLYD_OK ? Outcome{} : failure(status);
}

Outcome FrameFile::info(glyd_frame_info& info) const {
  info.struct_size = sizeof info;
  const glyd_status status = glyd_reader_info(reader_, &info);
  return status == GLYD_OK ? Outcome{} : failure(status);
}

Outcome FrameFile::unit(uint64_t index, glyd_unit_info& info) const {
  info.struct_size = sizeof info;
  const glyd_status status = glyd_reader_unit(reader_, index, &info);
  return status == GLYD_OK ? Outcome{} : failure(status);
}

Outcome FrameFile::read(uint64_t offset, void* bytes, size_t count, const glyd_decompress_options& options) const {
  const glyd_status status = glyd_reader_read(reader_, &options, offset, bytes, count);
  return status == GLYD_OK ? Outcome{} : failure(status);
}

}  // namespace glyd::cli
