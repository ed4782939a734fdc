// match_single.cpp - one hash table of five bytes, one candidate, offsets of at most 65,535.
#include <algorithm>
#include <vector>

#include "codec/format.hpp"
#include "codec/kernels/basics.hpp"
#include "codec/lz/match_finder.hpp"

namespace glyd::codec {
namespace {

constexpr int kHashLog = 14;  // 64 KiB: most look-ups stay near
constexpr int kStepShift = 6;

class SingleFinder final : public MatchFinder {
 public:
  void start(ByteSpan unit) override;
  void find(size_t begin, size_t end, Sequences& sequences) override;

 private:
  ByteSpan unit_;
  std::vector<uint32_t> table_;
  Sequences found_;  // room for all that a block can have
  int shift_ = 64;
};

void SingleFinder::start(ByteSpan unit) {
  unit_ = unit;
  const int log = std::min(kHashLog, std::max(10, log2_floor(static_cast<uint32_t>(unit.size()) | 1) + 1));
  table_.assign(size_t{1} << log, 0);
  shift_ = 64 - log;
}

void SingleFinder::find(size_t begin, size_t end, Sequences& sequences) {
  sequences.clear();
  const uint8_t* const base = unit_.data();
  const uint8_t* const stop = base + end;
  const uint8_t* anchor = base + begin;
  if (end - begin < 16) return;
  const uint8_t* const limit = stop - 9;
  const uint8_t* ip = anchor + (begin == 0);
  uint32_t rep = 1;
  uint32_t* const table = table_.data();
  const int shift = shift_;
  const auto hash = [=](uint64_t word) { return ((word << 24) * 0x9e3779b185ebca87u) >> shift; };
  if (found_.size() < (end - begin) / kBytesMinLength + 1) found_.resize((end - begin) / kBytesMinLength + 1);
  Sequence* out = found_.data();
  const auto position = [&](const uint8_t* p) { return static_cast<uint32_t>(p - base); };
  while (ip <= limit) {
    const uint64_t word = load64(ip);
    const size_t h = hash(word);
    const uint8_t* from = base + table[h];
    table[h] = position(ip);
    size_t length;
    uint32_t offset;
    if (load32(ip + 1) == load32(ip + 1 - rep)) {
      ++ip;
      offset = rep;
      length = 4 + match_length(ip + 4, ip + 4 - rep, stop);
    } else if (load32(from) == static_cast<uint32_t>(word) && static_cast<size_t>(ip - from) - 1 < kBytesWindow) {
      length = 4 + match_length(ip + 4, from + 4, stop);
      offset = static_cast<uint32_t>(ip - from);
      while (ip > anchor && from > base && ip[-1] == from[-1]) --ip, --from, ++length;
      rep = offset;
    } else {
      ip += (static_cast<size_t>(ip - anchor) >> kStepShift) + 1;
      continue;
    }
    *out++ = {static_cast<uint32_t>(ip - anchor), static_cast<uint32_t>(length), offset};
    ip += length;
    anchor = ip;
    if (ip > limit) break;
    table[hash(load64(ip - 2))] = position(ip - 2);
  }
  sequences.assign(found_.data(), out);
}

}  // namespace

std::unique_ptr<MatchFinder> make_single_finder() { return std::make_unique<SingleFinder>(); }

}  // namespace glyd::codec
