// huffman.hpp - prefix codes of at most 11 bits: lengths, tables, their transmission. Spec: docs/spec/codec.md 5.
#pragma once

#include <array>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "codec/format.hpp"
#include "codec/kernels/kernels.hpp"

namespace glyd::codec {

using Histogram = std::array<uint32_t, 256>;

// Code lengths of 256 symbols, 0 for those that do not occur.
struct CodeLengths {
  std::array<uint8_t, 256> bits{};
};

// At least two symbols occur, `max_bits` suffice for them. Near-optimal under the limit; the same on every machine.
void make_code_lengths(const uint32_t* counts, int symbols, int max_bits, uint8_t* bits);

// Bits that `counts` takes under `lengths`; SIZE_MAX if a symbol has no code.
size_t coded_bits(const Histogram& counts, const CodeLengths& lengths);

// Codes lowest bit first, the canonical code reversed, each << kCodeBitsBelow | its bits.
using HuffmanCodes = std::array<uint32_t, 256>;
HuffmanCodes make_codes(const CodeLengths& lengths);

// The table for lengths that satisfy Kraft's equality; false if they do not. `classes` are those of the symbols, or
// null.
bool make_table(const CodeLengths& lengths, const uint8_t* classes, HuffmanTable& table);

inline constexpr size_t kMostTableBytes = 256;  // that are needed to write a code's lengths
// Appends the lengths as the format sends them (at most kMostTableBytes).
size_t write_code_lengths(const CodeLengths& lengths, uint8_t* out);
// Reads them from the start of `in`; gives the bytes taken.
Result<size_t> read_code_lengths(ByteSpan in, CodeLengths& lengths);

}  // namespace glyd::codec
