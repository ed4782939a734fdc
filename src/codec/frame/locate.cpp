// locate.cpp - where frames and units lie: from the indexes at the tails, or else by going from chunk to chunk.
#include <algorithm>

#include "codec/frame/reader.hpp"

namespace glyd::codec {

Result<ByteSpan> MemorySource::view(uint64_t offset, size_t bytes, std::vector<uint8_t>&) const {
  if (offset > bytes_.size() || bytes > bytes_.size() - offset)
    return corrupt("cut short: {} bytes at {} of {}", bytes, offset, bytes_.size());
  return bytes_.subspan(offset, bytes);
}

Result<void> FrameReader::add_frame(uint64_t begin, uint64_t end, const FrameHeader& header, const FrameFooter& footer,
                                    const std::vector<IndexEntry>& entries) {
  FramePlace frame{.begin = begin,
                   .end = end,
                   .content_begin = content_bytes_,
                   .content_bytes = 0,
                   .header = header,
                   .whole_check = footer.whole_check,
                   .first_unit = units_.size(),
                   .unit_count = 0,
                   .metadata_offset = 0,
                   .metadata_bytes = 0};
  uint64_t offset = begin + kFrameHeaderBytes;
  for (const IndexEntry& entry : entries) {
    if (entry.raw_bytes == 0) {
      if (&entry != &entries.front()) return corrupt("index: metadata after the first chunk");
      frame.metadata_offset = offset + kChunkHeaderBytes;
      frame.metadata_bytes = entry.stored_bytes;
    } else {
      if (entry.raw_bytes > uint64_t{1} << header.unit_log || entry.stored_bytes > entry.raw_bytes)
        return corrupt("index: a unit of {} bytes in {}", entry.raw_bytes, entry.stored_bytes);
      units_.push_back(
          {content_bytes_, offset, entry.raw_bytes, entry.stored_bytes, static_cast<uint32_t>(frames_.size())});
      content_bytes_ += entry.raw_bytes;
    }
    offset += kChunkHeaderBytes + entry.stored_bytes;
  }
  frame.content_bytes = content_bytes_ - frame.content_begin;
  frame.unit_count = units_.size() - frame.first_unit;
  if (header.content_bytes != kUnknownSize && header.content_bytes != frame.content_bytes) {
    return corrupt("frame at {}: {} bytes are declared, its units have {}", begin, header.content_bytes,
                   frame.content_bytes);
  }
  frames_.push_back(frame);
  return {};
}

// From the tail: true if one frame with an index fills the source. Anything else, also damage, is left to the walk.
Result<bool> FrameReader::locate_by_index() {
  std::vector<uint8_t> buffer;
  const uint64_t size = source_->size();
  if (size < kFrameHeaderBytes + kFrameFooterBytes + kChunkHeaderBytes) return false;
  GLYD_TRY(const ByteSpan tail, source_->view(size - kFrameFooterBytes, kFrameFooterBytes, buffer));
  const auto footer = parse_footer(tail);
  if (!footer || footer.value().index_bytes < kChunkHeaderBytes ||
      footer.value().index_bytes > size - kFrameFooterBytes - kFrameHeaderBytes)
    return false;
  const size_t index_bytes = footer.value().index_bytes;
  GLYD_TRY(const ByteSpan chunk, source_->view(size - kFrameFooterBytes - index_bytes, index_bytes, buffer));
  const auto header = parse_chunk_header(chunk, kMaxUnitLog);
  if (!header || header.value().kind != ChunkKind::kIndex ||
      header.value().stored_bytes != index_bytes - kChunkHeaderBytes)
    return false;
  const auto index = parse_index(header.value(), chunk.subspan(kChunkHeaderBytes));
  if (!index || index.value().frame_offset != size - kFrameFooterBytes - index_bytes) return false;
  GLYD_TRY(const ByteSpan head, source_->view(0, kFrameHeaderBytes, buffer));
  GLYD_TRY(const FrameHeader frame, parse_frame_header(head));
  GLYD_CHECK(add_frame(0, size, frame, footer.value(), index.value().entries));
  return true;
}

Result<void> FrameReader::locate_by_walk() {
  std::vector<uint8_t> buffer;
  const uint64_t size = source_->size();
  for (uint64_t at = 0; at < size;) {
    const uint64_t begin = at;
    const auto view = [&](size_t bytes) {
      return source_->view(at, static_cast<size_t>(std::min<uint64_t>(bytes, size - at)), buffer);
    };
    GLYD_TRY(ByteSpan bytes, view(kFrameHeaderBytes));
    auto header = parse_frame_header(bytes);
    if (!header)
      return begin == 0 ? std::move(header).error()
                        : corrupt("{} bytes follow the frame that ends at {}, and are no frame", size - begin, begin);
    at += kFrameHeaderBytes;
    std::vector<IndexEntry> entries;
    FrameFooter footer;
    bool has_index = false;
    uint64_t content = 0;
    for (;;) {
      GLYD_TRY(bytes, view(kChunkHeaderBytes));
      if (is_footer(bytes)) {
        GLYD_TRY(footer, parse_footer(bytes));
        at += kFrameFooterBytes;
        break;
      }
      if (bytes.size() < kChunkHeaderBytes)
        return corrupt("truncated: the frame that starts at {} has no footer", begin);
      auto chunk = parse_chunk_header(bytes, header.value().unit_log);
      if (!chunk) return std::move(chunk).at(fmt::format("offset {}", at)).error();
      const ChunkHeader& c = chunk.value();
      if (c.position != content || has_index) return corrupt("offset {}: a chunk out of order", at);
      if (c.stored_bytes > size - at - kChunkHeaderBytes)
        return corrupt("truncated: the chunk at {} needs {} bytes, {} are left", at, c.stored_bytes,
                       size - at - kChunkHeaderBytes);
      if (c.kind == ChunkKind::kIndex) {
        has_index = true;
        std::vector<uint8_t> payload_buffer;
        GLYD_TRY(const ByteSpan payload, source_->view(at + kChunkHeaderBytes, c.stored_bytes, payload_buffer));
        GLYD_TRY(const Index index, parse_index(c, payload));
        if (entries.size() < 2 || index.entries != entries)
          return corrupt("offset {}: the index differs from the chunks before it", at);
      } else if (c.kind == ChunkKind::kMetadata && !entries.empty()) {
        return corrupt("offset {}: metadata after the first chunk", at);
      } else {
        entries.push_back({c.raw_bytes, c.stored_bytes});
      }
      content += c.raw_bytes;
      at += kChunkHeaderBytes + c.stored_bytes;
    }
    const size_t index_bytes = entries.size() > 1 ? kChunkHeaderBytes + 8 + 8 * entries.size() : 0;
    if (has_index != (entries.size() > 1) || footer.index_bytes != index_bytes)
      return corrupt("frame at {}: its index is missing or of wrong size", begin);
    GLYD_CHECK(add_frame(begin, at, header.value(), footer, entries));
  }
  if (frames_.empty()) return corrupt("empty: not even a frame's header");
  return {};
}

Result<FrameReader> FrameReader::open(const Source& source) {
  FrameReader reader(source);
  GLYD_TRY(const bool located, reader.locate_by_index());
  if (!located) {
    reader.frames_.clear();
    reader.units_.clear();
    reader.content_bytes_ = 0;
    GLYD_CHECK(reader.locate_by_walk());
  }
  return reader;
}

Result<std::vector<uint8_t>> FrameReader::metadata(size_t frame) const {
  const FramePlace& place = frames_[frame];
  if (place.metadata_offset == 0) return std::vector<uint8_t>{};
  std::vector<uint8_t> buffer;
  GLYD_TRY(const ByteSpan chunk,
           source_->view(place.metadata_offset - kChunkHeaderBytes, kChunkHeaderBytes + place.metadata_bytes, buffer));
  GLYD_TRY(const ChunkHeader header, parse_chunk_header(chunk, place.header.unit_log));
  const ByteSpan payload = chunk.subspan(kChunkHeaderBytes);
  if (header.kind != ChunkKind::kMetadata || header.stored_bytes != payload.size() ||
      header.payload_check != check32(payload))
    return corrupt("metadata: its check differs");
  return std::vector<uint8_t>(payload.begin(), payload.end());
}

}  // namespace glyd::codec
