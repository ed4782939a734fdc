// floats.hpp - blocks of bf16 or fp32 values: exponents and two bits of mantissa Huffman-coded, the other bits as they
// are. Spec: docs/spec/codec.md 8.
#pragma once

#include <optional>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "codec/entropy/symbols.hpp"

namespace glyd::codec {

class FloatsWriter {
 public:
  // The payload if `raw` looks like an array of floats, else 0. `float_bytes` is what is known of them
  // (TensorMap::Run).
  size_t write(ByteSpan raw, std::optional<int> float_bytes, SymbolEncoder& symbols, uint8_t* out);

 private:
  std::vector<uint8_t> highs_, low_, exponents_, rest_;
};

struct FloatsScratch {
  std::vector<uint8_t> highs, low, exponents;
};

Result<void> read_floats(ByteSpan payload, const uint8_t* readable, SymbolDecoder& symbols, FloatsScratch& scratch,
                         MutableByteSpan out);

}  // namespace glyd::codec
