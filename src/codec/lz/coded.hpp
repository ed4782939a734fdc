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

// Reused from block to block; never shrinks, since what is added again would be filled with zeros.
struct CodedScratch {
  std::vector<uint8_t> tokens, literals, offset_codes, run_codes, length_codes;
  std::vector<uint32_t> offsets, runs, lengths;
};

// A value's bucket in a Huffman stream and the bits that go with it.
struct BucketTable {
  Bucket of[256];
};
// Offsets with the lowest `low_bits` bits in the symbol (spec 6.2).
const BucketTable& offset_buckets(int low_bits);
const BucketTable& length_buckets();

// Where a piece of a block ends: in the sequences, in the content and in what was gathered.
struct PieceEnd {
  size_t sequences, bytes, tokens, literals, offsets;
};

// How often each symbol occurs; of offsets, with kMaxLowBits low bits.
struct StreamCounts {
  Histogram literals{}, tokens{}, offsets{};
};

class CodedWriter {
 public:
  // Blocks are cut at pieces of about so many bytes.
  explicit CodedWriter(size_t piece_bytes) : piece_bytes_(piece_bytes) {}
  // Most bytes that a block of `raw_bytes` takes, with what the writer may scribble behind.
  static size_t bound(size_t raw_bytes) { return raw_bytes + raw_bytes / 2 + 4096; }
  // Turns the block `raw` with these sequences into the streams below.
  void gather(ByteSpan raw, std::span<const Sequence> sequences);
  // Writes the payload of what was gathered last; gives its bytes. Codes and tables of `symbols` change with it.
  // `counted`: its counts, if the caller has them.
  size_t write(SymbolEncoder& symbols, uint8_t* out, const StreamCounts* counted = nullptr);

  ByteSpan tokens() const { return {scratch_.tokens.data(), pieces_.back().tokens}; }
  ByteSpan literals() const { return {scratch_.literals.data(), pieces_.back().literals}; }
  // Symbols of the new offsets; with kMaxLowBits low bits, until they are written.
  ByteSpan offset_codes() const { return {scratch_.offset_codes.data(), pieces_.back().offsets}; }
  std::span<const PieceEnd> pieces() const { return pieces_; }  // the last is the block's end

 private:
  size_t piece_bytes_;
  CodedScratch scratch_;
  size_t run_count_ = 0, length_count_ = 0;
  std::vector<PieceEnd> pieces_;
};

// Decodes a payload into out..out + raw_bytes, within the unit that starts at `window` and ends at `writable_end`.
Result<void> read_coded(ByteSpan payload, const uint8_t* readable, SymbolDecoder& symbols, CodedScratch& scratch,
                        const uint8_t* window, uint8_t* out, size_t raw_bytes, uint8_t* writable_end);

}  // namespace glyd::codec
