// reference_fast.cpp - layout `fast`: 3-bit window codes. Section numbers are those of docs/spec/weights.md.
#include <bit>

#include "reference_pack.hpp"

namespace glyd_reference {
namespace {

constexpr unsigned kWindowUpper = 15;  // u of the exponents in the window

// 4.2: sign, code and mantissa of every weight of a chunk, out of its two planes.
class FastChunk {
 public:
  FastChunk(Bytes bytes, std::uint64_t steps)
      : steps_(steps),
        low_(bytes.first(FastSizes::chunk_low(steps))),
        high_(bytes.subspan(FastSizes::chunk_low(steps))) {
    for (unsigned lane = 0; lane < 32; ++lane) read_high_words(lane);
  }

  // 4.3: the place of a weight, which is its offset in the low plane of a full chunk.
  static unsigned place(std::uint64_t step, unsigned lane, unsigned j) {
    return static_cast<unsigned>(step / 2 * 512 + lane * 16 + step % 2 * 8 + j);
  }
  std::uint8_t low(std::uint64_t step, unsigned lane, unsigned j) const {
    const bool lone = step % 2 == 0 && step + 1 == steps_;
    return low_[lone ? step / 2 * 512 + lane * 8 + j : place(step, lane, j)];
  }
  std::uint8_t high(std::uint64_t step, unsigned lane, unsigned j) const {
    return static_cast<std::uint8_t>(words_[lane][2 * step + j / 4] >> (8 * (j % 4)));
  }

 private:
  void read_high_words(unsigned lane) {
    constexpr std::uint32_t kMask = 0x83838383;
    std::uint32_t x[3] = {0, 0, 0};
    for (std::uint64_t i = 0; i < std::min<std::uint64_t>(steps_, 3); ++i) x[i] = load32(high_, i * 128 + lane * 4);
    auto& h = words_[lane];
    for (unsigned i = 0; i < 3; ++i) {
      h[2 * i] = x[i] & kMask;
      h[2 * i + 1] = std::rotr(x[i], 3) & kMask;
    }
    const std::uint32_t t = (x[0] & 0x60606060) | (x[1] >> 2 & 0x18181818) | (x[2] >> 4 & 0x06060606);
    h[6] = std::rotr(t, 5) & kMask;
    h[7] = std::rotr(t, 2) & kMask;
    for (std::uint64_t i = 2 * steps_; i < 8; ++i)
      require(h[i] == 0, "fast: high plane has bits of a step that is not there");
  }

  std::uint64_t steps_;
  Bytes low_, high_;
  std::array<std::array<std::uint32_t, 8>, 32> words_{};
};

constexpr std::array<std::uint8_t, 4> kClasses{14, 13, 16, 0};  // u by an entry's class

// The upper parts of one record's weights by [chunk][place], and where each weight's patch stands.
class FastPatches {
 public:
  enum class Where : std::uint8_t { kNone, kSlot, kGroup };

  FastPatches() {
    for (auto& chunk : upper_) chunk.fill(kWindowUpper);
  }
  void set(unsigned chunk, unsigned place, unsigned u, Where where) {
    require(where_[chunk][place] == Where::kNone, "fast: a weight has two patches");
    where_[chunk][place] = where;
    upper_[chunk][place] = static_cast<std::uint8_t>(u);
  }
  unsigned upper(unsigned chunk, unsigned place) const { return upper_[chunk][place]; }
  bool patched(unsigned chunk, unsigned place) const { return where_[chunk][place] != Where::kNone; }

  // 4.4: the one way in which the patches are split between slot and group.
  void check_split(std::uint64_t slot_bytes) const {
    std::uint64_t all = 0;
    std::uint64_t classed[2] = {0, 0};
    each([&](unsigned chunk, bool has_class, Where) {
      ++all;
      classed[chunk] += has_class;
    });
    if (all == 0) return;
    require(slot_bytes >= 16, "fast: a patch, but no slots");
    std::uint64_t room = (slot_bytes - 2) * 8 / 12;
    const bool all_fit =
        classed[0] + classed[1] == all && all <= room && classed[0] <= kMostInChunk && classed[1] <= kMostInChunk;
    if (!all_fit) room = (slot_bytes - 6) * 8 / 12;
    std::uint64_t taken[2] = {0, 0};
    each([&](unsigned chunk, bool has_class, Where where) {
      const bool in_slot = has_class && taken[0] + taken[1] < room && taken[chunk] < kMostInChunk;
      taken[chunk] += in_slot;
      require(where == (in_slot ? Where::kSlot : Where::kGroup), "fast: patches are split otherwise than they must be");
    });
  }

 private:
  static constexpr std::uint64_t kMostInChunk = 127;

  // visit(chunk, whether u has a class, where) for every patch, in the order of (chunk, place).
  template <typename Visit>
  void each(Visit visit) const {
    for (unsigned chunk = 0; chunk < 2; ++chunk) {
      for (unsigned place = 0; place < 1024; ++place) {
        if (!patched(chunk, place)) continue;
        const bool has_class = std::find(kClasses.begin(), kClasses.end(), upper_[chunk][place]) != kClasses.end();
        visit(chunk, has_class, where_[chunk][place]);
      }
    }
  }

  std::array<std::array<std::uint8_t, 1024>, 2> upper_;
  std::array<std::array<Where, 1024>, 2> where_{};
};

// 4.3: one slot. Returns whether the record has an overflow group, and its place.
struct FastGroup {
  bool present = false;
  std::uint64_t word = 0;
};
FastGroup read_slot(Bytes slot, FastPatches& patches) {
  if (slot.empty()) return {};
  const unsigned counts[2] = {slot[0] & 127u, slot[1] & 127u};
  FastGroup group{(slot[0] & 128) != 0, 0};
  require((slot[1] & 128) == 0, "fast: slot byte 1 has bit 7 set");
  const std::uint64_t entries_end = slot.size() - (group.present ? 4 : 0);
  const std::uint64_t used_bits = 16 + 12 * std::uint64_t{counts[0] + counts[1]};
  require(used_bits <= 8 * entries_end, "fast: slot has more entries than room");
  for (std::uint64_t bit = used_bits; bit < 8 * entries_end; ++bit) {
    require(!bit_at(slot, bit), "fast: unused bits of a slot are not zero");
  }
  std::uint64_t at = 16;
  for (unsigned chunk = 0; chunk < 2; ++chunk) {
    unsigned next_place = 0;
    for (unsigned i = 0; i < counts[chunk]; ++i, at += 12) {
      unsigned entry = 0;
      for (unsigned bit = 0; bit < 12; ++bit) entry |= unsigned{bit_at(slot, at + bit)} << bit;
      const unsigned place = entry & 1023;
      require(place >= next_place, "fast: slot entries do not ascend");
      next_place = place + 1;
      patches.set(chunk, place, kClasses[entry >> 10], FastPatches::Where::kSlot);
    }
  }
  if (group.present) group.word = load32(slot, slot.size() - 4);
  return group;
}

// 4.4: one overflow group; returns the word behind it.
std::uint64_t read_group(Bytes overflow, std::uint64_t word, FastPatches& patches) {
  require(word < overflow.size() / 4, "fast: overflow group begins past its array");
  const std::uint64_t count = load32(overflow, 4 * word++);
  require(count >= 1, "fast: overflow group without entries");
  require(count <= overflow.size() / 4 - word, "fast: overflow group ends past its array");
  unsigned next = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint32_t entry = load32(overflow, 4 * word++);
    const unsigned key = entry & 2047, u = entry >> 16 & 31;
    require((entry & 0xffe0f800) == 0, "fast: overflow entry has unused bits set");
    require(u != kWindowUpper, "fast: overflow entry gives the window's own upper part");
    require(key >= next, "fast: overflow entries do not ascend");
    next = key + 1;
    patches.set(key >> 10, key & 1023, u, FastPatches::Where::kGroup);
  }
  return word;
}

class FastDecoder {
 public:
  FastDecoder(const Header& header, Bytes pack, std::vector<std::uint16_t>& out)
      : header_(header),
        grid_(grid_of(header)),
        shift_(static_cast<int>(header.base) - 120),
        planes_(array_of(header, pack, 0)),
        patches_(array_of(header, pack, 1)),
        overflow_(array_of(header, pack, 2)),
        out_(out) {}

  void run() {
    const std::uint64_t steps = grid_.steps();
    for (std::uint64_t strip = 0; strip < grid_.strips(); ++strip) {
      for (std::uint64_t first = 0; first < steps; first += 8)
        record(strip, first, std::min<std::uint64_t>(8, steps - first));
    }
    require(4 * group_word_ == overflow_.size(), "fast: overflow array has bytes behind its last group");
    require(fusible_ == header_.fusible, "fast: flag `fusible` does not agree with the values");
  }

 private:
  Bytes take(Bytes& from, std::uint64_t count) {
    const Bytes taken = from.first(count);  // 2: the arrays' sizes have been checked
    from = from.subspan(count);
    return taken;
  }

  void record(std::uint64_t strip, std::uint64_t first, std::uint64_t steps) {
    FastPatches patches;
    const std::uint64_t slot_bytes = FastSizes::slot(header_.slot_bytes, steps);
    const FastGroup group = read_slot(take(patches_, slot_bytes), patches);
    if (group.present) {
      require(group.word == group_word_, "fast: overflow group is not at its place");
      group_word_ = read_group(overflow_, group_word_, patches);
    }
    patches.check_split(slot_bytes);
    for (unsigned number = 0; number < 2; ++number) {
      const std::uint64_t in_chunk = number == 0 ? std::min<std::uint64_t>(steps, 4) : (steps > 4 ? steps - 4 : 0);
      const FastChunk chunk(take(planes_, FastSizes::chunk(in_chunk)), in_chunk);
      for (std::uint64_t step = 0; step < 4; ++step) {
        for (unsigned lane = 0; lane < 32; ++lane) {
          for (unsigned j = 0; j < 8; ++j) {
            const unsigned place = FastChunk::place(step, lane, j);
            if (step < in_chunk) {
              weight(grid_.place(strip, first + 4 * number + step, lane, j), chunk.low(step, lane, j),
                     chunk.high(step, lane, j), patches.upper(number, place), patches.patched(number, place));
            } else {
              require(!patches.patched(number, place), "fast: patch of a step that is not there");
            }
          }
        }
      }
    }
  }

  void weight(Grid::Place place, unsigned low, unsigned high, unsigned upper, bool patched) {
    if (place.padding) {  // 4.5
      require(low == 0 && high == 0, "fast: padding is not zero");
      require(!patched, "fast: patch of a padding weight");
      return;
    }
    const unsigned sign = high >> 7, code = (high & 3) << 1 | low >> 7, mantissa = low & 127;
    const int shifted = static_cast<int>(8 * upper + code);
    int exponent = shifted;
    if (shifted != 0 && shifted != 255) exponent = 1 + ((shifted - 1 + shift_) % 254 + 254) % 254;  // 4.1 the other way
    if (exponent >= 1 && exponent <= 254 && (exponent - shift_ < 1 || exponent - shift_ > 254)) fusible_ = false;
    if (exponent == 0 && mantissa != 0) fusible_ = false;
    out_[place.index] = join(sign, static_cast<unsigned>(exponent), mantissa);
  }

  const Header& header_;
  Grid grid_;
  int shift_;
  Bytes planes_, patches_, overflow_;
  std::vector<std::uint16_t>& out_;
  std::uint64_t group_word_ = 0;
  bool fusible_ = true;
};

}  // namespace

void decode_fast(const Header& header, Bytes pack, std::vector<std::uint16_t>& out) {
  FastDecoder(header, pack, out).run();
}

}  // namespace glyd_reference
