// binary_tree.hpp - all matches of a position, by binary trees of the strings seen, one for each hash of four bytes.
#pragma once

#include <algorithm>
#include <vector>

#include "base/bytes.hpp"
#include "codec/kernels/basics.hpp"

namespace glyd::codec {

struct Match {
  uint32_t length, offset;
};

class BinaryTree {
 public:
  static constexpr int kWindowLog = 23;  // how far back a match may lie
  static constexpr uint32_t kMostMatches = 24;

  void start(ByteSpan unit) {
    unit_ = unit;
    const int unit_log = std::max(12, log2_floor(static_cast<uint32_t>(unit.size()) | 1) + 1);
    const int window_log = std::min(kWindowLog, unit_log);
    mask_ = (1u << window_log) - 1;
    children_.resize(size_t{2} << window_log);
    shift_ = 32 - std::min(20, unit_log);
    roots_.assign(size_t{1} << (32 - shift_), kNone);
    short_.assign(size_t{1} << kShortLog, kNone);
  }

  // Puts the position in and gives its matches, longer and longer, none past `end`; at most `depth` strings are looked
  // at.
  uint32_t insert(uint32_t position, uint32_t end, int depth, Match* matches) {
    const uint8_t* const base = unit_.data();
    const uint8_t* const here = base + position;
    const uint32_t room = end - position;
    if (room < 4) return 0;
    uint32_t count = 0, best = 2;
    const uint32_t word = load32(here);
    uint32_t& near = short_[((word << 8) * 506832829u) >> (32 - kShortLog)];
    if (matches != nullptr && near != kNone && position - near < kShortReach &&
        ((load32(base + near) ^ word) & 0xffffff) == 0) {
      best = static_cast<uint32_t>(match_length(here, base + near, here + room));
      matches[count++] = {best, position - near};
    }
    near = position;

    uint32_t& root = roots_[(word * 2654435761u) >> shift_];
    uint32_t candidate = root;
    root = position;
    uint32_t* less = &children_[2 * size_t{position & mask_}];
    uint32_t* more = less + 1;
    uint32_t less_length = 0, more_length = 0;  // common prefixes with the strings that bound the subtree
    for (; candidate != kNone && position - candidate <= mask_ && depth > 0; --depth) {
      uint32_t* const pair = &children_[2 * size_t{candidate & mask_}];
      uint32_t length = std::min(less_length, more_length);
      length += static_cast<uint32_t>(match_length(here + length, base + candidate + length, here + room));
      if (matches != nullptr && length > best && count < kMostMatches) {
        best = length;
        matches[count++] = {length, position - candidate};
      }
      if (length == room) {  // equal as far as one may look: take its place
        *less = pair[0];
        *more = pair[1];
        return count;
      }
      if (base[candidate + length] < here[length]) {
        *less = candidate;
        less = pair + 1;
        candidate = *less;
        less_length = length;
      } else {
        *more = candidate;
        more = pair;
        candidate = *more;
        more_length = length;
      }
    }
    *less = *more = kNone;
    return count;
  }

 private:
  static constexpr uint32_t kNone = ~0u;
  static constexpr int kShortLog = 15;
  static constexpr uint32_t kShortReach = 1 << 15;  // a match of three pays only with a near offset

  ByteSpan unit_;
  std::vector<uint32_t> roots_, children_, short_;
  uint32_t mask_ = 0;
  int shift_ = 0;
};

}  // namespace glyd::codec
