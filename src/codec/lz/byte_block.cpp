#include "codec/lz/byte_block.hpp"

#include <algorithm>

#include "codec/entropy/symbols.hpp"
#include "codec/format.hpp"
#include "codec/kernels/basics.hpp"
#include "codec/kernels/kernels.hpp"

namespace glyd::codec {
namespace {

// What a field of the token cannot hold: one byte below 254, or 254 and two bytes, or 255 and four.
uint8_t* write_length(uint8_t* out, uint32_t value) {
  if (value < 254) {
    *out++ = static_cast<uint8_t>(value);
  } else if (value < 65536) {
    *out++ = 254;
    store_le<uint16_t>(out, static_cast<uint16_t>(value));
    out += 2;
  } else {
    *out++ = 255;
    store_le<uint32_t>(out, value);
    out += 4;
  }
  return out;
}

}  // namespace

// Payload: numbers of literals, tokens and offsets; literals, tokens, offsets, lengths. Literals come first, so that
// loads past them stay in the payload.
size_t BytesWriter::write(ByteSpan raw, std::span<const Sequence> sequences, uint8_t* out) {
  tokens_.resize(sequences.size());
  offsets_.resize(2 * sequences.size() + 2);
  lengths_.resize(10 * sequences.size());
  uint8_t* offset = offsets_.data();
  uint8_t* length = lengths_.data();
  size_t matched = 0;
  uint32_t last = 1;
  for (size_t i = 0; i < sequences.size(); ++i) {
    const Sequence& q = sequences[i];
    const uint32_t run = std::min(q.literals, kBytesLiteralEscape);
    if (run == kBytesLiteralEscape) length = write_length(length, q.literals - run);
    const uint32_t code = std::min(q.length - kBytesMinLength, kBytesLengthEscape);
    if (code == kBytesLengthEscape) length = write_length(length, q.length - kBytesMinLength - code);
    const uint32_t fresh = q.offset != last;
    store_le<uint16_t>(offset, static_cast<uint16_t>(q.offset));
    offset += 2 * fresh;
    last = q.offset;
    tokens_[i] = static_cast<uint8_t>(fresh << 7 | run << 4 | code);
    matched += q.length;
  }
  const size_t literals = raw.size() - matched;
  uint8_t* to = write_varint(out, static_cast<uint32_t>(literals));
  to = write_varint(to, static_cast<uint32_t>(sequences.size()));
  to = write_varint(to, static_cast<uint32_t>(offset - offsets_.data()) / 2);
  const uint8_t* from = raw.data();
  const uint8_t* const raw_end = from + raw.size();
  for (const Sequence& q : sequences) {
    if (q.literals <= 16 && raw_end - from >= 16)
      copy16(to, from);
    else
      std::memcpy(to, from, q.literals);
    to += q.literals;
    from += q.literals + q.length;
  }
  const auto append = [&](const uint8_t* bytes, size_t count) {
    if (count != 0) std::memcpy(to, bytes, count);
    to += count;
  };
  append(from, static_cast<size_t>(raw_end - from));
  append(tokens_.data(), tokens_.size());
  append(offsets_.data(), static_cast<size_t>(offset - offsets_.data()));
  append(lengths_.data(), static_cast<size_t>(length - lengths_.data()));
  return static_cast<size_t>(to - out);
}

Result<void> read_bytes(ByteSpan payload, const uint8_t* readable, const uint8_t* window, uint8_t* out,
                        size_t raw_bytes, uint8_t* writable_end) {
  const uint8_t* at = payload.data();
  const uint8_t* const end = at + payload.size();
  uint32_t literals = 0, tokens = 0, offsets = 0;
  if (!read_varint(at, end, literals) || !read_varint(at, end, tokens) || !read_varint(at, end, offsets))
    return corrupt("byte block: cut short");
  const size_t left = static_cast<size_t>(end - at);
  if (literals > left || tokens > left || offsets > left || size_t{literals} + tokens + 2 * size_t{offsets} > left) {
    return corrupt("byte block: {} literals, {} tokens and {} offsets in {} bytes", literals, tokens, offsets, left);
  }
  BytesBlock block{};
  block.literals = at;
  block.literals_end = block.tokens = at + literals;
  block.tokens_end = block.offsets = block.tokens + tokens;
  block.offsets_end = block.lengths = block.offsets + 2 * size_t{offsets};
  block.lengths_end = end;
  block.readable = readable;
  block.out = out;
  block.out_end = out + raw_bytes;
  block.window_begin = window;
  block.writable_end = writable_end;
  if (!kernels().execute_bytes(block)) return corrupt("byte block: a sequence leaves the block or the window");
  return {};
}

}  // namespace glyd::codec
