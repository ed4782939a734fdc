// match_optimal.cpp - the cheapest way through a block: all matches of every position are found once, then two passes
// of dynamic programming over them, the second with the prices that the first one's result gives.
#include <algorithm>

#include "codec/lz/binary_tree.hpp"
#include "codec/lz/match_finder.hpp"
#include "codec/lz/prices.hpp"

namespace glyd::codec {
namespace {

constexpr int kDepth = 96;
constexpr int kSkippedDepth = 8;       // positions inside a match of kEnough bytes are only put into the tree
constexpr uint32_t kEnough = 256;      // such a match is taken without looking further
constexpr uint32_t kEveryLength = 40;  // shorter lengths of a match are all tried up to here

struct Node {
  uint32_t price;           // of the way here and of the run it ends with
  uint32_t length, offset;  // how it is reached: a match, or a literal if length is 0
  uint32_t run;             // literals since the last match
  uint32_t recent[3];
};

class OptimalFinder final : public MatchFinder {
 public:
  void start(ByteSpan unit) override;
  void find(size_t begin, size_t end, Sequences& sequences) override;

 private:
  void collect(uint32_t begin, uint32_t end);
  void relax(uint32_t begin, uint32_t end);
  void relax_match(uint32_t from, uint32_t kind, uint32_t offset, uint32_t least, uint32_t length);
  void trace(uint32_t bytes, Sequences& sequences) const;

  ByteSpan unit_;
  BinaryTree tree_;
  Prices prices_;
  std::vector<Match> matches_;
  std::vector<uint32_t> first_match_;  // of each position of the block, and one past
  std::vector<Node> nodes_;
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
  for (uint32_t at = begin; at < end; ++at) {
    first_match_[at - begin] = static_cast<uint32_t>(matches_.size());
    if (at < skip_until) {
      tree_.insert(at, end, kSkippedDepth, nullptr);
      continue;
    }
    matches_.resize(matches_.size() + BinaryTree::kMostMatches);
    Match* const found = matches_.data() + matches_.size() - BinaryTree::kMostMatches;
    const uint32_t count = tree_.insert(at, end, kDepth, found);
    matches_.resize(matches_.size() - BinaryTree::kMostMatches + count);
    if (count != 0 && matches_.back().length >= kEnough) skip_until = at + matches_.back().length;
  }
  first_match_[end - begin] = static_cast<uint32_t>(matches_.size());
}

// Matches of every length from `least` to `length` from node `from`.
void OptimalFinder::relax_match(uint32_t from, uint32_t kind, uint32_t offset, uint32_t least, uint32_t length) {
  const Node node = nodes_[from];
  const uint32_t fixed =
      node.price - prices_.run(node.run) + prices_.run(0) + (kind == kTokenNew ? prices_.offset(offset) : 0);
  const auto reach = [&](uint32_t l) {
    Node& to = nodes_[from + l];
    const uint32_t price = fixed + prices_.match(kind, node.run, l);
    if (price >= to.price) return;
    to = {price,
          l,
          offset,
          0,
          {offset, kind == 0 ? node.recent[1] : node.recent[0], kind <= 1 ? node.recent[2] : node.recent[1]}};
  };
  for (uint32_t l = least; l <= std::min(length, kEveryLength); ++l) reach(l);
  if (length > kEveryLength) reach(length);
}

void OptimalFinder::relax(uint32_t begin, uint32_t end) {
  const uint32_t bytes = end - begin;
  const uint8_t* const raw = unit_.data() + begin;
  nodes_.resize(bytes + 1);
  for (Node& node : nodes_) node.price = UINT32_MAX;
  nodes_[0] = {prices_.run(0), 0, 0, 0, {kFirstOffsets[0], kFirstOffsets[1], kFirstOffsets[2]}};
  for (uint32_t i = 0; i < bytes; ++i) {
    const Node& node = nodes_[i];
    if (node.price == UINT32_MAX) continue;  // inside a long match
    Node& next = nodes_[i + 1];
    const uint32_t price = node.price - prices_.run(node.run) + prices_.run(node.run + 1) + prices_.literal(raw[i]);
    if (price < next.price) {
      next = {price, 0, 0, node.run + 1, {node.recent[0], node.recent[1], node.recent[2]}};
    }
    uint32_t longest = 0;
    for (uint32_t kind = 0; kind < 3 && bytes - i >= 4; ++kind) {
      const uint32_t offset = nodes_[i].recent[kind];
      if (offset > begin + i || load16(raw + i) != load16(raw + i - offset)) continue;
      const auto length = static_cast<uint32_t>(match_length(raw + i, raw + i - offset, raw + bytes));
      relax_match(i, kind, offset, kMinRepeatLength, length);
      longest = std::max(longest, length);
    }
    if (longest >= kEnough) {
      // Nothing found inside can matter much: go on where it ends, unless a cheaper way passes it.
      const uint32_t target = i + longest;
      for (uint32_t k = i + 1; k < target; ++k) nodes_[k].price = UINT32_MAX;
      i = target - 1;
      continue;
    }
    uint32_t least = kMinNewLength;
    for (uint32_t m = first_match_[i]; m < first_match_[i + 1]; ++m) {
      relax_match(i, kTokenNew, matches_[m].offset, least, matches_[m].length);
      least = matches_[m].length + 1;
    }
  }
}

void OptimalFinder::trace(uint32_t bytes, Sequences& sequences) const {
  sequences.clear();
  for (uint32_t at = bytes; at > 0;) {
    const Node& node = nodes_[at];
    if (node.length == 0) {
      --at;
      continue;
    }
    at -= node.length;
    sequences.push_back({nodes_[at].run, node.length, node.offset});
  }
  std::reverse(sequences.begin(), sequences.end());
}

void OptimalFinder::find(size_t begin, size_t end, Sequences& sequences) {
  sequences.clear();
  if (end - begin < 16) return;
  const auto from = static_cast<uint32_t>(begin), to = static_cast<uint32_t>(end);
  collect(from, to);
  for (int pass = 0; pass < 2; ++pass) {
    relax(from, to);
    trace(to - from, sequences);
    prices_.learn(unit_.data() + begin, end - begin, sequences);
  }
}

}  // namespace

std::unique_ptr<MatchFinder> make_optimal_finder() { return std::make_unique<OptimalFinder>(); }

}  // namespace glyd::codec
