// writer.hpp - makes a frame of bytes that arrive in any pieces. Spec: docs/spec/codec.md 2.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "codec/frame/frame.hpp"
#include "codec/unit.hpp"

namespace glyd::codec {

// False asks to stop.
using Progress = std::function<bool(uint64_t content_bytes)>;
using Sink = std::function<Result<void>(ByteSpan)>;

struct WriterOptions {
  Level level = Level::kMax;
  int unit_log = 0;  // 0: the level's own
  int threads = 1;
  std::optional<uint64_t> content_bytes;
  ByteSpan metadata;
  Progress progress;
};

int default_unit_log(Level level);
// Most bytes of a frame of `content_bytes`; saturates.
uint64_t frame_bound(uint64_t content_bytes, int unit_log, uint64_t metadata_bytes);

class FrameWriter {
 public:
  FrameWriter(WriterOptions options, Sink sink);
  // Header and metadata; before anything else.
  Result<void> begin();
  Result<void> write(ByteSpan content);
  // The last content (coded from where it lies, unless some is pending), the index and the footer.
  Result<void> finish(ByteSpan last = {});

  uint64_t content_bytes() const { return content_bytes_; }
  uint64_t frame_bytes() const { return frame_bytes_; }

 private:
  struct Slot {                        // one unit on its way
    std::unique_ptr<uint8_t[]> chunk;  // not filled with zeros: most of it is never touched
    size_t capacity = 0, bytes = 0;
    ChunkHeader header;
  };
  Result<void> encode_units(ByteSpan content);
  size_t batch_in_memory() const;
  void encode_unit(UnitEncoder& encoder, ByteSpan raw, uint64_t position, Slot& slot) const;
  Result<void> emit_unit(const Slot& slot);
  Result<void> emit(ByteSpan bytes);

  WriterOptions options_;
  Sink sink_;
  size_t unit_bytes_;
  std::vector<uint8_t> pending_;       // less than threads * unit_bytes_
  std::vector<UnitEncoder> encoders_;  // those at rest
  std::vector<Slot> slots_;            // likewise: their memory
  TensorMap tensors_;                  // by the first unit
  std::vector<IndexEntry> entries_;
  WholeCheck whole_;
  uint64_t content_bytes_ = 0, frame_bytes_ = 0;
};

}  // namespace glyd::codec
