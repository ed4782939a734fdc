// stream.hpp - frames from a source that only goes forward. Spec: docs/spec/codec.md 2.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "codec/frame/frame.hpp"
#include "codec/frame/reader.hpp"

namespace glyd::codec {

// Puts up to bytes.size() bytes and gives their number; 0 is the end.
using Fetch = std::function<Result<size_t>(MutableByteSpan)>;

class StreamDecoder {
 public:
  StreamDecoder(Fetch fetch, ReaderOptions options);
  ~StreamDecoder();
  // Up to out.size() bytes of content; 0 is the end, after every check has passed.
  Result<size_t> read(MutableByteSpan out);

 private:
  struct Slot;
  Result<size_t> fetch_up_to(MutableByteSpan bytes);
  Result<void> fetch_exactly(MutableByteSpan bytes);
  Result<bool> begin_frame();
  Result<void> fill();
  Result<void> take_chunk(Slot& slot, bool& is_unit);
  size_t decode_batch(size_t units);
  Result<void> end_frame(ByteSpan footer);

  Fetch fetch_;
  ReaderOptions options_;
  std::vector<std::unique_ptr<Slot>> slots_;
  size_t ready_ = 0, current_ = 0, served_ = 0;  // slots with content, the one being served, bytes of it given
  std::optional<Error> failure_;                 // behind what is ready
  FrameHeader header_;
  std::vector<IndexEntry> entries_;
  WholeCheck whole_;
  uint64_t offset_ = 0, frame_begin_ = 0, position_ = 0, total_ = 0;
  uint32_t index_bytes_ = 0;
  bool in_frame_ = false, ended_ = false, any_frame_ = false;
};

}  // namespace glyd::codec
