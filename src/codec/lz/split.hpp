// split.hpp - where a row of sequences is better coded as two blocks. Encoder's choice.
#pragma once

#include <vector>

#include "codec/lz/coded.hpp"

namespace glyd::codec {

// A block to be: sequences [first, last) and `bytes` of content; the last part also has what follows the last sequence.
struct Part {
  size_t first, last, bytes;
};

struct Split {
  std::vector<Part> parts;
  bool counted;  // there is one part, and these are its counts
  StreamCounts counts;
};

// Cuts what was gathered of a block between pieces where that saves more than another block's codes cost.
Split split_block(const CodedWriter& gathered);

}  // namespace glyd::codec
