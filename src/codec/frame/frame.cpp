#include "codec/frame/frame.hpp"

#include "base/crc32c.hpp"
#include "codec/kernels/kernels.hpp"

namespace glyd::codec {
namespace {

constexpr uint8_t kFlagContentSize = 1;

// CRC-32C of the header without its own two bytes.
uint16_t header_check(const uint8_t* header) {
  const uint32_t crc = crc32c({header + 6, kChunkHeaderBytes - 6}, crc32c({header, 4}));
  return static_cast<uint16_t>(crc);
}

}  // namespace

// 0 magic, 4 version, 5 flags, 6 unit_log, 7 level, 8 content bytes, 16 CRC-32C.
void write_frame_header(const FrameHeader& header, uint8_t* out) {
  store_le<uint32_t>(out, kFrameMagic);
  out[4] = kFrameVersion;
  out[5] = header.content_bytes == kUnknownSize ? 0 : kFlagContentSize;
  out[6] = static_cast<uint8_t>(header.unit_log);
  out[7] = header.level;
  store_le<uint64_t>(out + 8, header.content_bytes == kUnknownSize ? 0 : header.content_bytes);
  store_le<uint32_t>(out + 16, crc32c({out, 16}));
}

Result<FrameHeader> parse_frame_header(ByteSpan bytes) {
  if (bytes.size() >= 4 && load_le<uint32_t>(bytes.data()) != kFrameMagic)
    return foreign_format("not a file that `glyd compress` made (it begins with other bytes than GLYC)");
  if (bytes.size() < kFrameHeaderBytes) return corrupt("frame header: cut short");
  if (bytes[4] != kFrameVersion)
    return foreign_format("frame version {}: this build reads version {}", bytes[4], kFrameVersion);
  if (load_le<uint32_t>(bytes.data() + 16) != crc32c(bytes.first(16)))
    return corrupt("frame header: its check differs");
  FrameHeader header;
  header.unit_log = bytes[6];
  header.level = bytes[7];
  const uint64_t content = load_le<uint64_t>(bytes.data() + 8);
  if (bytes[5] > kFlagContentSize || header.unit_log < kMinUnitLog || header.unit_log > kMaxUnitLog)
    return corrupt("frame header: flags {}, unit log {}", bytes[5], header.unit_log);
  if (bytes[5] == kFlagContentSize ? content > kMaxContentBytes : content != 0)
    return corrupt("frame header: content of {} bytes", content);
  header.content_bytes = bytes[5] == kFlagContentSize ? content : kUnknownSize;
  return header;
}

// 0 mark (24 bits), 3 kind, 4 header check (16 bits), 6 position (48 bits), 12 raw, 16 stored, 20 payload check, 24
// content check.
void write_chunk_header(const ChunkHeader& header, uint8_t* out) {
  store_le<uint32_t>(out, kChunkMark | static_cast<uint32_t>(header.kind) << 24);
  for (size_t k = 0; k < 6; ++k) out[6 + k] = static_cast<uint8_t>(header.position >> (8 * k));
  store_le<uint32_t>(out + 12, header.raw_bytes);
  store_le<uint32_t>(out + 16, header.stored_bytes);
  store_le<uint32_t>(out + 20, header.payload_check);
  store_le<uint32_t>(out + 24, header.content_check);
  store_le<uint16_t>(out + 4, header_check(out));
}

Result<ChunkHeader> parse_chunk_header(ByteSpan bytes, int unit_log) {
  if (bytes.size() < kChunkHeaderBytes) return corrupt("chunk header: cut short");
  const uint8_t* const p = bytes.data();
  if ((load_le<uint32_t>(p) & 0xffffff) != kChunkMark) return corrupt("chunk header: no mark");
  if (load_le<uint16_t>(p + 4) != header_check(p)) return corrupt("chunk header: its check differs");
  ChunkHeader header;
  header.kind = static_cast<ChunkKind>(p[3]);
  header.position = load_le<uint32_t>(p + 6) | uint64_t{load_le<uint16_t>(p + 10)} << 32;
  header.raw_bytes = load_le<uint32_t>(p + 12);
  header.stored_bytes = load_le<uint32_t>(p + 16);
  header.payload_check = load_le<uint32_t>(p + 20);
  header.content_check = load_le<uint32_t>(p + 24);
  bool good = false;
  switch (header.kind) {
    case ChunkKind::kStored:
      good = header.stored_bytes == header.raw_bytes && header.raw_bytes != 0;
      break;
    case ChunkKind::kBlocks:
      good = header.stored_bytes < header.raw_bytes;
      break;
    case ChunkKind::kMetadata:
      good = header.raw_bytes == 0 && header.content_check == 0 && header.stored_bytes <= kMaxMetadataBytes;
      break;
    case ChunkKind::kIndex:
      good = header.raw_bytes == 0 && header.content_check == 0;
      break;
    default:
      return corrupt("chunk header: kind {}", p[3]);
  }
  if (!good || header.raw_bytes > uint64_t{1} << unit_log || header.position + header.raw_bytes > kMaxContentBytes) {
    return corrupt("chunk header: {} bytes stored in {}", header.raw_bytes, header.stored_bytes);
  }
  return header;
}

void write_footer(const FrameFooter& footer, uint8_t* out) {
  store_le<uint32_t>(out, kEndMark);
  store_le<uint32_t>(out + 4, footer.index_bytes);
  store_le<uint64_t>(out + 8, footer.whole_check);
}

bool is_footer(ByteSpan first_four) {
  return first_four.size() >= 4 && load_le<uint32_t>(first_four.data()) == kEndMark;
}

Result<FrameFooter> parse_footer(ByteSpan bytes) {
  if (bytes.size() < kFrameFooterBytes) return corrupt("frame footer: cut short");
  if (!is_footer(bytes)) return corrupt("frame footer: no mark");
  return FrameFooter{load_le<uint32_t>(bytes.data() + 4), load_le<uint64_t>(bytes.data() + 8)};
}

uint32_t check32(ByteSpan bytes) { return static_cast<uint32_t>(kernels().hash(bytes.data(), bytes.size())); }

Result<void> read_unit(const ChunkHeader& header, ByteSpan payload, const uint8_t* readable, UnitDecoder& decoder,
                       MutableByteSpan out) {
  Result<void> read;
  if (header.kind == ChunkKind::kStored)
    decoder.read_stored(payload, out);
  else
    read = decoder.read(payload, readable, out);
  // What could not be read is called damaged before it is called malformed.
  if (static_cast<uint32_t>(decoder.payload_hash()) != header.payload_check)
    return corrupt("its bytes differ from their check");
  GLYD_CHECK(read);
  if (static_cast<uint32_t>(decoder.content_hash()) != header.content_check)
    return corrupt("its content differs from its check");
  return {};
}

void WholeCheck::add(uint32_t raw_bytes, uint32_t content_check) {
  const size_t at = records_.size();
  records_.resize(at + 8);
  store_le<uint32_t>(records_.data() + at, raw_bytes);
  store_le<uint32_t>(records_.data() + at + 4, content_check);
}

uint64_t WholeCheck::value() const { return kernels().hash(records_.data(), records_.size()); }

std::vector<uint8_t> write_index(uint64_t frame_offset, uint64_t content_bytes,
                                 const std::vector<IndexEntry>& entries) {
  const size_t payload_bytes = 8 + 8 * entries.size();
  std::vector<uint8_t> chunk(kChunkHeaderBytes + payload_bytes);
  uint8_t* const payload = chunk.data() + kChunkHeaderBytes;
  store_le<uint64_t>(payload, frame_offset);
  for (size_t i = 0; i < entries.size(); ++i) {
    store_le<uint32_t>(payload + 8 + 8 * i, entries[i].raw_bytes);
    store_le<uint32_t>(payload + 12 + 8 * i, entries[i].stored_bytes);
  }
  write_chunk_header({.kind = ChunkKind::kIndex,
                      .position = content_bytes,
                      .stored_bytes = static_cast<uint32_t>(payload_bytes),
                      .payload_check = check32({payload, payload_bytes})},
                     chunk.data());
  return chunk;
}

Result<Index> parse_index(const ChunkHeader& header, ByteSpan payload) {
  if (header.kind != ChunkKind::kIndex || payload.size() != header.stored_bytes || payload.size() < 8 ||
      payload.size() % 8 != 0)
    return corrupt("index: wrong size");
  if (check32(payload) != header.payload_check) return corrupt("index: its check differs");
  Index index;
  index.frame_offset = load_le<uint64_t>(payload.data());
  index.entries.resize(payload.size() / 8 - 1);
  uint64_t offset = kFrameHeaderBytes, content = 0;
  for (size_t i = 0; i < index.entries.size(); ++i) {
    index.entries[i] = {load_le<uint32_t>(payload.data() + 8 + 8 * i), load_le<uint32_t>(payload.data() + 12 + 8 * i)};
    offset += kChunkHeaderBytes + index.entries[i].stored_bytes;
    content += index.entries[i].raw_bytes;
  }
  if (offset != index.frame_offset || content != header.position) return corrupt("index: the sizes do not add up");
  return index;
}

}  // namespace glyd::codec
