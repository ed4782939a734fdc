// codec.cpp - glyd/codec.h: options, one call from memory to memory, inspection, salvage.
#include "glyd/codec.h"

#include <algorithm>
#include <bit>
#include <string_view>

#include "capi/codec_arguments.hpp"
#include "codec/frame/salvage.hpp"

namespace glyd::capi {

Result<codec::WriterOptions> codec_writer_options(const glyd_compress_options* given) {
  GLYD_TRY(const glyd_compress_options o, read_options(given));
  codec::WriterOptions options;
  switch (o.level) {
    case GLYD_LEVEL_MAX:
      options.level = codec::Level::kMax;
      break;
    case GLYD_LEVEL_DEFAULT:
      options.level = codec::Level::kDefault;
      break;
    case GLYD_LEVEL_ULTRA:
      options.level = codec::Level::kUltra;
      break;
    default:
      return invalid_argument("unknown level {}", static_cast<int>(o.level));
  }
  if (o.unit_bytes != 0) {
    if (!std::has_single_bit(o.unit_bytes)) return invalid_argument("unit_bytes {}: not a power of two", o.unit_bytes);
    options.unit_log = std::countr_zero(o.unit_bytes);
    if (options.unit_log < codec::kMinUnitLog || options.unit_log > codec::kMaxUnitLog)
      return invalid_argument("unit_bytes {}: 128 KiB to 1 GiB are allowed", o.unit_bytes);
  }
  if (o.threads < 0) return invalid_argument("threads {}: 0 (all) or a number", o.threads);
  options.threads = o.threads;
  GLYD_TRY(options.metadata, codec_input(o.metadata, o.metadata_bytes, "metadata"));
  if (o.progress != nullptr) {
    options.progress = [function = o.progress, context = o.progress_context](uint64_t bytes) {
      return function(context, bytes) == 0;
    };
  }
  if (o.has_content_bytes != 0) options.content_bytes = o.content_bytes;
  return options;
}

Result<codec::ReaderOptions> codec_reader_options(const glyd_decompress_options* given) {
  GLYD_TRY(const glyd_decompress_options o, read_options(given));
  if (o.threads < 0) return invalid_argument("threads {}: 0 (all) or a number", o.threads);
  codec::ReaderOptions options{.threads = o.threads, .memory_limit = o.memory_limit, .progress = nullptr};
  if (o.progress != nullptr) {
    options.progress = [function = o.progress, context = o.progress_context](uint64_t bytes) {
      return function(context, bytes) == 0;
    };
  }
  return options;
}

Error codec_callback_error(glyd_status status, const char* what) {
  return Error{status, fmt::format("the {} function failed: {}", what, glyd_status_text(status))};
}

Result<void> codec_write_info(const codec::FrameReader& reader, uint64_t frame_bytes, glyd_frame_info* out) {
  glyd_frame_info info{};
  info.content_bytes = reader.content_bytes();
  info.frame_bytes = frame_bytes;
  info.frames = reader.frames().size();
  info.units = reader.units().size();
  for (const codec::UnitPlace& unit : reader.units())
    info.largest_unit = std::max<uint64_t>(info.largest_unit, unit.raw_bytes);
  info.memory_bytes = reader.memory_bytes(1);
  const codec::FramePlace& first = reader.frames().front();
  info.level = first.header.level == static_cast<uint8_t>(codec::Level::kDefault) ? GLYD_LEVEL_DEFAULT
               : first.header.level == static_cast<uint8_t>(codec::Level::kUltra) ? GLYD_LEVEL_ULTRA
                                                                                  : GLYD_LEVEL_MAX;
  info.metadata_bytes = first.metadata_bytes;
  return write_struct(info, out, "info");
}

namespace {

struct OpenFrame {
  codec::MemorySource source;
  Result<codec::FrameReader> reader;
  OpenFrame(ByteSpan bytes) : source(bytes), reader(codec::FrameReader::open(source)) {}
};

}  // namespace
}  // namespace glyd::capi

using namespace glyd;
using namespace glyd::capi;

extern "C" {

glyd_status glyd_level_from_name(const char* name, glyd_level* level) noexcept {
  return guarded([&]() -> Result<void> {
    GLYD_CHECK(not_null(name, "name"));
    GLYD_CHECK(not_null(level, "level"));
    const std::string_view wanted = name;
    if (wanted == "default")
      *level = GLYD_LEVEL_DEFAULT;
    else if (wanted == "max")
      *level = GLYD_LEVEL_MAX;
    else if (wanted == "ultra")
      *level = GLYD_LEVEL_ULTRA;
    else
      return invalid_argument("unknown level \"{}\": choose default, max or ultra", wanted);
    return {};
  });
}

glyd_status glyd_compress_bound(uint64_t content_bytes, const glyd_compress_options* options,
                                uint64_t* bytes) noexcept {
  return guarded([&]() -> Result<void> {
    GLYD_CHECK(not_null(bytes, "bytes"));
    GLYD_TRY(const codec::WriterOptions o, codec_writer_options(options));
    *bytes = codec::frame_bound(content_bytes, o.unit_log != 0 ? o.unit_log : codec::default_unit_log(o.level),
                                o.metadata.size());
    return {};
  });
}

glyd_status glyd_compress(const void* content, size_t content_bytes, const glyd_compress_options* options, void* frame,
                          size_t capacity, size_t* frame_bytes) noexcept {
  return guarded([&]() -> Result<void> {
    GLYD_TRY(const ByteSpan input, codec_input(content, content_bytes, "content"));
    GLYD_CHECK(not_null(frame, "frame"));
    GLYD_CHECK(not_null(frame_bytes, "frame_bytes"));
    GLYD_TRY(codec::WriterOptions o, codec_writer_options(options));
    o.content_bytes = input.size();
    size_t used = 0;
    codec::FrameWriter writer(std::move(o), [&](ByteSpan bytes) -> Result<void> {
      if (bytes.size() > capacity - used)
        return Error{GLYD_ERROR_BUFFER_TOO_SMALL,
                     fmt::format("the frame needs more than {} bytes: see glyd_compress_bound", capacity)};
      std::copy(bytes.begin(), bytes.end(), static_cast<uint8_t*>(frame) + used);
      used += bytes.size();
      return {};
    });
    GLYD_CHECK(writer.begin());
    GLYD_CHECK(writer.finish(input));
    *frame_bytes = used;
    return {};
  });
}

int glyd_is_frame(const void* bytes, size_t count) noexcept {
  return bytes != nullptr && count >= 4 && load_le<uint32_t>(bytes) == codec::kFrameMagic ? 1 : 0;
}

glyd_status glyd_frame_read_info(const void* frame, size_t frame_bytes, glyd_frame_info* info) noexcept {
  return guarded([&]() -> Result<void> {
    GLYD_TRY(const ByteSpan input, codec_input(frame, frame_bytes, "frame"));
    OpenFrame open(input);
    if (!open.reader) return open.reader.error();
    return codec_write_info(open.reader.value(), frame_bytes, info);
  });
}

glyd_status glyd_decompress(const void* frame, size_t frame_bytes, const glyd_decompress_options* options,
                            void* content, size_t capacity, size_t* content_bytes) noexcept {
  return guarded([&]() -> Result<void> {
    GLYD_TRY(const ByteSpan input, codec_input(frame, frame_bytes, "frame"));
    GLYD_CHECK(not_null(content_bytes, "content_bytes"));
    GLYD_TRY(const codec::ReaderOptions o, codec_reader_options(options));
    OpenFrame open(input);
    if (!open.reader) return open.reader.error();
    const uint64_t needed = open.reader.value().content_bytes();
    if (needed > capacity)
      return Error{GLYD_ERROR_BUFFER_TOO_SMALL,
                   fmt::format("the content has {} bytes, there is room for {}", needed, capacity)};
    if (needed != 0) GLYD_CHECK(not_null(content, "content"));
    GLYD_CHECK(open.reader.value().read_all({static_cast<uint8_t*>(content), needed}, o));
    *content_bytes = needed;
    return {};
  });
}

glyd_status glyd_decompress_range(const void* frame, size_t frame_bytes, const glyd_decompress_options* options,
                                  uint64_t offset, void* content, size_t bytes) noexcept {
  return guarded([&]() -> Result<void> {
    GLYD_TRY(const ByteSpan input, codec_input(frame, frame_bytes, "frame"));
    if (bytes != 0) GLYD_CHECK(not_null(content, "content"));
    GLYD_TRY(const codec::ReaderOptions o, codec_reader_options(options));
    OpenFrame open(input);
    if (!open.reader) return open.reader.error();
    return open.reader.value().read(offset, {static_cast<uint8_t*>(content), bytes}, o);
  });
}

glyd_status glyd_frame_verify(const void* frame, size_t frame_bytes, const glyd_decompress_options* options) noexcept {
  return guarded([&]() -> Result<void> {
    GLYD_TRY(const ByteSpan input, codec_input(frame, frame_bytes, "frame"));
    GLYD_TRY(const codec::ReaderOptions o, codec_reader_options(options));
    OpenFrame open(input);
    if (!open.reader) return open.reader.error();
    return open.reader.value().verify(o);
  });
}

glyd_status glyd_salvage(const void* frame, size_t frame_bytes, glyd_salvaged unit, void* context,
                         glyd_salvage_report* report) noexcept {
  return guarded([&]() -> Result<void> {
    GLYD_TRY(const ByteSpan input, codec_input(frame, frame_bytes, "frame"));
    GLYD_CHECK(not_null(unit, "unit"));
    GLYD_TRY(const codec::SalvageReport found,
             codec::salvage(input, [&](uint64_t position, ByteSpan content) -> Result<void> {
               const glyd_status status = unit(context, position, content.data(), content.size());
               if (status != GLYD_OK) return codec_callback_error(status, "unit");
               return {};
             }));
    glyd_salvage_report result{};
    result.recovered_bytes = found.recovered_bytes;
    result.content_end = found.content_end;
    result.lost_ranges = found.lost.size();
    result.complete = found.complete ? 1 : 0;
    return write_struct(result, report, "report");
  });
}

}  // extern "C"
