// match_optimal.cpp - the cheapest way through a block: all matches of every position are found, then the shortest path
// over them, chunk by chunk with the prices that the chunks before leave.
#include <algorithm>
#include <array>

#include "codec/lz/binary_tree.hpp"
#include "codec/lz/match_finder.hpp"
#include "codec/lz/prices.hpp"

namespace glyd::codec {
namespace {

constexpr int kDepth = 40;                  // strings looked at for each position
constexpr uint32_t kChunkBytes = 64 << 10;  // prices are learned anew from each
constexpr int kFirstPasses = 4;             // over a unit's first chunk, which knows no prices
constexpr int kPasses = 2;                  // over others
constexpr uint32_t kEnough = 256;           // inside such a match, no others are looked for
constexpr uint32_t kEveryLength = 40;       // lengths of a match that are tried: all up to here,
constexpr uint32_t kTail = 32;              // and all from so much below the whole on
constexpr uint32_t kMostGap = 12;           // literals between a match and one with the same offset, seen as one step
constexpr uint32_t kGapMatches = 6;         // of new offsets, so many longest matches are looked behind
constexpr uint32_t kKnown = 64;             // matches of repeated offsets that are remembered
constexpr uint32_t kUnreached = UINT32_MAX;

// How a position is reached most cheaply: by a literal if `length` is 0, else by a match; or by a match of `before`, a
// gap of literals and a match, of the same offset.
struct Step {
  uint32_t length, offset, before, gap;
};

// What is known at a position on the cheapest way to it.
struct State {
  uint32_t run;  // literals since the last match
  uint32_t recent[3];
};

// What follows a match that ends at `end`, by the same offset after a few literals: 0, or the gap's length and the
// other match's times 16.
uint32_t look_behind(const uint8_t* end, uint32_t offset, const uint8_t* stop) {
  for (uint32_t gap = 1; gap <= kMostGap && stop - end >= static_cast<ptrdiff_t>(gap) + 4; ++gap) {
    const uint8_t* const here = end + gap;
    if (load16(here) == load16(here - offset))
      return gap | static_cast<uint32_t>(match_length(here, here - offset, stop)) << 4;
  }
  return 0;
}

// A match of a repeated offset that was found at a position before: where it ends is known.
struct Known {
  uint32_t offset, end, behind;
};

class OptimalFinder final : public MatchFinder {
 public:
  void start(ByteSpan unit) override;
  std::span<const Sequence> find(size_t begin, size_t end) override;

 private:
  void collect(uint32_t begin, uint32_t end);
  void start_chunk(uint32_t begin, uint32_t end, const State& before);
  void relax(uint32_t begin, uint32_t end, const uint32_t* first_match, const State& before);
  void enter(uint32_t at);
  void relax_match(uint32_t from, uint32_t kind, uint32_t offset, uint32_t least, uint32_t length, uint32_t behind);
  void trace(uint32_t bytes, Sequences& sequences) const;

  ByteSpan unit_;
  BinaryTree tree_;
  Prices prices_;
  std::vector<Match> matches_;
  std::vector<uint32_t> first_match_;  // of each position of the block, and one past
  // The block in hand.
  const uint8_t* raw_ = nullptr;
  uint32_t bytes_ = 0;
  std::vector<uint32_t> price_;      // of the way to each position, and of the run it ends with
  std::vector<uint32_t> literals_;   // the price of all before each position
  std::array<Known, kKnown> known_;  // by offset
  std::vector<Step> step_;
  std::vector<State> state_;
  Sequences found_;
};

void OptimalFinder::start(ByteSpan unit) {
  unit_ = unit;
  tree_.start(unit);
  prices_.reset();
}

void OptimalFinder::collect(uint32_t begin, uint32_t end) {
  matches_.clear();
  first_match_.resize(end - begin + 1);
  uint32_t skip_until = begin;
  tree_.insert(begin, end, kDepth, [&](uint32_t at, const Match* found, uint32_t count) {
    first_match_[at - begin] = static_cast<uint32_t>(matches_.size());
    if (at < skip_until || count == 0) return;
    matches_.insert(matches_.end(), found, found + count);
    const uint8_t* const block_end = unit_.data() + end;
    for (uint32_t m = count - std::min(count, kGapMatches); m < count; ++m) {
      const uint8_t* const match_end = unit_.data() + at + found[m].length;
      matches_[matches_.size() - count + m].behind = look_behind(match_end, found[m].offset, block_end);
    }
    if (found[count - 1].length >= kEnough) skip_until = at + found[count - 1].length - kTail;
  });
  first_match_[end - begin] = static_cast<uint32_t>(matches_.size());
}

// The state at a position, from where its step begins.
void OptimalFinder::enter(uint32_t at) {
  State& to = state_[at];
  const Step& step = step_[at];
  if (step.length == 0) {
    to = state_[at - 1];
    ++to.run;
    return;
  }
  const State& from = state_[at - step.length - step.gap - step.before];
  const bool first = step.offset == from.recent[0], second = step.offset == from.recent[1];
  to = {0, {step.offset, first ? from.recent[1] : from.recent[0], first || second ? from.recent[2] : from.recent[1]}};
}

// Matches of lengths from `least` to `length` from `from`, and the way on `behind` the last.
void OptimalFinder::relax_match(uint32_t from, uint32_t kind, uint32_t offset, uint32_t least, uint32_t length,
                                uint32_t behind) {
  const uint32_t run = state_[from].run;
  const uint32_t fixed =
      price_[from] - prices_.run(run) + prices_.run(0) + (kind == kTokenNew ? prices_.offset(offset) : 0);
  const uint32_t start = fixed + prices_.match_run(run);
  const uint32_t* const by_length = prices_.matches(kind, run);
  uint32_t* const price = price_.data() + from;
  Step* const step = step_.data() + from;
  const auto reach = [&](uint32_t l, uint32_t cost) {
    if (cost >= price[l]) return;
    price[l] = cost;
    step[l] = {l, offset, 0, 0};
  };
  const uint32_t all = std::min(length, kEveryLength);
  for (uint32_t l = least; l <= all; ++l) reach(l, start + by_length[l]);
  for (uint32_t l = std::max({least, kEveryLength + 1, length > kTail ? length - kTail : 0}); l <= length; ++l)
    reach(l, start + (l < Prices::kTabled ? by_length[l] : prices_.match(kind, run, l)));
  if (behind == 0) return;
  // The block's end may be nearer than the end that what lies behind was sought to.
  const uint32_t end = from + length, gap = behind & 15;
  if (end + gap + 4 > bytes_) return;
  const uint32_t more = std::min(behind >> 4, bytes_ - end - gap), to = end + gap + more;
  const uint32_t whole = length < Prices::kTabled ? by_length[length] : prices_.match(kind, run, length);
  const uint32_t cost =
      start + whole + literals_[end + gap] - literals_[end] + prices_.match_run(gap) + prices_.match(0, gap, more);
  if (cost >= price_[to]) return;
  price_[to] = cost;
  step_[to] = {more, offset, length, gap};
}

void OptimalFinder::start_chunk(uint32_t begin, uint32_t end, const State& before) {
  bytes_ = end - begin;
  raw_ = unit_.data() + begin;
  price_.assign(bytes_ + 1, kUnreached);
  step_.resize(bytes_ + 1);
  state_.resize(bytes_ + 1);
  state_[0] = before;
  price_[0] = prices_.run(before.run);
  literals_.resize(bytes_ + 1);
  literals_[0] = 0;
  for (uint32_t i = 0; i < bytes_; ++i) literals_[i + 1] = literals_[i] + prices_.literal(raw_[i]);
  known_.fill({});
}

void OptimalFinder::relax(uint32_t begin, uint32_t end, const uint32_t* first_match, const State& before) {
  start_chunk(begin, end, before);
  for (uint32_t i = 0; i < bytes_; ++i) {
    if (price_[i] == kUnreached) continue;  // inside a long match
    if (i != 0) enter(i);
    const State& state = state_[i];
    const uint32_t price = price_[i] - prices_.run(state.run) + prices_.run(state.run + 1) + prices_.literal(raw_[i]);
    if (price < price_[i + 1]) {
      price_[i + 1] = price;
      step_[i + 1] = {0, 0, 0, 0};
    }
    uint32_t longest = 0;
    for (uint32_t kind = 0; kind < 3 && bytes_ - i >= 4; ++kind) {
      const uint32_t offset = state.recent[kind];
      if (offset > begin + i || load16(raw_ + i) != load16(raw_ + i - offset)) continue;
      Known& known = known_[offset % kKnown];
      if (known.offset != offset || known.end <= i) {
        const auto length = static_cast<uint32_t>(match_length(raw_ + i, raw_ + i - offset, raw_ + bytes_));
        known = {offset, i + length, look_behind(raw_ + i + length, offset, raw_ + bytes_)};
      }
      const uint32_t length = known.end - i;
      relax_match(i, kind, offset, kMinRepeatLength, length, known.behind);
      longest = std::max(longest, length);
    }
    if (longest >= kEnough) {
      // Nothing found inside can matter much: go on near its end.
      const uint32_t target = i + longest - kTail;
      std::fill(price_.begin() + i + 1, price_.begin() + target, kUnreached);
      i = target - 1;
      continue;
    }
    uint32_t least = kMinNewLength;
    for (uint32_t m = first_match[i]; m < first_match[i + 1] && least <= bytes_ - i; ++m) {
      const uint32_t length = std::min(matches_[m].length, bytes_ - i);
      relax_match(i, kTokenNew, matches_[m].offset, least, length,
                  length == matches_[m].length ? matches_[m].behind : 0);
      least = length + 1;
    }
  }
  enter(bytes_);
}

void OptimalFinder::trace(uint32_t bytes, Sequences& sequences) const {
  const auto earlier = static_cast<ptrdiff_t>(sequences.size());
  for (uint32_t at = bytes; at > 0;) {
    const Step& step = step_[at];
    if (step.length == 0) {
      --at;
      continue;
    }
    at -= step.length;
    uint32_t length = step.length;
    if (step.before != 0) {
      sequences.push_back({step.gap, length, step.offset});
      length = step.before;
      at -= step.gap + length;
    }
    sequences.push_back({state_[at].run, length, step.offset});
  }
  std::reverse(sequences.begin() + earlier, sequences.end());
}

std::span<const Sequence> OptimalFinder::find(size_t begin, size_t end) {
  Sequences& sequences = found_;
  sequences.clear();
  if (end - begin < 16) return {};
  const auto from = static_cast<uint32_t>(begin), to = static_cast<uint32_t>(end);
  collect(from, to);
  State state{0, {kFirstOffsets[0], kFirstOffsets[1], kFirstOffsets[2]}};
  for (uint32_t chunk = from; chunk < to;) {
    const uint32_t chunk_end = to - chunk < 2 * kChunkBytes ? to : chunk + kChunkBytes;
    const size_t earlier = sequences.size();
    for (int pass = chunk == 0 ? kFirstPasses : kPasses; pass > 0; --pass) {
      sequences.resize(earlier);
      relax(chunk, chunk_end, first_match_.data() + (chunk - from), state);
      trace(chunk_end - chunk, sequences);
      prices_.learn(unit_.data() + chunk - state.run, std::span(sequences).subspan(earlier), state.recent);
    }
    state = state_[chunk_end - chunk];
    chunk = chunk_end;
  }
  return sequences;
}

}  // namespace

std::unique_ptr<MatchFinder> make_optimal_finder() { return std::make_unique<OptimalFinder>(); }

}  // namespace glyd::codec
