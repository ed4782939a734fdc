// byte_block.hpp - byte-aligned blocks without entropy coding: level default. Spec: docs/spec/codec.md 7.
#pragma once

#include <span>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "codec/lz/sequence.hpp"

namespace glyd::codec {

class BytesWriter {
 public:
  static size_t bound(size_t raw_bytes) { return raw_bytes + raw_bytes / 2 + 4096; }
  size_t write(ByteSpan raw, std::span<const Sequence> sequences, uint8_t* out);

 private:
  std::vector<uint8_t> tokens_, offsets_, lengths_;
};

Result<void> read_bytes(ByteSpan payload, const uint8_t* readable, const uint8_t* window, uint8_t* out,
                        size_t raw_bytes, uint8_t* writable_end);

}  // namespace glyd::codec
