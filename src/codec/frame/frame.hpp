// frame.hpp - the container: header, chunks, index, footer. Spec: docs/spec/codec.md 2, 3.
#pragma once

#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "codec/format.hpp"
#include "codec/unit.hpp"

namespace glyd::codec {

struct FrameHeader {
  int unit_log = 0;   // units have at most 2^unit_log bytes of content
  uint8_t level = 0;  // for information
  uint64_t content_bytes = kUnknownSize;
};

struct ChunkHeader {
  ChunkKind kind = ChunkKind::kStored;
  uint64_t position = 0;  // of the first content byte in the frame
  uint32_t raw_bytes = 0, stored_bytes = 0;
  uint32_t payload_check = 0, content_check = 0;
  bool is_unit() const { return kind == ChunkKind::kStored || kind == ChunkKind::kBlocks; }
};

struct FrameFooter {
  uint32_t index_bytes = 0;  // of the index chunk before it, 0 if there is none
  uint64_t whole_check = 0;
};

void write_frame_header(const FrameHeader& header, uint8_t* out);
void write_chunk_header(const ChunkHeader& header, uint8_t* out);
void write_footer(const FrameFooter& footer, uint8_t* out);

// Each takes exactly its bytes. A foreign magic or version is GLYD_ERROR_FOREIGN_FORMAT.
Result<FrameHeader> parse_frame_header(ByteSpan bytes);
// Checks the header's own check and that the sizes suit a frame of this unit_log.
Result<ChunkHeader> parse_chunk_header(ByteSpan bytes, int unit_log);
Result<FrameFooter> parse_footer(ByteSpan bytes);
bool is_footer(ByteSpan first_four);

uint32_t check32(ByteSpan bytes);  // the low half of XXH3-64

// The content of a unit into `out`, which has its size; both checks made. Bytes before `readable`, at or after the
// payload's end, may be loaded.
Result<void> read_unit(const ChunkHeader& header, ByteSpan payload, const uint8_t* readable, UnitDecoder& decoder,
                       MutableByteSpan out);

// XXH3-64 of each unit's raw_bytes and content_check, 4 bytes each.
class WholeCheck {
 public:
  void add(uint32_t raw_bytes, uint32_t content_check);
  uint64_t value() const;

 private:
  std::vector<uint8_t> records_;
};

// The index chunk: where it lies in the frame, then the sizes of every chunk before it.
struct IndexEntry {
  uint32_t raw_bytes, stored_bytes;  // raw_bytes 0: metadata
  bool operator==(const IndexEntry&) const = default;
};
std::vector<uint8_t> write_index(uint64_t frame_offset, uint64_t content_bytes, const std::vector<IndexEntry>& entries);
struct Index {
  uint64_t frame_offset = 0;  // of the index chunk from the frame's start
  std::vector<IndexEntry> entries;
};
Result<Index> parse_index(const ChunkHeader& header, ByteSpan payload);

}  // namespace glyd::codec
