// codec_reference_frame.cpp - sections 2 and 3.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <string>

#include "codec_reference.hpp"

namespace glyd::reference {
namespace {

using Bytes = std::vector<uint8_t>;

void require(bool holds, const char* rule) {
  if (!holds) throw BadFrame(rule);
}

uint64_t read_number(const Bytes& in, size_t at, size_t count) {
  require(at + count <= in.size(), "2: cut short");
  uint64_t value = 0;
  for (size_t k = 0; k < count; ++k) value |= uint64_t{in[at + k]} << (8 * k);
  return value;
}

uint32_t crc_step(uint32_t crc, uint8_t byte) {
  crc ^= byte;
  for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0u);
  return crc;
}

uint32_t check32(const uint8_t* bytes, size_t count) { return static_cast<uint32_t>(XXH3_64bits(bytes, count)); }

struct Chunk {
  uint64_t kind, position, raw, stored, payload_check, content_check;
};

// 2.2
Chunk read_chunk(const Bytes& in, size_t at, uint64_t unit_log) {
  require(read_number(in, at, 3) == 0x93c95e, "2.2: no mark");
  const Chunk c{read_number(in, at + 3, 1),  read_number(in, at + 6, 6),  read_number(in, at + 12, 4),
                read_number(in, at + 16, 4), read_number(in, at + 20, 4), read_number(in, at + 24, 4)};
  uint32_t crc = ~0u;
  for (size_t k = 0; k < 28; ++k) crc = k == 4 || k == 5 ? crc : crc_step(crc, in[at + k]);
  require(read_number(in, at + 4, 2) == (~crc & 0xffff), "2.2: header check");
  require(c.stored <= in.size() - at - 28, "2.2: payload cut short");
  require(check32(in.data() + at + 28, c.stored) == c.payload_check, "2.2: payload check");
  if (c.kind == 0 || c.kind == 1) {
    require(c.raw >= 1 && c.raw <= uint64_t{1} << unit_log, "2.2: raw");
    require(c.kind == 0 ? c.stored == c.raw : c.stored < c.raw, "2.2: stored");
  } else {
    require(c.kind == 128 || c.kind == 129, "2.2: kind");
    require(c.raw == 0 && c.content_check == 0, "2.2: raw of no unit");
    require(c.kind == 129 || c.stored <= 1 << 20, "2.2: metadata");
  }
  return c;
}

// 2.3
void check_index(const Bytes& in, size_t payload, const std::vector<Chunk>& chunks, uint64_t offset,
                 const Chunk& index) {
  require(chunks.size() >= 2, "2.3: not called for");
  require(index.stored == 8 + 8 * chunks.size() && read_number(in, payload, 8) == offset, "2.3: size or offset");
  for (size_t i = 0; i < chunks.size(); ++i) {
    require(read_number(in, payload + 8 + 8 * i, 4) == chunks[i].raw, "2.3: raw");
    require(read_number(in, payload + 12 + 8 * i, 4) == chunks[i].stored, "2.3: stored");
  }
}

// The frame at `at`, which moves behind it.
void decode_frame(const Bytes& in, size_t& at, Bytes& out) {
  const size_t begin = at, content_begin = out.size();
  require(read_number(in, at, 4) == 0x43594c47, "2.1: magic");
  require(read_number(in, at + 4, 1) == 2, "2.1: version");
  const uint64_t flags = read_number(in, at + 5, 1), unit_log = read_number(in, at + 6, 1),
                 size = read_number(in, at + 8, 8);
  uint32_t crc = ~0u;
  for (size_t k = 0; k < 16; ++k) crc = crc_step(crc, in[at + k]);
  require(read_number(in, at + 16, 4) == (~crc & 0xffffffff), "2.1: check");
  require(flags <= 1 && unit_log >= 17 && unit_log <= 30, "2.1: flags or unit_log");
  require(flags == 1 ? size < uint64_t{1} << 48 : size == 0, "2.1: size");
  at += 20;
  std::vector<Chunk> chunks;
  Bytes checks;
  uint64_t index_bytes = 0;
  while (read_number(in, at, 4) != 0x5d3b16e4) {
    const Chunk c = read_chunk(in, at, unit_log);
    require(index_bytes == 0, "2.3: a chunk after the index");
    require(c.position == out.size() - content_begin, "2.2: position");
    const size_t payload = at + 28;
    if (c.kind == 129) {
      check_index(in, payload, chunks, at - begin, c);
      index_bytes = 28 + c.stored;
    } else if (c.kind == 128) {
      require(chunks.empty(), "2.2: metadata is first");
      chunks.push_back(c);
    } else {
      Bytes content(in.begin() + static_cast<ptrdiff_t>(payload),
                    in.begin() + static_cast<ptrdiff_t>(payload + c.stored));
      if (c.kind == 1) content = decode_blocks(in.data() + payload, c.stored, c.raw);
      require(check32(content.data(), content.size()) == c.content_check, "2.2: content check");
      out.insert(out.end(), content.begin(), content.end());
      for (const size_t k : {12, 13, 14, 15, 24, 25, 26, 27}) checks.push_back(in[at + k]);
      chunks.push_back(c);
    }
    at = payload + c.stored;
  }
  require((index_bytes != 0) == (chunks.size() >= 2), "2.3: index missing");
  require(read_number(in, at + 4, 4) == index_bytes, "2.4: index bytes");
  require(read_number(in, at + 8, 8) == XXH3_64bits(checks.data(), checks.size()), "2.4: check of the whole");
  require(flags == 0 || size == out.size() - content_begin, "2.1: the content has another size");
  at += 16;
}

}  // namespace

std::vector<uint8_t> decode_frames(const std::vector<uint8_t>& input) {
  require(!input.empty(), "2: empty");
  Bytes out;
  for (size_t at = 0; at < input.size();) decode_frame(input, at, out);
  return out;
}

}  // namespace glyd::reference
