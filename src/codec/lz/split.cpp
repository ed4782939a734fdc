#include "codec/lz/split.hpp"

#include <algorithm>
#include <array>

#include "codec/entropy/fixed_log2.hpp"
#include "codec/format.hpp"
#include "codec/kernels/kernels.hpp"

namespace glyd::codec {
namespace {

constexpr uint64_t kBlockBits = 80 * 8;  // headers, sizes of lanes
constexpr uint64_t kSymbolBits = 6;      // of a code's table, for each symbol that occurs

// What a block's codes would be made from.
struct Statistics {
  StreamCounts counts;

  void add(const StreamCounts& other) {
    for (size_t s = 0; s < 256; ++s) {
      counts.literals[s] += other.literals[s];
      counts.tokens[s] += other.tokens[s];
      counts.offsets[s] += other.offsets[s];
    }
  }
  uint64_t bits() const {
    std::array<uint32_t, 32> offsets{};
    for (size_t s = 0; s < 256; ++s) offsets[s >> kMaxLowBits] += counts.offsets[s];
    return kBlockBits + bits_of(counts.literals.data(), 256) + bits_of(counts.tokens.data(), 256) +
           bits_of(offsets.data(), 32);
  }

  static uint64_t bits_of(const uint32_t* counts, size_t symbols) {
    uint32_t total = 0;
    for (size_t s = 0; s < symbols; ++s) total += counts[s];
    if (total == 0) return 0;
    const uint64_t whole = fixed_log2(total);
    uint64_t price = 0, used = 0;
    for (size_t s = 0; s < symbols; ++s) {
      if (counts[s] == 0) continue;
      price += counts[s] * (whole - fixed_log2(counts[s]));
      ++used;
    }
    return (price >> kLogFraction) + used * kSymbolBits;
  }
};

struct Piece {
  Part part;
  Statistics statistics;
  uint64_t bits;
  uint64_t joined_bits;  // of this and the next as one
};

}  // namespace

Split split_block(const CodedWriter& gathered) {
  const std::span<const PieceEnd> ends = gathered.pieces();
  std::vector<Piece> pieces;
  PieceEnd begin{};
  for (const PieceEnd& end : ends) {
    Piece piece{.part = {begin.sequences, end.sequences, end.bytes - begin.bytes}};
    if (ends.size() == 1) return {.parts = {piece.part}, .counted = false, .counts = {}};
    StreamCounts& s = piece.statistics.counts;
    kernels().histogram(gathered.literals().data() + begin.literals, end.literals - begin.literals, s.literals.data());
    kernels().histogram(gathered.tokens().data() + begin.tokens, end.tokens - begin.tokens, s.tokens.data());
    kernels().histogram(gathered.offset_codes().data() + begin.offsets, end.offsets - begin.offsets, s.offsets.data());
    pieces.push_back(piece);
    begin = end;
  }
  for (Piece& p : pieces) p.bits = p.statistics.bits();
  // Joins the pair that saves most, until none saves.
  const auto join = [&](size_t i) {
    Statistics both = pieces[i].statistics;
    both.add(pieces[i + 1].statistics.counts);
    pieces[i].joined_bits = both.bits();
  };
  for (size_t i = 0; i + 1 < pieces.size(); ++i) join(i);
  while (pieces.size() > 1) {
    uint64_t most = 0, joined_bits = 0;
    size_t best = 0;
    for (size_t i = 0; i + 1 < pieces.size(); ++i) {
      const uint64_t together = pieces[i].joined_bits, apart = pieces[i].bits + pieces[i + 1].bits;
      if (together < apart && apart - together > most) most = apart - together, best = i, joined_bits = together;
    }
    if (most == 0) break;
    Piece& a = pieces[best];
    const Piece& b = pieces[best + 1];
    a.statistics.add(b.statistics.counts);
    a.part.last = b.part.last;
    a.part.bytes += b.part.bytes;
    a.bits = joined_bits;
    pieces.erase(pieces.begin() + static_cast<ptrdiff_t>(best) + 1);
    if (best > 0) join(best - 1);
    if (best + 1 < pieces.size()) join(best);
  }
  Split split{.parts = {}, .counted = pieces.size() == 1, .counts = pieces[0].statistics.counts};
  for (const Piece& p : pieces) split.parts.push_back(p.part);
  return split;
}

}  // namespace glyd::codec
