// codec_stream.cpp - glyd/codec.h: readers of seekable frames, streams in and out.
#include <algorithm>

#include "capi/codec_arguments.hpp"
#include "codec/frame/stream.hpp"

namespace glyd::capi {
namespace {

class CallbackSource final : public codec::Source {
 public:
  CallbackSource(glyd_read_at read_at, void* context, uint64_t size)
      : read_at_(read_at), context_(context), size_(size) {}
  uint64_t size() const override { return size_; }
  Result<ByteSpan> view(uint64_t offset, size_t bytes, std::vector<uint8_t>& buffer) const override {
    if (offset > size_ || bytes > size_ - offset)
      return corrupt("cut short: {} bytes at {} of {}", bytes, offset, size_);
    if (buffer.size() < bytes) buffer.resize(bytes);
    if (const glyd_status status = read_at_(context_, offset, buffer.data(), bytes); status != GLYD_OK)
      return codec_callback_error(status, "read_at");
    return ByteSpan(buffer.data(), bytes);
  }

 private:
  glyd_read_at read_at_;
  void* context_;
  uint64_t size_;
};

}  // namespace
}  // namespace glyd::capi

using namespace glyd;
using namespace glyd::capi;

struct glyd_reader {
  CallbackSource source;
  std::optional<codec::FrameReader> reader;
};

struct glyd_compressor {
  glyd_write write;
  void* context;
  std::vector<uint8_t> metadata;
  std::optional<codec::FrameWriter> writer;
  bool failed = false, finished = false;
};

struct glyd_decompressor {
  std::optional<codec::StreamDecoder> decoder;
  bool failed = false;
};

namespace {

// After a failure the rest of the stream would be nonsense.
template <typename Object, typename Body>
glyd_status guarded_once(Object* object, Body&& body) noexcept {
  const glyd_status status = guarded([&]() -> Result<void> {
    GLYD_CHECK(not_null(object, "stream"));
    if (object->failed) return invalid_argument("the stream failed before: free it");
    return body();
  });
  if (object != nullptr && status != GLYD_OK) object->failed = true;
  return status;
}

}  // namespace

extern "C" {

glyd_status glyd_reader_open(glyd_read_at read_at, void* context, uint64_t frame_bytes, glyd_reader** reader) noexcept {
  return guarded([&]() -> Result<void> {
    GLYD_CHECK(not_null(read_at, "read_at"));
    GLYD_CHECK(not_null(reader, "reader"));
    auto made = std::make_unique<glyd_reader>(glyd_reader{CallbackSource(read_at, context, frame_bytes), std::nullopt});
    GLYD_TRY(made->reader, codec::FrameReader::open(made->source));
    *reader = made.release();
    return {};
  });
}

glyd_status glyd_reader_info(const glyd_reader* reader, glyd_frame_info* info) noexcept {
  return guarded([&]() -> Result<void> {
    GLYD_CHECK(not_null(reader, "reader"));
    return codec_write_info(*reader->reader, reader->source.size(), info);
  });
}

glyd_status glyd_reader_metadata(const glyd_reader* reader, void* metadata, size_t capacity) noexcept {
  return guarded([&]() -> Result<void> {
    GLYD_CHECK(not_null(reader, "reader"));
    GLYD_TRY(const std::vector<uint8_t> bytes, reader->reader->metadata(0));
    if (bytes.size() > capacity)
      return Error{GLYD_ERROR_BUFFER_TOO_SMALL,
                   fmt::format("the metadata has {} bytes, there is room for {}", bytes.size(), capacity)};
    if (!bytes.empty()) GLYD_CHECK(not_null(metadata, "metadata"));
    std::copy(bytes.begin(), bytes.end(), static_cast<uint8_t*>(metadata));
    return {};
  });
}

glyd_status glyd_reader_read(const glyd_reader* reader, const glyd_decompress_options* options, uint64_t offset,
                             void* content, size_t bytes) noexcept {
  return guarded([&]() -> Result<void> {
    GLYD_CHECK(not_null(reader, "reader"));
    if (bytes != 0) GLYD_CHECK(not_null(content, "content"));
    GLYD_TRY(const codec::ReaderOptions o, codec_reader_options(options));
    return reader->reader->read(offset, {static_cast<uint8_t*>(content), bytes}, o);
  });
}

glyd_status glyd_reader_verify(const glyd_reader* reader, const glyd_decompress_options* options) noexcept {
  return guarded([&]() -> Result<void> {
    GLYD_CHECK(not_null(reader, "reader"));
    GLYD_TRY(const codec::ReaderOptions o, codec_reader_options(options));
    return reader->reader->verify(o);
  });
}

glyd_status glyd_reader_unit(const glyd_reader* reader, uint64_t unit, glyd_unit_info* info) noexcept {
  return guarded([&]() -> Result<void> {
    GLYD_CHECK(not_null(reader, "reader"));
    const auto& units = reader->reader->units();
    if (unit >= units.size()) return invalid_argument("unit {}: there are {}", unit, units.size());
    const codec::UnitPlace& place = units[unit];
    glyd_unit_info result{};
    result.content_begin = place.content_begin;
    result.content_bytes = place.raw_bytes;
    result.frame_offset = place.chunk_offset;
    result.stored_bytes = place.stored_bytes;
    return write_struct(result, info, "info");
  });
}

void glyd_reader_free(glyd_reader* reader) noexcept { delete reader; }

glyd_status glyd_compressor_create(const glyd_compress_options* options, glyd_write write, void* context,
                                   glyd_compressor** compressor) noexcept {
  return guarded([&]() -> Result<void> {
    GLYD_CHECK(not_null(write, "write"));
    GLYD_CHECK(not_null(compressor, "compressor"));
    GLYD_TRY(codec::WriterOptions o, codec_writer_options(options));
    auto made = std::make_unique<glyd_compressor>();
    made->write = write;
    made->context = context;
    made->metadata.assign(o.metadata.begin(), o.metadata.end());
    o.metadata = made->metadata;
    made->writer.emplace(std::move(o), [object = made.get()](ByteSpan bytes) -> Result<void> {
      const glyd_status status = object->write(object->context, bytes.data(), bytes.size());
      if (status != GLYD_OK) return codec_callback_error(status, "write");
      return {};
    });
    GLYD_CHECK(made->writer->begin());
    *compressor = made.release();
    return {};
  });
}

glyd_status glyd_compressor_write(glyd_compressor* compressor, const void* content, size_t bytes) noexcept {
  return guarded_once(compressor, [&]() -> Result<void> {
    if (compressor->finished) return invalid_argument("the frame is finished");
    GLYD_TRY(const ByteSpan input, codec_input(content, bytes, "content"));
    return compressor->writer->write(input);
  });
}

glyd_status glyd_compressor_finish(glyd_compressor* compressor) noexcept {
  return guarded_once(compressor, [&]() -> Result<void> {
    if (compressor->finished) return invalid_argument("the frame is finished");
    compressor->finished = true;
    return compressor->writer->finish();
  });
}

void glyd_compressor_free(glyd_compressor* compressor) noexcept { delete compressor; }

glyd_status glyd_decompressor_create(const glyd_decompress_options* options, glyd_read read, void* context,
                                     glyd_decompressor** decompressor) noexcept {
  return guarded([&]() -> Result<void> {
    GLYD_CHECK(not_null(read, "read"));
    GLYD_CHECK(not_null(decompressor, "decompressor"));
    GLYD_TRY(codec::ReaderOptions o, codec_reader_options(options));
    auto made = std::make_unique<glyd_decompressor>();
    made->decoder.emplace(
        [read, context](MutableByteSpan bytes) -> Result<size_t> {
          size_t count = 0;
          const glyd_status status = read(context, bytes.data(), bytes.size(), &count);
          if (status != GLYD_OK) return codec_callback_error(status, "read");
          return count;
        },
        std::move(o));
    *decompressor = made.release();
    return {};
  });
}

glyd_status glyd_decompressor_read(glyd_decompressor* decompressor, void* content, size_t capacity,
                                   size_t* bytes) noexcept {
  return guarded_once(decompressor, [&]() -> Result<void> {
    GLYD_CHECK(not_null(bytes, "bytes"));
    if (capacity != 0) GLYD_CHECK(not_null(content, "content"));
    GLYD_TRY(*bytes, decompressor->decoder->read({static_cast<uint8_t*>(content), capacity}));
    return {};
  });
}

void glyd_decompressor_free(glyd_decompressor* decompressor) noexcept { delete decompressor; }

}  // extern "C"
