// codec_reference_blocks.cpp - sections 4 to 8.
#include <algorithm>
#include <array>

#include "codec_reference.hpp"

namespace glyd::reference {
namespace {

using Bytes = std::vector<uint8_t>;

void require(bool holds, const char* rule) {
  if (!holds) throw BadFrame(rule);
}

// Bytes taken from the front.
struct Input {
  const uint8_t* at;
  size_t left;

  uint8_t byte() {
    require(left >= 1, "cut short");
    --left;
    return *at++;
  }
  uint64_t number(size_t count) {
    uint64_t value = 0;
    for (size_t k = 0; k < count; ++k) value |= uint64_t{byte()} << (8 * k);
    return value;
  }
  uint32_t varint() {
    uint64_t value = 0;
    for (int k = 0; k < 5; ++k) {
      const uint8_t b = byte();
      value |= uint64_t{b & 127u} << (7 * k);
      if (b < 128) {
        require(value < uint64_t{1} << 32, "varint");
        return static_cast<uint32_t>(value);
      }
    }
    throw BadFrame("varint");
  }
  Input part(size_t count) {
    require(count <= left, "cut short");
    const Input p{at, count};
    at += count;
    left -= count;
    return p;
  }
};

struct Bits {
  Input in;
  size_t position = 0;

  uint32_t take(uint32_t count) {
    uint32_t value = 0;
    for (uint32_t k = 0; k < count; ++k, ++position) {
      require(position / 8 < in.left, "bits cut short");
      value |= ((in.at[position / 8] >> (position % 8)) & 1u) << k;
    }
    return value;
  }
  size_t bytes() const { return (position + 7) / 8; }
};

// 5.1: a complete canonical code, read bit by bit.
struct Code {
  std::vector<uint8_t> lengths;

  void check(uint32_t most) const {
    uint32_t sum = 0;
    for (const uint8_t l : lengths) sum += l != 0 ? 1u << (most - l) : 0;
    require(sum == 1u << most, "5.1: code not complete");
  }
  uint8_t read(Bits& bits) const {
    uint32_t code = 0, first = 0;
    for (uint8_t length = 1; length <= 11; ++length) {
      code = code << 1 | bits.take(1);
      uint32_t of_length = 0;
      for (size_t s = 0; s < lengths.size(); ++s) {
        if (lengths[s] != length) continue;
        if (first + of_length == code) return static_cast<uint8_t>(s);
        ++of_length;
      }
      first = (first + of_length) << 1;
    }
    throw BadFrame("5.1: no such code");
  }
};

Code read_code(Input& in) {
  Bits bits{in};
  const uint32_t last = bits.take(8);
  Code length_code{Bytes(15)};
  for (uint8_t& l : length_code.lengths) l = static_cast<uint8_t>(bits.take(3));
  length_code.check(7);
  Code code{Bytes(256)};
  constexpr uint32_t kLeast[3] = {2, 4, 12}, kExtra[3] = {1, 3, 7};
  for (uint32_t s = 0; s <= last;) {
    const uint8_t symbol = length_code.read(bits);
    if (symbol <= 11) {
      code.lengths[s++] = symbol;
    } else {
      s += kLeast[symbol - 12] + bits.take(kExtra[symbol - 12]);
      require(s <= last + 1, "5.1: run too long");
    }
  }
  code.check(11);
  in.part(bits.bytes());
  return code;
}

enum Kind { kLiterals, kTokens, kOffsets, kRuns, kLengths, kExponents, kLowBytes };
using Codes = std::array<Code, 7>;

// 5.3: codes of which the symbol before picks one.
struct Classes {
  std::vector<Code> codes;
  std::array<uint32_t, 256> of{};
};

Classes read_classes(Input& in) {
  Classes classes;
  const uint32_t count = in.byte();
  require(count >= 2 && count <= 4, "5.3: number of classes");
  for (uint32_t c = 0; c < count; ++c) classes.codes.push_back(read_code(in));
  Bits bits{in};
  for (size_t s = 0; s < 256; ++s) {
    const bool occurs = std::ranges::any_of(classes.codes, [=](const Code& code) { return code.lengths[s] != 0; });
    if (occurs) classes.of[s] = bits.take(2);
    require(classes.of[s] < count, "5.3: class");
  }
  in.part(bits.bytes());
  return classes;
}

// 5
Bytes read_symbols(Input& in, Codes& codes, Kind kind, size_t most) {
  const uint8_t mode = in.byte();
  const size_t n = in.varint();
  require(n <= most, "5: too many symbols");
  Bytes out;
  if (mode == 0) {
    const Input raw = in.part(n);
    return Bytes(raw.at, raw.at + n);
  }
  if (mode == 1) return Bytes(n, in.byte());
  require(mode >= 2 && mode <= 4 && n >= 1, "5: mode");
  Classes classes;
  if (mode == 4) {
    classes = read_classes(in);
  } else {
    if (mode == 2) codes[kind] = read_code(in);
    require(!codes[kind].lengths.empty(), "5: no code to repeat");
    classes.codes = {codes[kind]};
  }
  const size_t lanes = n < 192 ? 1 : n < 1536 ? 4 : 8, segment = (n + lanes - 1) / lanes;
  Input body = in.part(in.number(3));
  std::vector<size_t> sizes;
  for (size_t s = 0; s + 1 < lanes; ++s) sizes.push_back(body.number(2));
  for (size_t s = 0; s < lanes; ++s) {
    Bits bits{body.part(s + 1 < lanes ? sizes[s] : body.left)};
    uint32_t picked = 0;
    for (size_t i = s * segment; i < std::min(n, (s + 1) * segment); ++i) {
      out.push_back(classes.codes[picked].read(bits));
      picked = classes.of[out.back()];
    }
    require(bits.bytes() == bits.in.left, "5.2: a lane ends elsewhere");
  }
  return out;
}

void copy_match(Bytes& out, size_t begin, size_t offset, size_t length) {
  require(offset >= 1 && offset <= out.size() - begin, "6.1: offset before the unit");
  for (size_t k = 0; k < length; ++k) out.push_back(out[out.size() - offset]);
}

void copy_literals(Bytes& out, const Bytes& literals, size_t& used, size_t count) {
  require(count <= literals.size() - used, "6.1: literals run out");
  for (size_t k = 0; k < count; ++k) out.push_back(literals[used++]);
}

// 6.3
std::vector<size_t> read_lengths(const Bytes& symbols, Bits& bits) {
  std::vector<size_t> values;
  for (const uint8_t c : symbols) {
    if (c < 16) {
      values.push_back(c);
      continue;
    }
    const uint32_t log = 4 + (c - 16u) / 2;
    require(log <= 18, "6.3: bucket");
    values.push_back((size_t{2 + (c & 1u)} << (log - 1)) + bits.take(log - 1));
  }
  return values;
}

// 6
void read_coded(Input in, Codes& codes, Bytes& out, size_t raw) {
  const size_t end = out.size() + raw;
  const uint32_t low_bits = in.byte();
  require(low_bits <= 3, "6: k");
  const Bytes literals = read_symbols(in, codes, kLiterals, raw), tokens = read_symbols(in, codes, kTokens, raw / 2);
  const Bytes offset_symbols = read_symbols(in, codes, kOffsets, raw),
              run_symbols = read_symbols(in, codes, kRuns, raw),
              length_symbols = read_symbols(in, codes, kLengths, raw);
  const size_t offset_bytes = in.varint(), run_bytes = in.varint();
  Bits offset_bits{in.part(offset_bytes)}, run_bits{in.part(run_bytes)}, length_bits{in};
  std::vector<size_t> offsets;
  for (const uint8_t c : offset_symbols) {
    const uint32_t bucket = c >> low_bits, low = c & ((1u << low_bits) - 1);
    require(bucket <= 27, "6.2: bucket");
    offsets.push_back((size_t{8} << bucket) + (size_t{offset_bits.take(bucket + 3 - low_bits)} << low_bits) + low - 7);
  }
  const std::vector<size_t> runs = read_lengths(run_symbols, run_bits),
                            lengths = read_lengths(length_symbols, length_bits);
  require(offset_bits.bytes() == offset_bits.in.left && run_bits.bytes() == run_bits.in.left &&
              length_bits.bytes() == length_bits.in.left,
          "6.3: bits left");
  size_t recent[3] = {1, 4, 8}, offset_at = 0, run_at = 0, length_at = 0, used = 0;
  const auto next = [](const std::vector<size_t>& values, size_t& at) {
    require(at < values.size(), "6.1: runs or lengths run out");
    return values[at++];
  };
  for (const uint8_t token : tokens) {
    size_t run = token & 3, length = (token >> 2) & 15;
    if (run == 3) run += next(runs, run_at);
    if (length == 15) length += next(lengths, length_at);
    const int kind = token >> 6;
    length += kind == 3 ? 3 : 2;
    require(kind != 3 || offset_at < offsets.size(), "6.1: offsets run out");
    const size_t offset = kind == 3 ? offsets[offset_at++] : recent[kind];
    for (int k = std::min(kind, 2); k > 0; --k) recent[k] = recent[k - 1];
    recent[0] = offset;
    require(run + length <= end - out.size(), "6.1: the block is full");
    copy_literals(out, literals, used, run);
    copy_match(out, 0, offset, length);
  }
  require(offset_at == offsets.size() && run_at == runs.size() && length_at == lengths.size(),
          "6.1: offsets, runs or lengths are left");
  copy_literals(out, literals, used, literals.size() - used);
  require(out.size() == end, "6.1: the block is not filled");
}

// 7
void read_bytes(Input in, Bytes& out, size_t raw) {
  const size_t end = out.size() + raw;
  const size_t literal_count = in.varint(), token_count = in.varint(), offset_count = in.varint();
  const Input literal_part = in.part(literal_count);
  const Bytes literals(literal_part.at, literal_part.at + literal_count);
  Input tokens = in.part(token_count), offsets = in.part(2 * offset_count);
  const auto next_length = [&] {
    const size_t first = in.byte();
    return first < 254 ? first : in.number(first == 254 ? 2 : 4);
  };
  size_t offset = 1, used = 0;
  while (tokens.left != 0) {
    const uint8_t token = tokens.byte();
    size_t run = (token >> 4) & 7, length = token & 15;
    if (token >= 128) offset = offsets.number(2);
    if (run == 7) run += next_length();
    if (length == 15) length += next_length();
    length += 4;
    require(run + length <= end - out.size(), "7: the block is full");
    copy_literals(out, literals, used, run);
    copy_match(out, 0, offset, length);
  }
  require(offsets.left == 0 && in.left == 0, "7: offsets or lengths are left");
  copy_literals(out, literals, used, literals.size() - used);
  require(out.size() == end, "7: the block is not filled");
}

// 8
void read_floats(Input in, Codes& codes, Bytes& out, size_t raw) {
  const uint8_t head = in.byte();
  const size_t width = head >> 4, phase = head & 15;
  require((width == 2 || width == 4) && phase < width && phase <= raw, "8: width or phase");
  const uint32_t m = in.byte();
  require(m == 0 || m == 2, "8: m");
  const uint32_t base = m == 2 ? in.byte() : 0;
  for (size_t k = 0; k < phase; ++k) out.push_back(in.byte());
  const size_t count = (raw - phase) / width, tail = raw - phase - count * width;
  const Bytes symbols = read_symbols(in, codes, kExponents, count);
  std::vector<Bytes> low(width == 4 ? 2 : 0);
  for (Bytes& plane : low) {
    plane = read_symbols(in, codes, kLowBytes, count);
    require(plane.size() == count, "8: low bytes");
  }
  const uint32_t rest_bits = 8 - m;
  require(symbols.size() == count && in.left == (count * rest_bits + 7) / 8 + tail, "8: sizes");
  Bits rests{in.part(in.left - tail)};
  for (size_t i = 0; i < count; ++i) {
    const uint32_t symbol = symbols[i], rest = rests.take(rest_bits), top = symbol & ((1u << m) - 1);
    uint32_t exponent = symbol >> m;
    if (m == 2) exponent = exponent == 63 ? 0 : (base + exponent) % 256;
    const uint32_t high = (rest & 1) << 15 | exponent << 7 | top << (7 - m) | rest >> 1;
    for (const Bytes& plane : low) out.push_back(plane[i]);
    out.push_back(static_cast<uint8_t>(high));
    out.push_back(static_cast<uint8_t>(high >> 8));
  }
  while (in.left != 0) out.push_back(in.byte());
}

}  // namespace

// 4
std::vector<uint8_t> decode_blocks(const uint8_t* payload, size_t bytes, size_t raw) {
  Input in{payload, bytes};
  Codes codes;
  Bytes out;
  while (in.left != 0) {
    const uint8_t type = in.byte();
    const size_t content = in.number(3), stored = in.number(3);
    require(content >= 1 && content <= 1 << 18 && content <= raw - out.size(), "4: content");
    Input body = in.part(stored);
    switch (type) {
      case 0:
        require(stored == content, "4: raw");
        out.insert(out.end(), body.at, body.at + stored);
        break;
      case 1:
        require(stored == 1, "4: fill");
        out.insert(out.end(), content, body.byte());
        break;
      case 2:
        read_bytes(body, out, content);
        break;
      case 3:
        read_coded(body, codes, out, content);
        break;
      case 4:
        read_floats(body, codes, out, content);
        break;
      default:
        throw BadFrame("4: type");
    }
  }
  require(out.size() == raw, "4: the unit is not filled");
  return out;
}

}  // namespace glyd::reference
