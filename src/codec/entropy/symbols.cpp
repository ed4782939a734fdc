#include "codec/entropy/symbols.hpp"

#include <algorithm>

#include "codec/entropy/classes.hpp"
#include "codec/kernels/code_writer.hpp"

namespace glyd::codec {
namespace {

// Streams this short are not worth a code.
constexpr size_t kLeastCoded = 16;
constexpr size_t kLeastForClasses = 1024;

// The symbol before picks the code: codes[0] first.
uint8_t* encode_lane_by_class(const HuffmanCodes* codes, const uint8_t* class_of, const uint8_t* symbols, size_t count,
                              uint8_t* out) {
  const HuffmanCodes* code = codes;
  return write_codes(symbols, count, out, [&](uint8_t symbol) {
    const uint32_t found = (*code)[symbol];
    code = codes + class_of[symbol];
    return found;
  });
}

// A 3-byte size, the lanes' sizes, the lanes. By classes, if there are any.
uint8_t* encode_lanes(const HuffmanCodes* codes, const uint8_t* class_of, ByteSpan symbols, uint8_t* to) {
  const size_t lanes = static_cast<size_t>(stream_lanes(symbols.size()));
  const size_t segment = ceil_div(symbols.size(), lanes);
  uint8_t* const payload = to + 3;
  uint8_t* out = payload + 2 * (lanes - 1);
  for (size_t s = 0; s < lanes; ++s) {
    const size_t begin = s * segment;
    const uint8_t* const lane = symbols.data() + begin;
    const size_t count = std::min(segment, symbols.size() - begin);
    uint8_t* const end = class_of != nullptr ? encode_lane_by_class(codes, class_of, lane, count, out)
                                             : kernels().encode_lane(codes->data(), lane, count, out);
    if (s + 1 < lanes) store_le<uint16_t>(payload + 2 * s, static_cast<uint16_t>(end - out));
    out = end;
  }
  const auto payload_bytes = static_cast<uint32_t>(out - payload);
  for (size_t k = 0; k < 3; ++k) to[k] = static_cast<uint8_t>(payload_bytes >> (8 * k));
  return out;
}

bool has_code(const Classes& classes, size_t symbol) {
  for (size_t c = 0; c < classes.count; ++c) {
    if (classes.lengths[c].bits[symbol] != 0) return true;
  }
  return false;
}

uint8_t* write_classes(const Classes& classes, ByteSpan symbols, uint8_t* to) {
  *to++ = static_cast<uint8_t>(classes.count);
  HuffmanCodes codes[kMaxClasses];
  for (size_t c = 0; c < classes.count; ++c) {
    to += write_code_lengths(classes.lengths[c], to);
    codes[c] = make_codes(classes.lengths[c]);
  }
  uint32_t held = 0, bits = 0;
  for (size_t s = 0; s < 256; ++s) {
    if (!has_code(classes, s)) continue;
    held |= uint32_t{classes.of[s]} << bits;
    bits += 2;
    if (bits == 8) *to++ = static_cast<uint8_t>(held), held = bits = 0;
  }
  if (bits != 0) *to++ = static_cast<uint8_t>(held);
  return encode_lanes(codes, classes.of.data(), symbols, to);
}

Result<size_t> read_classes(ByteSpan in, HuffmanTable* tables) {
  size_t at = 0;
  Classes classes;
  if (in.empty()) return corrupt("symbols: cut short");
  classes.count = in[at++];
  if (classes.count < 2 || classes.count > kMaxClasses) return corrupt("symbols: {} classes", classes.count);
  for (size_t c = 0; c < classes.count; ++c) {
    GLYD_TRY(const size_t taken, read_code_lengths(in.subspan(at), classes.lengths[c]));
    at += taken;
  }
  uint32_t bits = 8;
  for (size_t s = 0; s < 256; ++s) {
    if (!has_code(classes, s)) continue;
    if (bits == 8) {
      if (at == in.size()) return corrupt("symbols: cut short");
      ++at, bits = 0;
    }
    classes.of[s] = (in[at - 1] >> bits) & 3;
    bits += 2;
    if (classes.of[s] >= classes.count) return corrupt("symbols: class {}", classes.of[s]);
  }
  for (size_t c = 0; c < classes.count; ++c) {
    if (!make_table(classes.lengths[c], classes.of.data(), tables[c]))
      return corrupt("symbols: a code is not complete");
  }
  return at;
}

}  // namespace

uint8_t* write_varint(uint8_t* out, uint32_t value) {
  for (; value >= 128; value >>= 7) *out++ = static_cast<uint8_t>(value | 128);
  *out++ = static_cast<uint8_t>(value);
  return out;
}

bool read_varint(const uint8_t*& at, const uint8_t* end, uint32_t& value) {
  uint64_t read = 0;
  for (int shift = 0; shift < 35; shift += 7) {
    if (at == end) return false;
    const uint8_t byte = *at++;
    read |= uint64_t{byte & 127u} << shift;
    if (byte < 128) {
      value = static_cast<uint32_t>(read);
      return read <= UINT32_MAX;
    }
  }
  return false;
}

size_t SymbolEncoder::write(StreamKind kind, ByteSpan symbols, uint8_t* out, const Histogram* counted) {
  const size_t k = static_cast<size_t>(kind);
  const auto header = [&](StreamMode mode) {
    out[0] = static_cast<uint8_t>(mode);
    return write_varint(out + 1, static_cast<uint32_t>(symbols.size()));
  };
  const auto raw = [&] {
    uint8_t* const to = header(StreamMode::kRaw);
    if (!symbols.empty()) std::memcpy(to, symbols.data(), symbols.size());
    return static_cast<size_t>(to - out) + symbols.size();
  };
  if (symbols.size() < 2) return raw();
  Histogram own;
  if (counted == nullptr) kernels().histogram(symbols.data(), symbols.size(), own.data());
  const Histogram& counts = counted != nullptr ? *counted : own;
  const size_t used =
      static_cast<size_t>(std::count_if(counts.begin(), counts.end(), [](uint32_t c) { return c != 0; }));
  if (used == 1) {
    uint8_t* const to = header(StreamMode::kFill);
    *to = symbols[0];
    return static_cast<size_t>(to + 1 - out);
  }
  if (symbols.size() < kLeastCoded) return raw();

  CodeLengths lengths;
  make_code_lengths(counts.data(), 256, kMaxCodeBits, lengths.bits.data());
  uint8_t table[kMostTableBytes];
  const size_t table_bytes = write_code_lengths(lengths, table);
  const size_t new_bits = coded_bits(counts, lengths) + 8 * table_bytes;
  const size_t old_bits = has_last[k] ? coded_bits(counts, last[k]) : SIZE_MAX;
  const bool repeat = old_bits <= new_bits;
  const size_t lanes = static_cast<size_t>(stream_lanes(symbols.size()));
  const size_t plain_bits = std::min(old_bits, new_bits);
  if (seek_classes && symbols.size() >= kLeastForClasses) {
    const size_t most_bits = std::min(plain_bits - plain_bits / 512, 8 * (symbols.size() - symbols.size() / 64 - 64));
    if (const auto classes = find_classes(symbols, counts, most_bits)) {
      uint8_t* const to = header(StreamMode::kClasses);
      return static_cast<size_t>(write_classes(*classes, symbols, to) - out);
    }
  }
  const size_t coded_bytes = plain_bits / 8 + 3 * lanes + 4;  // sizes, unfilled last bytes, payload length
  if (coded_bytes + coded_bytes / 64 >= symbols.size()) return raw();

  uint8_t* to = header(repeat ? StreamMode::kHuffmanRepeat : StreamMode::kHuffman);
  if (!repeat) {
    std::memcpy(to, table, table_bytes);
    to += table_bytes;
    last[k] = lengths;
    has_last[k] = true;
  }
  const HuffmanCodes codes = make_codes(last[k]);
  return static_cast<size_t>(encode_lanes(&codes, nullptr, symbols, to) - out);
}

Result<size_t> SymbolDecoder::read(StreamKind kind, const uint8_t*& at, const uint8_t* end, const uint8_t* readable,
                                   uint8_t* out, size_t capacity) {
  const size_t k = static_cast<size_t>(kind);
  if (at == end) return corrupt("symbols: cut short");
  const uint8_t mode = *at++;
  uint32_t count = 0;
  if (!read_varint(at, end, count) || count > capacity)
    return corrupt("symbols: {} of them, at most {} fit", count, capacity);
  const size_t left = static_cast<size_t>(end - at);
  switch (static_cast<StreamMode>(mode)) {
    case StreamMode::kRaw:
      if (left < count) return corrupt("symbols: cut short");
      if (count != 0) std::memcpy(out, at, count);
      at += count;
      return size_t{count};
    case StreamMode::kFill:
      if (left < 1) return corrupt("symbols: cut short");
      std::memset(out, *at++, count);
      return size_t{count};
    case StreamMode::kHuffman: {
      CodeLengths lengths;
      GLYD_TRY(const size_t taken, read_code_lengths({at, left}, lengths));
      at += taken;
      if (!make_table(lengths, nullptr, tables[k])) return corrupt("symbols: the code is not complete");
      has_table[k] = true;
      break;
    }
    case StreamMode::kHuffmanRepeat:
      if (!has_table[k]) return corrupt("symbols: no code to repeat");
      break;
    case StreamMode::kClasses: {
      GLYD_TRY(const size_t taken, read_classes({at, left}, class_tables));
      at += taken;
      break;
    }
    default:
      return corrupt("symbols: mode {}", mode);
  }
  const int lanes = stream_lanes(count);
  if (count == 0 || static_cast<size_t>(end - at) < 3 + 2 * static_cast<size_t>(lanes - 1))
    return corrupt("symbols: cut short");
  const size_t payload = at[0] | size_t{at[1]} << 8 | size_t{at[2]} << 16;
  at += 3;
  if (static_cast<size_t>(end - at) < payload || payload < 2 * static_cast<size_t>(lanes - 1))
    return corrupt("symbols: cut short");
  const bool classes = static_cast<StreamMode>(mode) == StreamMode::kClasses;
  HuffmanLanes in{.table = classes ? class_tables : &tables[k],
                  .classes = classes,
                  .begin = {},
                  .readable = readable,
                  .out = out,
                  .symbols = count,
                  .lanes = lanes};
  const uint8_t* const payload_end = at + payload;
  in.begin[0] = at + 2 * (lanes - 1);
  for (int s = 0; s + 1 < lanes; ++s) {
    const uint16_t bytes = load_le<uint16_t>(at + 2 * s);
    if (bytes > payload_end - in.begin[s]) return corrupt("symbols: a lane passes the end");
    in.begin[s + 1] = in.begin[s] + bytes;
  }
  in.begin[lanes] = payload_end;
  if (!kernels().decode_huffman(in)) return corrupt("symbols: a lane does not end where it should");
  at = payload_end;
  return size_t{count};
}

}  // namespace glyd::codec
