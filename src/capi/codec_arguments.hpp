// codec_arguments.hpp - what the functions of glyd/codec.h share: options and callbacks as the codec takes them.
#pragma once

#include <cstring>

#include "base/guard.hpp"
#include "codec/frame/reader.hpp"
#include "codec/frame/writer.hpp"
#include "glyd/codec.h"

namespace glyd::capi {

inline Result<ByteSpan> codec_input(const void* bytes, size_t count, const char* name) {
  if (bytes == nullptr && count != 0) return invalid_argument("{} is null", name);
  return ByteSpan(static_cast<const uint8_t*>(bytes), count);
}

template <typename Pointer>
Result<void> codec_not_null(Pointer pointer, const char* name) {
  if (pointer == nullptr) return invalid_argument("{} is null", name);
  return {};
}

Result<codec::WriterOptions> codec_writer_options(const glyd_compress_options* given);
Result<codec::ReaderOptions> codec_reader_options(const glyd_decompress_options* given);
// A callback's status as an error; the callback may have left the text.
Error codec_callback_error(glyd_status status, const char* what);
Result<void> codec_write_info(const codec::FrameReader& reader, uint64_t frame_bytes, glyd_frame_info* out);

// Copies as much of `info` as the caller's struct has room for.
template <typename Info>
Result<void> codec_copy_out(Info info, Info* out) {
  if (out == nullptr) return invalid_argument("info is null");
  if (out->struct_size < sizeof out->struct_size) return invalid_argument("info: struct_size is not set");
  info.struct_size = out->struct_size;
  std::memcpy(static_cast<void*>(out), &info, std::min(out->struct_size, sizeof info));
  return {};
}

}  // namespace glyd::capi
