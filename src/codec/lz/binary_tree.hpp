// binary_tree.hpp - all matches of a position, by binary trees of the strings seen, one for each hash of four bytes.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "base/aligned_buffer.hpp"
#include "base/bytes.hpp"
#include "codec/kernels/basics.hpp"

namespace glyd::codec {

struct Match {
  uint32_t length, offset;
  uint32_t behind;  // what follows it at the same offset; not the tree's
};

// A walk down a tree waits for memory at every string. Trees do not touch each other, so several walks take turns, and
// what one will look at next arrives while the others go on; a position waits for an earlier one of the same tree, so
// all find what they would have found one after another.
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
    // Children must not be taken by a position while walks of those before it go on.
    reach_ = unit.size() <= mask_ ? mask_ : mask_ - kRing;
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

  // Puts the positions from `begin` to `end` in and gives the matches of each, in order, to take(position, matches,
  // count): longer and longer, none past `end`; at most `depth` strings are looked at for each. Strings are ordered by
  // their first kCompared bytes, whatever `end` is: else a string that was equal up to one end would stand between
  // others that it does not belong to, and lengths taken from the bounds would be wrong.
  template <class Take>
  void insert(uint32_t begin, uint32_t end, uint32_t depth, const Take& take) {
    uint32_t next = begin, taken = begin;
    for (Walk& w : walks_) w.depth = 0;
    in_hand_.fill(0);  // an exception may have left some
    while (taken < end) {
      for (Walk& w : walks_) {
        if (w.depth != 0) {
          if (step(w)) continue;
          finish(w);
        }
        while (next < end && next - taken < kRing) {
          const Start started = enter(next, depth, w);
          if (started == Start::kWait) break;
          ++next;
          if (started == Start::kWalks) break;
        }
      }
      for (; taken < next && counts_[taken % kRing] != kBusy; ++taken) {
        Match* const matches = found_[taken % kRing].data();
        const uint8_t* const here = unit_.data() + taken;
        take(taken, matches, fit(matches, counts_[taken % kRing], here, end - taken));
      }
    }
  }

 private:
  static constexpr uint32_t kNone = ~0u, kBusy = ~0u;
  static constexpr int kShortLog = 15;
  static constexpr uint32_t kShortReach = 1 << 15;  // a match of three pays only with a near offset
  static constexpr uint32_t kWalks = 8;             // at a time
  static constexpr uint32_t kRing = 32;  // positions from the first that is not done to the last that was begun
  static constexpr uint32_t kAhead = 16, kInHand = 1024;

  struct Walk {
    const uint8_t* here;
    Match* matches;
    uint32_t* link[2];   // what is more, what is less goes here
    uint32_t common[2];  // prefixes with the strings that bound the subtree: more, less
    uint32_t position, candidate, room, depth, best, count;
  };
  enum class Start { kWalks, kDone, kWait };

  uint32_t root_of(uint32_t word) const { return (word * 2654435761u) >> shift_; }
  uint8_t& in_hand(uint32_t root) { return in_hand_[root % kInHand]; }

  Start enter(uint32_t position, uint32_t depth, Walk& w) {
    const uint8_t* const base = unit_.data();
    const uint8_t* const here = base + position;
    const uint32_t left = static_cast<uint32_t>(unit_.size()) - position;
    uint32_t& count = counts_[position % kRing];
    if (left < 4) {
      count = 0;
      return Start::kDone;
    }
    const uint32_t word = load32(here), tree = root_of(word);
    if (in_hand(tree) != 0) return Start::kWait;
    if (left > kAhead + 4) __builtin_prefetch(&roots_[root_of(load32(here + kAhead))]);
    uint32_t* const pair = &children_[2 * size_t{position & mask_}];
    Match* const matches = found_[position % kRing].data();
    const uint32_t room = std::min(left, kCompared), candidate = roots_[tree];
    uint32_t best = 2, found = 0;
    uint32_t& near = short_[((word << 8) * 506832829u) >> (32 - kShortLog)];
    if (near != kNone && position - near < kShortReach && ((load32(base + near) ^ word) & 0xffffff) == 0) {
      best = static_cast<uint32_t>(match_length(here, base + near, here + room));
      matches[found++] = {best, position - near, 0};
    }
    near = position;
    roots_[tree] = position;
    if (candidate == kNone || position - candidate > reach_) {
      pair[0] = pair[1] = kNone;
      count = found;
      return Start::kDone;
    }
    w.here = here;
    w.matches = matches;
    w.link[0] = pair + 1;
    w.link[1] = pair;
    w.common[0] = w.common[1] = 0;
    w.position = position;
    w.candidate = candidate;
    w.room = room;
    w.depth = depth;
    w.best = best;
    w.count = found;
    fetch(candidate, 0);
    in_hand(tree) = 1;
    count = kBusy;
    return Start::kWalks;
  }

  void fetch(uint32_t candidate, uint32_t common) const {
    __builtin_prefetch(&children_[2 * size_t{candidate & mask_}]);
    __builtin_prefetch(unit_.data() + candidate + common);
  }

  // Compares one string; whether there is another.
  bool step(Walk& w) {
    const uint32_t candidate = w.candidate, position = w.position, room = w.room;
    uint32_t* const pair = &children_[2 * size_t{candidate & mask_}];
    const uint8_t *const here = w.here, *const there = unit_.data() + candidate;
    uint32_t length = std::min(w.common[0], w.common[1]);
    length += static_cast<uint32_t>(match_length(here + length, there + length, here + room));
    const uint32_t best = w.best, count = w.count;
    w.matches[count] = {length, position - candidate, 0};  // counts if it is longer
    const bool longer = (length > best) & (count < kMostMatches);
    w.best = longer ? length : best;
    w.count = count + longer;
    if (length == room) {
      // Equal: takes its place. At the unit's end, where less is compared, the order below it is unknown.
      *w.link[1] = room == kCompared ? pair[0] : kNone;
      *w.link[0] = room == kCompared ? pair[1] : kNone;
      return false;
    }
    const size_t less = there[length] < here[length];
    const uint32_t next = pair[less];
    *w.link[less] = candidate;
    w.link[less] = pair + less;
    w.common[less] = length;
    w.candidate = next;
    if (next == kNone || position - next > reach_ || --w.depth == 0) {
      *w.link[0] = *w.link[1] = kNone;
      return false;
    }
    fetch(next, std::min(w.common[0], w.common[1]));
    return true;
  }

  void finish(Walk& w) {
    w.depth = 0;
    counts_[w.position % kRing] = w.count;
    in_hand(root_of(load32(w.here))) = 0;
  }

  // Lengthens a last match that was compared as far as it is, and cuts all at `most`.
  static uint32_t fit(Match* matches, uint32_t count, const uint8_t* here, uint32_t most) {
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

  ByteSpan unit_;
  AlignedBuffer root_buffer_, child_buffer_;
  uint32_t *roots_ = nullptr, *children_ = nullptr;
  std::vector<uint32_t> short_;
  uint32_t mask_ = 0, reach_ = 0;
  int shift_ = 0;
  std::array<Walk, kWalks> walks_;
  std::array<uint8_t, kInHand> in_hand_{};  // by root: one of its tree's positions is walking
  std::array<std::array<Match, kMostMatches + 1>, kRing> found_;
  std::array<uint32_t, kRing> counts_;
};

}  // namespace glyd::codec
