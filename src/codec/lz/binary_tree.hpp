// binary_tree.hpp - all matches of a position, by binary trees of the strings seen, one for each hash of four bytes.
#pragma once

#include <algorithm>
#include <vector>

#include "base/aligned_buffer.hpp"
#include "base/bytes.hpp"
#include "codec/kernels/basics.hpp"

namespace glyd::codec {

struct Match {
  uint32_t length, offset;
};

class BinaryTree {
 public:
  static constexpr int kWindowLog = 25;  // how far back a match may lie
  static constexpr uint32_t kMostMatches = 24;
  static constexpr uint32_t kCompared = 256;

  void start(ByteSpan unit) {
    unit_ = unit;
    const int unit_log = std::max(12, log2_floor(static_cast<uint32_t>(unit.size()) | 1) + 1);
    const int window_log = std::min(kWindowLog, unit_log);
    mask_ = (1u << window_log) - 1;
    // What the buffers give huge pages for: the trees are walked at random.
    const size_t child_bytes = (size_t{2} << window_log) * sizeof(uint32_t);
    if (child_buffer_.size() < child_bytes) child_buffer_ = AlignedBuffer(child_bytes);
    children_ = reinterpret_cast<uint32_t*>(child_buffer_.data());
    shift_ = 32 - std::min(20, unit_log);
    const size_t root_bytes = (size_t{1} << (32 - shift_)) * sizeof(uint32_t);
    if (root_buffer_.size() < root_bytes) root_buffer_ = AlignedBuffer(root_bytes);
    roots_ = reinterpret_cast<uint32_t*>(root_buffer_.data());
    std::memset(roots_, 0xff, root_bytes);
    short_.assign(size_t{1} << kShortLog, kNone);
  }

  // Puts the position in and gives its matches, longer and longer, none past `end`; at most `depth` strings are looked
  // at. Strings are ordered by their first kCompared bytes, whatever `end` is: else a string that was equal up to one
  // end would stand between others that it does not belong to, and lengths taken from the bounds would be wrong.
  uint32_t insert(uint32_t position, uint32_t end, int depth, Match* matches) {
    const uint8_t* const base = unit_.data();
    const uint8_t* const here = base + position;
    const uint32_t left = static_cast<uint32_t>(unit_.size()) - position;
    const uint32_t room = std::min(left, kCompared);
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

    // What positions to come will wait for.
    if (left > kAhead + 4) {
      __builtin_prefetch(&roots_[root_of(load32(here + kAhead))]);
      if (const uint32_t soon = roots_[root_of(load32(here + kSoon))]; soon != kNone) {
        __builtin_prefetch(&children_[2 * size_t{soon & mask_}]);
        __builtin_prefetch(base + soon);
      }
    }
    uint32_t& root = roots_[root_of(word)];
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
      if (length == room) {
        // Equal: takes its place. At the unit's end, where less is compared, the order below it is unknown.
        *less = room == kCompared ? pair[0] : kNone;
        *more = room == kCompared ? pair[1] : kNone;
        return matches != nullptr ? fit(matches, count, here, end - position) : 0;
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
    return matches != nullptr ? fit(matches, count, here, end - position) : 0;
  }

 private:
  static constexpr uint32_t kSoon = 3, kAhead = 8;
  uint32_t root_of(uint32_t word) const { return (word * 2654435761u) >> shift_; }

  // Lengthens a last match that was compared as far as it is, and cuts all at `most`.
  uint32_t fit(Match* matches, uint32_t count, const uint8_t* here, uint32_t most) const {
    if (count == 0) return 0;
    Match& last = matches[count - 1];
    if (last.length == kCompared && most > kCompared) {
      last.length += static_cast<uint32_t>(match_length(here + kCompared, here + kCompared - last.offset, here + most));
    }
    uint32_t kept = 0;
    while (kept < count && matches[kept].length < most) ++kept;
    if (kept < count) matches[kept++].length = most;
    return kept;
  }

  static constexpr uint32_t kNone = ~0u;
  static constexpr int kShortLog = 15;
  static constexpr uint32_t kShortReach = 1 << 15;  // a match of three pays only with a near offset

  ByteSpan unit_;
  AlignedBuffer root_buffer_, child_buffer_;
  uint32_t *roots_ = nullptr, *children_ = nullptr;
  std::vector<uint32_t> short_;
  uint32_t mask_ = 0;
  int shift_ = 0;
};

}  // namespace glyd::codec
