// kernels.hpp - the loops that carry the time, compiled once for each instruction set from one body; all give equal
// output.
#pragma once

#include <cstddef>
#include <cstdint>

#include "codec/lz/sequence.hpp"

namespace glyd::codec {

// Huffman decoding table: entry = code length | class of the symbol << 6 | symbol << 8, indexed by the next
// kMaxCodeBits bits.
struct HuffmanTable {
  uint16_t entries[2048];
};

inline constexpr int kCodeBitsBelow = 8;

struct HuffmanLanes {
  const HuffmanTable* table;  // one, or kMaxClasses of which the class of the symbol before picks
  bool classes;
  const uint8_t* begin[9];  // lane s is begin[s] .. begin[s + 1]
  const uint8_t* readable;  // bytes before it may be loaded (>= begin[lanes])
  uint8_t* out;
  size_t symbols;
  int lanes;
};

// What a coded block's execution reads: everything decoded, nothing trusted but the array sizes.
struct CodedBlock {
  const uint8_t *tokens, *tokens_end;
  const uint8_t *literals, *literals_end;  // readable as far as the block's bytes, and 64 more
  // As many as the tokens ask for; all can be read as far as there are tokens.
  const uint32_t *offsets, *offsets_end;
  const uint32_t *runs, *runs_end;
  const uint32_t *lengths, *lengths_end;
  uint8_t *out, *out_end;       // of the block
  const uint8_t* window_begin;  // first byte of the unit
  uint8_t* writable_end;        // the unit's last byte + 1
};

// Least value and number of bits that go with it.
struct Bucket {
  uint32_t base, bits;
};

struct BytesBlock {
  const uint8_t *tokens, *tokens_end;
  const uint8_t *literals, *literals_end;
  const uint8_t *offsets, *offsets_end;
  const uint8_t *lengths, *lengths_end;
  const uint8_t* readable;  // bytes before it may be loaded
  uint8_t *out, *out_end;
  const uint8_t* window_begin;
  uint8_t* writable_end;
};

// Sequences of unit[begin, end), of at least 64 bytes, at level max.
struct MaxSearch {
  // By the unit's bytes: at most 64 KiB, 8 MiB, any.
  enum Size { kSmall, kMiddle, kLarge };
  static constexpr size_t table_bytes(Size size) {
    return size == kSmall ? 3 << 14 : size == kMiddle ? 9 << 16 : 3 << 19;
  }
  const uint8_t* unit;
  uint32_t begin, end;
  uint32_t* tables;  // zeros at the unit's start
  Size size;
  Sequence* out;  // room for a sequence of every four bytes
};

// Sequences of unit[begin, end), of at least 64 bytes, at level default.
struct DefaultSearch {
  static constexpr int kTableLog = 14;
  const uint8_t* unit;
  uint32_t begin, end;
  uint16_t* table;  // zeros at the unit's start
  Sequence* out;    // room for a sequence of every four bytes
};

struct HashState {
  alignas(64) uint8_t bytes[576];  // XXH3_state_t
};

struct Kernels {
  bool (*decode_huffman)(const HuffmanLanes&);
  bool (*execute_coded)(const CodedBlock&);
  bool (*execute_bytes)(const BytesBlock&);
  // values[i] = base + (the next bits << shift), as buckets[codes[i]] says. False if the bits run out, an excess byte
  // is left or a base has its highest bit set.
  bool (*expand_bits)(const uint8_t* codes, size_t count, const Bucket* buckets, int shift, const uint8_t* bits,
                      size_t bits_bytes, const uint8_t* readable, uint32_t* values);
  // Symbols of offsets plus kOffsetBias, with kMaxLowBits low bits in them; values below 2^31.
  void (*offset_codes)(const uint32_t* values, size_t count, uint8_t* codes);
  // As many bits of each value >> shift as its bucket says, lowest first; gives the end. Writes up to 8 bytes behind.
  uint8_t* (*pack_bits)(const uint32_t* values, const uint8_t* codes, size_t count, const Bucket* buckets, int shift,
                        uint8_t* out);
  // Huffman codes one after the other, from a table of code << kCodeBitsBelow | bits; gives the end. Writes up to 8
  // bytes behind.
  uint8_t* (*encode_lane)(const uint32_t* codes, const uint8_t* symbols, size_t count, uint8_t* out);
  // counts[256] of the bytes.
  void (*histogram)(const uint8_t* bytes, size_t count, uint32_t* counts);
  // The high halves of fp32 values, which are bf16 values, and their low bytes each apart.
  void (*split_halves)(const uint8_t* values, size_t count, uint8_t* highs, uint8_t* low0, uint8_t* low1);
  void (*join_halves)(const uint8_t* highs, const uint8_t* low0, const uint8_t* low1, size_t count, uint8_t* values);
  // Exponents of bf16 values and the rests, one byte each, sign lowest.
  void (*split_floats)(const uint8_t* values, size_t count, uint8_t* exponents, uint8_t* rest);
  void (*join_floats)(const uint8_t* exponents, const uint8_t* rest, size_t count, uint8_t* values);
  // The same with two bits of mantissa in the symbols and rests of 6 bits, packed: 8 bytes more may be written behind
  // them. False if an exponent is neither 0 nor in [base, base + 63).
  bool (*split_floats_joint)(const uint8_t* values, size_t count, uint32_t base, uint8_t* symbols, uint8_t* rest);
  void (*join_floats_joint)(const uint8_t* symbols, const uint8_t* rest, size_t count, uint32_t base, uint8_t* values);
  // Both give the end of the sequences.
  Sequence* (*search_default)(const DefaultSearch&);
  Sequence* (*search_max)(const MaxSearch&);
  uint64_t (*hash)(const uint8_t* bytes, size_t count);  // XXH3, 64 bits, seed 0
  // The same, piece by piece.
  void (*hash_start)(HashState&);
  void (*hash_add)(HashState&, const uint8_t* bytes, size_t count);
  uint64_t (*hash_value)(const HashState&);
};

const Kernels& kernels();

}  // namespace glyd::codec
