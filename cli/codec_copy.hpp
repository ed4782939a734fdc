// codec_copy.hpp - one file through the codec, either way, in pieces of bounded memory.
#pragma once

#include <cstdint>
#include <string>

#include "glyd/codec.h"
#include "input_file.hpp"
#include "output_file.hpp"
#include "verb.hpp"

namespace glyd::cli {

// What every decoding verb allows a frame to take unless told otherwise: all that our levels write, on some thirty
// threads, and not what a hostile header may ask for.
inline constexpr const char* kMemoryDefault = "2GiB";

struct CopyResult {
  std::string source, target;
  uint64_t content_bytes = 0, frame_bytes = 0;
};

Outcome compress_file(InputFile& source, OutputFile& target, glyd_compress_options options, const Common& common,
                      CopyResult& result);

// All frames of `source`. A null `target` is a test: every check is made, nothing is kept.
Outcome decompress_file(InputFile& source, OutputFile* target, glyd_decompress_options options, const Common& common,
                        CopyResult& result);

// A whole frame of a file that can be read at any place.
class FrameFile {
 public:
  FrameFile() = default;
  ~FrameFile() { glyd_reader_free(reader_); }
  FrameFile(const FrameFile&) = delete;
  FrameFile& operator=(const FrameFile&) = delete;

  Outcome open(const InputFile& source);  // which must outlive it
  Outcome info(glyd_frame_info& info) const;
  Outcome unit(uint64_t index, glyd_unit_info& info) const;
  Outcome read(uint64_t offset, void* bytes, size_t count, const glyd_decompress_options& options) const;

 private:
  static glyd_status read_at(void* context, uint64_t offset, void* bytes, size_t count);
  Outcome failure(glyd_status status) const;

  const InputFile* source_ = nullptr;
  glyd_reader* reader_ = nullptr;
  mutable Outcome problem_;  // of the source, which explains a failed call better than the library can
};

}  // namespace glyd::cli
