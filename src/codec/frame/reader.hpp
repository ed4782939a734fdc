// reader.hpp - frames one after the other in a seekable source: what is there, any range of it, all of it. Spec:
// docs/spec/codec.md 2, 3.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "codec/frame/frame.hpp"
#include "codec/unit.hpp"

namespace glyd::codec {

// Bytes to read from: memory, or a file behind a function.
class Source {
 public:
  virtual ~Source() = default;
  virtual uint64_t size() const = 0;
  // `bytes` bytes at `offset`, in place or in `buffer`; they may be loaded up to 8 bytes past their end where the
  // source goes on, never beyond it.
  virtual Result<ByteSpan> view(uint64_t offset, size_t bytes, std::vector<uint8_t>& buffer) const = 0;
};

class MemorySource final : public Source {
 public:
  explicit MemorySource(ByteSpan bytes) : bytes_(bytes) {}
  uint64_t size() const override { return bytes_.size(); }
  Result<ByteSpan> view(uint64_t offset, size_t bytes, std::vector<uint8_t>&) const override;

 private:
  ByteSpan bytes_;
};

struct ReaderOptions {
  int threads = 1;
  uint64_t memory_limit = 0;  // bytes of working memory, 0: none
  std::function<bool(uint64_t content_bytes)> progress;
};

// A unit's place; positions count over all frames of the source.
struct UnitPlace {
  uint64_t content_begin, chunk_offset;
  uint32_t raw_bytes, stored_bytes;
  uint32_t frame;
};

struct FramePlace {
  uint64_t begin, end;  // in the source
  uint64_t content_begin, content_bytes;
  FrameHeader header;
  uint64_t whole_check;
  size_t first_unit, unit_count;
  uint64_t metadata_offset;  // of its payload, 0 if there is none
  uint32_t metadata_bytes;
};

class FrameReader {
 public:
  // Reads headers and indexes only. The source must outlive the reader.
  static Result<FrameReader> open(const Source& source);

  const std::vector<FramePlace>& frames() const { return frames_; }
  const std::vector<UnitPlace>& units() const { return units_; }
  uint64_t content_bytes() const { return content_bytes_; }
  uint64_t memory_bytes(int threads) const;  // that read() takes besides its target
  Result<std::vector<uint8_t>> metadata(size_t frame) const;

  // Content [begin, begin + out.size()), decoding only the units it touches.
  Result<void> read(uint64_t begin, MutableByteSpan out, const ReaderOptions& options) const;
  // The same of everything, with the checks of the whole; `out` must be content_bytes() long.
  Result<void> read_all(MutableByteSpan out, const ReaderOptions& options) const;
  // Decodes everything into a buffer of a unit a thread and compares every check.
  Result<void> verify(const ReaderOptions& options) const;

 private:
  struct Worker;
  explicit FrameReader(const Source& source) : source_(&source) {}
  Result<bool> locate_by_index();
  Result<void> locate_by_walk();
  Result<void> add_frame(uint64_t begin, uint64_t end, const FrameHeader& header, const FrameFooter& footer,
                         const std::vector<IndexEntry>& entries);
  Result<void> decode(const UnitPlace& place, MutableByteSpan out, Worker& worker, ChunkHeader& header) const;
  Result<void> run(uint64_t begin, uint64_t bytes, uint8_t* out, bool whole, const ReaderOptions& options) const;

  const Source* source_;
  std::vector<FramePlace> frames_;
  std::vector<UnitPlace> units_;
  uint64_t content_bytes_ = 0;
};

}  // namespace glyd::codec
