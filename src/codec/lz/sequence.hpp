// sequence.hpp - what a match finder gives and a block writer takes.
#pragma once

#include <cstdint>
#include <vector>

namespace glyd::codec {

// `literals` bytes as they are, then `length` bytes from `offset` bytes back. What follows the last sequence of a block
// is literal.
struct Sequence {
  uint32_t literals, length, offset;
};
using Sequences = std::vector<Sequence>;

}  // namespace glyd::codec
