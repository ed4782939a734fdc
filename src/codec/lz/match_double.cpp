// match_double.cpp - two hash tables, of eight and of five bytes, one candidate each: the long one is taken where it
// matches.
#include <algorithm>
#include <vector>

#include "codec/format.hpp"
#include "codec/kernels/basics.hpp"
#include "codec/lz/match_finder.hpp"

namespace glyd::codec {
namespace {

constexpr int kLongLog = 18, kShortLog = 17;  // 1 MiB and 512 KiB
constexpr uint64_t kPrime = 0x9e3779b185ebca87u;
constexpr int kStepShift = 8;  // one position more is skipped for every 256 bytes without a match

class DoubleFinder final : public MatchFinder {
 public:
  void start(ByteSpan unit) override;
  void find(size_t begin, size_t end, Sequences& sequences) override;

 private:
  ByteSpan unit_;
  std::vector<uint32_t> long_, short_;
  Sequences found_;  // room for all that a block can have
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

// A match of four or five bytes must be near: its offset costs what it saves.
inline bool pays(size_t length, size_t offset) { return length >= 6 || offset < (length == 5 ? 1u << 18 : 1u << 12); }

void DoubleFinder::find(size_t begin, size_t end, Sequences& sequences) {
  sequences.clear();
  if (end - begin < 16) return;
  const uint8_t* const base = unit_.data();
  const uint8_t* const stop = base + end;
  const uint8_t* const limit = stop - 9;  // eight bytes at ip + 1 lie in the block
  const uint8_t* anchor = base + begin;
  const uint8_t* ip = anchor + (begin == 0);
  // The stores below could change members for all that the compiler knows: it keeps locals in registers.
  uint32_t *const long_table = long_.data(), *const short_table = short_.data();
  const int long_shift = long_shift_, short_shift = short_shift_;
  const auto long_at = [=](uint64_t word) -> uint32_t& { return long_table[(word * kPrime) >> long_shift]; };
  const auto short_at = [=](uint64_t word) -> uint32_t& { return short_table[((word << 24) * kPrime) >> short_shift]; };
  const auto insert = [=](const uint8_t* p) {
    const uint64_t word = load64(p);
    long_at(word) = short_at(word) = static_cast<uint32_t>(p - base);
  };
  if (found_.size() < (end - begin) / 4 + 1) found_.resize((end - begin) / 4 + 1);
  Sequence* out = found_.data();
  uint32_t rep0 = kFirstOffsets[0], rep1 = kFirstOffsets[1];
  const auto repeats = [&](const uint8_t* p, uint32_t offset) {
    return offset <= static_cast<size_t>(p - base) && load32(p) == load32(p - offset);
  };
  while (ip <= limit) {
    const uint64_t word = load64(ip);
    uint32_t &long_slot = long_at(word), &short_slot = short_at(word);
    const uint8_t* from = base + long_slot;
    const uint8_t* const near = base + short_slot;
    const auto position = static_cast<uint32_t>(ip - base);
    long_slot = short_slot = position;
    const uint8_t* const looked_at = ip;
    size_t length = 0;
    uint32_t offset = rep0;
    if (repeats(ip + 1, rep0)) {
      ++ip;
      length = 4 + match_length(ip + 4, ip + 4 - offset, stop);
    } else {
      if (load64(from) == word && from < ip) {
        length = 8 + match_length(ip + 8, from + 8, stop);
      } else if (load32(near) == static_cast<uint32_t>(word) && near < ip) {
        const uint64_t next = load64(ip + 1);
        uint32_t& next_slot = long_at(next);
        const uint8_t* const after = base + next_slot;
        next_slot = position + 1;
        if (load64(after) == next && after <= ip) {
          ++ip;
          from = after;
          length = 8 + match_length(ip + 8, from + 8, stop);
        } else {
          from = near;
          length = 4 + match_length(ip + 4, from + 4, stop);
        }
      }
      if (length != 0) {
        offset = static_cast<uint32_t>(ip - from);
        while (ip > anchor && from > base && ip[-1] == from[-1]) --ip, --from, ++length;
      }
      if (length == 0 || !pays(length, offset)) {
        ip = looked_at + (static_cast<size_t>(looked_at - anchor) >> kStepShift) + 1;
        continue;
      }
      rep1 = rep0;
      rep0 = offset;
    }
    *out++ = {static_cast<uint32_t>(ip - anchor), static_cast<uint32_t>(length), offset};
    const uint8_t* const matched = ip;
    ip += length;
    anchor = ip;
    if (ip > limit) break;
    insert(matched + 2);
    insert(ip - 2);
    while (ip <= limit && repeats(ip, rep1)) {
      std::swap(rep0, rep1);
      length = 4 + match_length(ip + 4, ip + 4 - rep0, stop);
      insert(ip);
      *out++ = {0, static_cast<uint32_t>(length), rep0};
      ip += length;
      anchor = ip;
    }
  }
  sequences.assign(found_.data(), out);
}

}  // namespace

std::unique_ptr<MatchFinder> make_double_finder() { return std::make_unique<DoubleFinder>(); }

}  // namespace glyd::codec
