// codec_arguments.hpp - what the functions of glyd/codec.h share: options and callbacks as the codec takes them.
#pragma once

#include "base/guard.hpp"
#include "codec/frame/reader.hpp"
#include "codec/frame/writer.hpp"
#include "glyd/codec.h"

namespace glyd::capi {

inline Result<ByteSpan> codec_input(const void* bytes, size_t count, const char* name) {
  if (bytes == nullptr && count != 0) return invalid_argument("{} is null", name);
  return ByteSpan(static_cast<const uint8_t*>(bytes), count);
}

Result<codec::WriterOptions> codec_writer_options(const glyd_compress_options* given);
Result<codec::ReaderOptions> codec_reader_options(const glyd_decompress_options* given);
// A callback's status as an error; the callback may have left the text.
Error codec_callback_error(glyd_status status, const char* what);
Result<void> codec_write_info(const codec::FrameReader& reader, uint64_t frame_bytes, glyd_frame_info* out);

}  // namespace glyd::capi
