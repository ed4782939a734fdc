// symbols.hpp - streams of bytes, each stored raw, as one repeated byte or Huffman-coded. Spec: docs/spec/codec.md 5.
#pragma once

#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "codec/entropy/huffman.hpp"

namespace glyd::codec {

// Kinds of streams: each remembers its last code within the unit, which a later stream may use again.
enum class StreamKind : uint8_t { kLiterals, kTokens, kOffsets, kRuns, kLengths, kPlane, kLowBytes, kCount };
inline constexpr size_t kStreamKinds = static_cast<size_t>(StreamKind::kCount);

// The encoder's memory of the codes in force.
struct SymbolEncoder {
  CodeLengths last[kStreamKinds];
  bool has_last[kStreamKinds] = {};
  bool seek_classes = false;  // takes its time

  // Most bytes that `count` symbols take.
  static size_t bound(size_t count) { return count + 8; }
  // Writes the stream in its shortest form; gives its bytes. `counted`: the symbols' counts, if the caller has them.
  size_t write(StreamKind kind, ByteSpan symbols, uint8_t* out, const Histogram* counted = nullptr);
};

struct SymbolDecoder {
  HuffmanTable tables[kStreamKinds], class_tables[kMaxClasses];
  bool has_table[kStreamKinds] = {};

  // Reads a stream of at most `capacity` symbols from `at`, which moves behind it, to `out`. Bytes before `readable`
  // may be loaded.
  Result<size_t> read(StreamKind kind, const uint8_t*& at, const uint8_t* end, const uint8_t* readable, uint8_t* out,
                      size_t capacity);
};

// LEB128, at most 5 bytes.
uint8_t* write_varint(uint8_t* out, uint32_t value);
bool read_varint(const uint8_t*& at, const uint8_t* end, uint32_t& value);

}  // namespace glyd::codec
