#include "codec/entropy/huffman.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

namespace glyd::codec {
namespace {

// Symbols 0-11 of the code for the code lengths are lengths; these three are runs of zeros.
struct ZeroRun {
  int symbol, extra_bits, least;
};
constexpr ZeroRun kZeroRuns[3] = {{12, 1, 2}, {13, 3, 4}, {14, 7, 12}};

class BitWriter {
 public:
  explicit BitWriter(uint8_t* out) : out_(out) {}
  void put(uint32_t value, int bits) {
    held_ |= uint64_t{value} << count_;
    for (count_ += bits; count_ >= 8; count_ -= 8, held_ >>= 8) *out_++ = static_cast<uint8_t>(held_);
  }
  uint8_t* finish() {
    if (count_ > 0) *out_++ = static_cast<uint8_t>(held_);
    return out_;
  }

 private:
  uint8_t* out_;
  uint64_t held_ = 0;
  int count_ = 0;
};

class BitReader {
 public:
  explicit BitReader(ByteSpan in) : in_(in) {}
  // Bits past the end read as zeros; overrun() tells.
  uint32_t peek(int bits) const {
    uint32_t word = 0;
    for (size_t k = 0; k < 3; ++k) {
      if (const size_t byte = (position_ >> 3) + k; byte < in_.size()) word |= uint32_t{in_[byte]} << (8 * k);
    }
    return (word >> (position_ & 7)) & ((1u << bits) - 1);
  }
  void skip(int bits) { position_ += static_cast<size_t>(bits); }
  uint32_t take(int bits) {
    const uint32_t value = peek(bits);
    skip(bits);
    return value;
  }
  bool overrun() const { return position_ > in_.size() * 8; }
  size_t bytes() const { return (position_ + 7) / 8; }

 private:
  ByteSpan in_;
  size_t position_ = 0;
};

uint32_t reverse_bits(uint32_t code, int bits) {
  uint32_t reversed = 0;
  for (int k = 0; k < bits; ++k) reversed |= ((code >> k) & 1) << (bits - 1 - k);
  return reversed;
}

// Canonical codes, reversed, by (length, symbol).
void canonical_codes(const uint8_t* lengths, int symbols, uint16_t* codes) {
  uint32_t per_length[16] = {}, next[16] = {};
  for (int s = 0; s < symbols; ++s) ++per_length[lengths[s]];
  uint32_t code = 0;
  per_length[0] = 0;
  for (int bits = 1; bits < 16; ++bits) {
    code = (code + per_length[bits - 1]) << 1;
    next[bits] = code;
  }
  for (int s = 0; s < symbols; ++s) {
    if (lengths[s] != 0) codes[s] = static_cast<uint16_t>(reverse_bits(next[lengths[s]]++, lengths[s]));
  }
}

// A run-length view of the code lengths: symbol, extra value.
template <typename Emit>
void for_each_length_symbol(const CodeLengths& lengths, int used, Emit&& emit) {
  for (int s = 0; s < used;) {
    if (lengths.bits[static_cast<size_t>(s)] != 0) {
      emit(lengths.bits[static_cast<size_t>(s)], 0u, 0);
      ++s;
      continue;
    }
    int run = 0;
    while (s + run < used && lengths.bits[static_cast<size_t>(s + run)] == 0) ++run;
    s += run;
    while (run > 0) {
      const ZeroRun* fit = nullptr;
      for (const ZeroRun& r : kZeroRuns) fit = run >= r.least ? &r : fit;
      if (fit == nullptr) {
        emit(0, 0u, 0);
        --run;
        continue;
      }
      const int taken = std::min(run, fit->least + (1 << fit->extra_bits) - 1);
      emit(fit->symbol, static_cast<uint32_t>(taken - fit->least), fit->extra_bits);
      run -= taken;
    }
  }
}

}  // namespace

void make_code_lengths(const uint32_t* counts, int symbols, int max_bits, uint8_t* bits) {
  struct Node {
    uint32_t count;
    uint16_t parent;
  };
  uint16_t order[256];
  int used = 0;
  for (int s = 0; s < symbols; ++s) {
    bits[s] = 0;
    if (counts[s] != 0) order[used++] = static_cast<uint16_t>(s);
  }
  std::sort(order, order + used,
            [&](uint16_t a, uint16_t b) { return counts[a] != counts[b] ? counts[a] < counts[b] : a < b; });
  // Two queues: leaves in order, joined nodes in the order made.
  Node nodes[512];
  for (int i = 0; i < used; ++i) nodes[i] = {counts[order[i]], 0};
  int leaf = 0, joined = used;
  for (int made = used; made < 2 * used - 1; ++made) {
    const auto take = [&] {
      return leaf < used && (joined == made || nodes[leaf].count <= nodes[joined].count) ? leaf++ : joined++;
    };
    const int a = take(), b = take();
    nodes[made] = {nodes[a].count + nodes[b].count, 0};
    nodes[a].parent = nodes[b].parent = static_cast<uint16_t>(made);
  }
  int depth[512];
  depth[2 * used - 2] = 0;
  uint32_t kraft = 0;  // in units of 2^-max_bits
  for (int i = 2 * used - 3; i >= 0; --i) {
    depth[i] = depth[nodes[i].parent] + 1;
    if (i < used) {
      const int length = std::min(depth[i], max_bits);
      bits[order[i]] = static_cast<uint8_t>(length);
      kraft += 1u << (max_bits - length);
    }
  }
  // Too much: lengthen the rarest codes that are not at the limit. Too little: shorten the most frequent that fit.
  const uint32_t full = 1u << max_bits;
  for (int i = 0; kraft > full; i = (i + 1) % used) {
    uint8_t& length = bits[order[i]];
    while (length < max_bits && kraft > full) {
      ++length;
      kraft -= 1u << (max_bits - length);
    }
  }
  for (int i = used - 1; i >= 0 && kraft < full; --i) {
    uint8_t& length = bits[order[i]];
    while (length > 1 && kraft + (1u << (max_bits - length)) <= full) {
      kraft += 1u << (max_bits - length);
      --length;
    }
  }
}

size_t coded_bits(const Histogram& counts, const CodeLengths& lengths) {
  size_t total = 0;
  for (size_t s = 0; s < 256; ++s) {
    if (counts[s] != 0 && lengths.bits[s] == 0) return SIZE_MAX;
    total += size_t{counts[s]} * lengths.bits[s];
  }
  return total;
}

HuffmanCodes make_codes(const CodeLengths& lengths) {
  std::array<uint16_t, 256> reversed{};
  canonical_codes(lengths.bits.data(), 256, reversed.data());
  HuffmanCodes codes;
  for (size_t s = 0; s < 256; ++s) codes[s] = uint32_t{reversed[s]} << kCodeBitsBelow | lengths.bits[s];
  return codes;
}

bool make_table(const CodeLengths& lengths, const uint8_t* classes, HuffmanTable& table) {
  uint32_t per_length[kMaxCodeBits + 1] = {}, first[kMaxCodeBits + 2] = {};
  for (const uint8_t bits : lengths.bits) {
    if (bits > kMaxCodeBits) return false;
    ++per_length[bits];
  }
  uint32_t kraft = 0;
  for (int bits = 1; bits <= kMaxCodeBits; ++bits) {
    kraft += per_length[bits] << (kMaxCodeBits - bits);
    first[bits + 1] = first[bits] + per_length[bits];
  }
  if (kraft != 1u << kMaxCodeBits) return false;
  uint8_t sorted[256];
  for (size_t s = 0; s < 256; ++s) {
    if (const uint8_t bits = lengths.bits[s]; bits != 0) sorted[first[bits]++] = static_cast<uint8_t>(s);
  }
  // The table of all codes up to n bits, doubled, is that of n + 1 bits less its new codes. Canonical codes count up;
  // `code` is kept reversed.
  uint32_t code = 0, symbol = 0;
  for (int bits = 1; bits <= kMaxCodeBits; ++bits) {
    const uint32_t half = 1u << (bits - 1);
    std::copy_n(table.entries, half, table.entries + half);
    for (uint32_t k = 0; k < per_length[bits]; ++k) {
      const uint8_t s = sorted[symbol++];
      table.entries[code] = static_cast<uint16_t>(bits | (classes != nullptr ? classes[s] << 6 : 0) | s << 8);
      uint32_t carry = half;  // adds one to the reversed code
      while ((code & carry) != 0) code ^= carry, carry >>= 1;
      code |= carry;
    }
  }
  return true;
}

size_t write_code_lengths(const CodeLengths& lengths, uint8_t* out) {
  int used = 256;
  while (used > 0 && lengths.bits[static_cast<size_t>(used - 1)] == 0) --used;
  uint32_t counts[kCodeLengthSymbols] = {};
  for_each_length_symbol(lengths, used, [&](int symbol, uint32_t, int) { ++counts[symbol]; });
  // A code of one symbol would have no bits: give it a neighbour.
  if (std::count_if(counts, counts + kCodeLengthSymbols, [](uint32_t c) { return c != 0; }) == 1)
    ++counts[counts[0] == 0 ? 0 : 1];
  uint8_t bits[kCodeLengthSymbols];
  uint16_t codes[kCodeLengthSymbols] = {};
  make_code_lengths(counts, kCodeLengthSymbols, kCodeLengthMaxBits, bits);
  canonical_codes(bits, kCodeLengthSymbols, codes);
  BitWriter writer(out);
  writer.put(static_cast<uint32_t>(used - 1), 8);
  for (const uint8_t b : bits) writer.put(b, 3);
  for_each_length_symbol(lengths, used, [&](int symbol, uint32_t extra, int extra_bits) {
    writer.put(codes[symbol], bits[symbol]);
    writer.put(extra, extra_bits);
  });
  return static_cast<size_t>(writer.finish() - out);
}

Result<size_t> read_code_lengths(ByteSpan in, CodeLengths& lengths) {
  BitReader reader(in);
  const size_t used = reader.take(8) + 1;
  uint8_t bits[kCodeLengthSymbols];
  uint16_t codes[kCodeLengthSymbols] = {};
  uint32_t kraft = 0;
  for (uint8_t& b : bits) {
    b = static_cast<uint8_t>(reader.take(3));
    if (b != 0) kraft += 128u >> b;
  }
  if (kraft != 128) return corrupt("code lengths: their own code is not complete");
  canonical_codes(bits, kCodeLengthSymbols, codes);
  uint8_t table[128];
  for (int s = 0; s < kCodeLengthSymbols; ++s) {
    for (uint32_t k = codes[s]; bits[s] != 0 && k < 128; k += 1u << bits[s]) table[k] = static_cast<uint8_t>(s);
  }
  lengths.bits.fill(0);
  for (size_t s = 0; s < used;) {
    const uint8_t symbol = table[reader.peek(7)];
    reader.skip(bits[symbol]);
    if (symbol <= kMaxCodeBits) {
      lengths.bits[s++] = symbol;
      continue;
    }
    const ZeroRun& run = kZeroRuns[symbol - 12];
    s += static_cast<size_t>(run.least) + reader.take(run.extra_bits);
    if (s > used) return corrupt("code lengths: a run passes the last symbol");
  }
  if (reader.overrun()) return corrupt("code lengths: cut short");
  return reader.bytes();
}

}  // namespace glyd::codec
