#include "codec/entropy/symbols.hpp"

#include <algorithm>

#include "codec/kernels/basics.hpp"

namespace glyd::codec {
namespace {

// Streams this short are not worth a code.
constexpr size_t kLeastCoded = 16;
constexpr size_t kMostTableBytes = 200;

// Codes `symbols` lowest bit first; five codes of 11 bits and a rest of 7 fit the register.
uint8_t* encode_lane(const HuffmanCodes& codes, const uint8_t* symbols, size_t count, uint8_t* out) {
  uint64_t held = 0;
  unsigned bits = 0;
  const auto put = [&](uint8_t symbol) {
    held |= uint64_t{codes.code[symbol]} << bits;
    bits += codes.bits[symbol];
  };
  size_t i = 0;
  for (; i + 5 <= count; i += 5) {
    for (size_t k = 0; k < 5; ++k) put(symbols[i + k]);
    store64(out, held);
    out += bits >> 3;
    held >>= bits & ~7u;
    bits &= 7;
  }
  for (; i < count; ++i) put(symbols[i]);
  for (; bits > 0; held >>= 8, bits = bits < 8 ? 0 : bits - 8) *out++ = static_cast<uint8_t>(held);
  return out;
}

uint8_t* encode_lanes(const HuffmanCodes& codes, ByteSpan symbols, uint8_t* out) {
  const size_t lanes = static_cast<size_t>(stream_lanes(symbols.size()));
  const size_t segment = ceil_div(symbols.size(), lanes);
  uint8_t* sizes = out;
  out += 2 * (lanes - 1);
  for (size_t s = 0; s < lanes; ++s) {
    const size_t begin = s * segment;
    uint8_t* const end = encode_lane(codes, symbols.data() + begin, std::min(segment, symbols.size() - begin), out);
    if (s + 1 < lanes) store_le<uint16_t>(sizes + 2 * s, static_cast<uint16_t>(end - out));
    out = end;
  }
  return out;
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

size_t SymbolEncoder::write(StreamKind kind, ByteSpan symbols, uint8_t* out) {
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
  Histogram counts;
  kernels().histogram(symbols.data(), symbols.size(), counts.data());
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
  uint8_t table[kMostTableBytes + 56];
  const size_t table_bytes = write_code_lengths(lengths, table);
  const size_t new_bits = coded_bits(counts, lengths) + 8 * table_bytes;
  const size_t old_bits = has_last[k] ? coded_bits(counts, last[k]) : SIZE_MAX;
  const bool repeat = old_bits <= new_bits;
  const size_t lanes = static_cast<size_t>(stream_lanes(symbols.size()));
  const size_t coded_bytes =
      std::min(old_bits, new_bits) / 8 + 3 * lanes + 4;  // sizes, unfilled last bytes, payload length
  if (coded_bytes + coded_bytes / 64 >= symbols.size()) return raw();

  uint8_t* to = header(repeat ? StreamMode::kHuffmanRepeat : StreamMode::kHuffman);
  if (!repeat) {
    std::memcpy(to, table, table_bytes);
    to += table_bytes;
    last[k] = lengths;
    has_last[k] = true;
  }
  uint8_t* const payload = to + 3;
  uint8_t* const end = encode_lanes(make_codes(last[k]), symbols, payload);
  const uint32_t payload_bytes = static_cast<uint32_t>(end - payload);
  to[0] = static_cast<uint8_t>(payload_bytes);
  to[1] = static_cast<uint8_t>(payload_bytes >> 8);
  to[2] = static_cast<uint8_t>(payload_bytes >> 16);
  return static_cast<size_t>(end - out);
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
      if (!make_table(lengths, tables[k])) return corrupt("symbols: the code is not complete");
      has_table[k] = true;
      break;
    }
    case StreamMode::kHuffmanRepeat:
      if (!has_table[k]) return corrupt("symbols: no code to repeat");
      break;
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
  HuffmanLanes in{.table = &tables[k], .begin = {}, .readable = readable, .out = out, .symbols = count, .lanes = lanes};
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
