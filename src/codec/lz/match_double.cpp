// match_double.cpp - two hash tables, of eight and of five bytes, one candidate each: the long one is taken where it
// matches.
#include <algorithm>
#include <vector>

#include "codec/format.hpp"
#include "codec/kernels/basics.hpp"
#include "codec/lz/match_finder.hpp"

namespace glyd::codec {
namespace {

constexpr int kLongLog = 17, kShortLog = 16;  // 512 KiB and 256 KiB
constexpr int kStepShift = 8;                 // one position more is skipped for every 256 bytes without a match

class DoubleFinder final : public MatchFinder {
 public:
  void start(ByteSpan unit) override;
  void find(size_t begin, size_t end, Sequences& sequences) override;

 private:
  size_t long_hash(uint64_t word) const { return (word * 0x9e3779b185ebca87u) >> long_shift_; }
  size_t short_hash(uint64_t word) const { return ((word << 24) * 0x9e3779b185ebca87u) >> short_shift_; }
  void insert(const uint8_t* p) {
    const uint64_t word = load64(p);
    const auto position = static_cast<uint32_t>(p - unit_.data());
    long_[long_hash(word)] = position;
    short_[short_hash(word)] = position;
  }

  ByteSpan unit_;
  std::vector<uint32_t> long_, short_;
  int long_shift_ = 64, short_shift_ = 64;
};

void DoubleFinder::start(ByteSpan unit) {
  unit_ = unit;
  const int unit_log = std::max(10, log2_floor(static_cast<uint32_t>(unit.size()) | 1) + 1);
  const int long_log = std::min(kLongLog, unit_log), short_log = std::min(kShortLog, unit_log);
  long_.assign(size_t{1} << long_log, 0);
  short_.assign(size_t{1} << short_log, 0);
  long_shift_ = 64 - long_log;
  short_shift_ = 64 - short_log;
}

void DoubleFinder::find(size_t begin, size_t end, Sequences& sequences) {
  sequences.clear();
  const uint8_t* const base = unit_.data();
  const uint8_t* const stop = base + end;
  const uint8_t* anchor = base + begin;
  if (end - begin < 16) return;
  const uint8_t* const limit = stop - 9;  // eight bytes at ip + 1 lie in the block
  const uint8_t* ip = anchor + (begin == 0);
  uint32_t rep0 = kFirstOffsets[0], rep1 = kFirstOffsets[1];
  const auto reachable = [&](const uint8_t* p, uint32_t offset) { return offset <= static_cast<size_t>(p - base); };
  while (ip <= limit) {
    const uint64_t word = load64(ip);
    const size_t hl = long_hash(word), hs = short_hash(word);
    const uint8_t* from = base + long_[hl];
    const uint8_t* const near = base + short_[hs];
    const auto position = static_cast<uint32_t>(ip - base);
    long_[hl] = short_[hs] = position;
    size_t length;
    uint32_t offset;
    if (reachable(ip + 1, rep0) && load32(ip + 1) == load32(ip + 1 - rep0)) {
      ++ip;
      offset = rep0;
      length = 4 + match_length(ip + 4, ip + 4 - offset, stop);
    } else {
      if (load64(from) == word && from < ip) {
        length = 8 + match_length(ip + 8, from + 8, stop);
      } else if (load32(near) == static_cast<uint32_t>(word) && near < ip) {
        const uint64_t next = load64(ip + 1);
        const size_t hn = long_hash(next);
        const uint8_t* const after = base + long_[hn];
        long_[hn] = position + 1;
        if (load64(after) == next && after <= ip) {
          ++ip;
          from = after;
          length = 8 + match_length(ip + 8, from + 8, stop);
        } else {
          from = near;
          length = 4 + match_length(ip + 4, from + 4, stop);
        }
      } else {
        ip += (static_cast<size_t>(ip - anchor) >> kStepShift) + 1;
        continue;
      }
      offset = static_cast<uint32_t>(ip - from);
      while (ip > anchor && from > base && ip[-1] == from[-1]) --ip, --from, ++length;
      rep1 = rep0;
      rep0 = offset;
    }
    sequences.push_back({static_cast<uint32_t>(ip - anchor), static_cast<uint32_t>(length), offset});
    const uint8_t* const matched = ip;
    ip += length;
    anchor = ip;
    if (ip > limit) break;
    insert(matched + 2);
    insert(ip - 2);
    while (ip <= limit && reachable(ip, rep1) && load32(ip) == load32(ip - rep1)) {
      std::swap(rep0, rep1);
      length = 4 + match_length(ip + 4, ip + 4 - rep0, stop);
      insert(ip);
      sequences.push_back({0, static_cast<uint32_t>(length), rep0});
      ip += length;
      anchor = ip;
    }
  }
}

}  // namespace

std::unique_ptr<MatchFinder> make_double_finder() { return std::make_unique<DoubleFinder>(); }

}  // namespace glyd::codec
