// classes.hpp - several codes for a stream, picked by the class of the symbol before. Encoder's choice of classes.
#pragma once

#include <array>
#include <optional>

#include "codec/entropy/huffman.hpp"

namespace glyd::codec {

// Codes by the class of the symbol before.
struct Classes {
  size_t count = 0;
  std::array<uint8_t, 256> of{};
  CodeLengths lengths[kMaxClasses];
};

// Classes with which `symbols`, that occur `counts` times, take less than `most_bits`.
std::optional<Classes> find_classes(ByteSpan symbols, const Histogram& counts, size_t most_bits);

}  // namespace glyd::codec
