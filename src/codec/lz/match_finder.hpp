// match_finder.hpp - the search for sequences. One object serves one unit at a time; blocks are asked for in order.
#pragma once

#include <memory>
#include <span>

#include "base/bytes.hpp"
#include "codec/lz/sequence.hpp"

namespace glyd::codec {

class MatchFinder {
 public:
  virtual ~MatchFinder() = default;
  // A new unit, of which blocks follow.
  virtual void start(ByteSpan unit) = 0;
  // Sequences of unit[begin, end), whose matches may begin anywhere in the unit and stay within the block.
  // They last until the next call.
  virtual std::span<const Sequence> find(size_t begin, size_t end) = 0;
};

std::unique_ptr<MatchFinder> make_single_finder();   // level default: one probe
std::unique_ptr<MatchFinder> make_double_finder();   // level max: hashes of eight and of five bytes
std::unique_ptr<MatchFinder> make_optimal_finder();  // level ultra: all matches, cheapest path

}  // namespace glyd::codec
