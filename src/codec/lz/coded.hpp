// coded.hpp - blocks of Huffman-coded tokens, literals, offsets and lengths: levels max and ultra. Spec:
// docs/spec/codec.md 6.
#pragma once

#include <span>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "codec/entropy/symbols.hpp"
#include "codec/lz/sequence.hpp"

namespace glyd::codec {

// Reused from block to block.
struct CodedScratch {
  std::vector<uint8_t> tokens, literals, offset_codes, length_codes;
  std::vector<uint32_t> offsets, lengths;
};

// A value's bucket in a Huffman stream and the bits that go with it.
struct BucketTable {
  uint32_t base[256];
  uint8_t bits[256];
};
// Offsets with the lowest `low_bits` bits in the symbol (spec 6.2).
const BucketTable& offset_buckets(int low_bits);
const BucketTable& length_buckets();

class CodedWriter {
 public:
  // Most bytes that a block of `raw_bytes` takes, with what the writer may scribble behind.
  static size_t bound(size_t raw_bytes) { return raw_bytes + raw_bytes / 2 + 4096; }
  // Writes the payload of the block `raw` whose sequences are given; gives its bytes. Codes and tables of `symbols`
  // change with it.
  size_t write(ByteSpan raw, std::span<const Sequence> sequences, SymbolEncoder& symbols, uint8_t* out);

 private:
  CodedScratch scratch_;
};

// Decodes a payload into out..out + raw_bytes, within the unit that starts at `window` and ends at `writable_end`.
Result<void> read_coded(ByteSpan payload, const uint8_t* readable, SymbolDecoder& symbols, CodedScratch& scratch,
                        const uint8_t* window, uint8_t* out, size_t raw_bytes, uint8_t* writable_end);

}  // namespace glyd::codec
