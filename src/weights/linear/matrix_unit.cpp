// matrix_unit.cpp - a thread takes a group of sets of strips. It goes through their columns in blocks: x's columns are
// put in the units' order, then, set by set, record by record, strip by strip, weights are decoded to a tile, which the
// units take as it is, and multiplied by all tokens. A set's sums stay in the units through the block.
//
// A tile is multiplied when the next one has been decoded: its stores are in the cache by then, and the units have
// their work in many small pieces. (They become slow where they rest for long: a product of 8 tokens took a quarter
// longer with four strips' work together.)
//
// What is decoded kAhead tiles later is fetched to the second-level cache, a few lines at a time throughout, since a
// core can wait for no more than some sixteen; what is next, from there to the first.
//
// `fast` is decoded by the units' own kernels, which need a third of the layout's decoder's time; its padding weights
// are finite. Other layouts come in the order of their columns.
#include "weights/linear/matrix_unit.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "base/parallel.hpp"
#include "weights/linear/linear_parts.hpp"
#include "weights/linear/shifted_record.hpp"
#include "weights/record_walk.hpp"

namespace glyd {
namespace {

static_assert(kTokenBlock == kMostTokenTiles * kUnitTokens);

// A thread's memory: two tiles, which the first-level cache holds, then x's block and the group's sums, which the
// second one does. Of few tokens the block is large, and one for most matrices; of many the group is, so that x is
// arranged for more strips.
constexpr size_t kFewSumBytes = 64 << 10, kManyXBytes = 128 << 10;
constexpr size_t kPairBytes = kTiles * kTileBytes;
constexpr size_t x_bytes(size_t set_strips) {
  return set_strips == strips_of_set(1) ? kWidenedBytes - kPairBytes - kFewSumBytes : kManyXBytes;
}
constexpr uint64_t group_sets(size_t set_strips) {
  return (kWidenedBytes - kPairBytes - x_bytes(set_strips)) / (kSetSums * sizeof(float));
}
static_assert(group_sets(strips_of_set(1)) > 0 && group_sets(strips_of_set(kMostTokenTiles)) > 0);
static_assert(kTileStride / kUnitCols * kMostTokenTiles * kXTileValues * sizeof(uint16_t) <= kManyXBytes);

constexpr int kAhead = 4;             // tiles
constexpr uint64_t kLeastRounds = 4;  // groups that each thread takes, so that all end at about the same time

class OpenUnit {
 public:
  explicit OpenUnit(const MatrixKernels& kernels) : kernels_(kernels) { kernels_.open(); }
  ~OpenUnit() { kernels_.close(); }
  OpenUnit(const OpenUnit&) = delete;
  OpenUnit& operator=(const OpenUnit&) = delete;

 private:
  const MatrixKernels& kernels_;
};

// The matrix as tiles for the units. A strip is one of the matrix's, not of the stack's.
class UnitSource {
 public:
  UnitSource(const OpenPack& pack, uint64_t matrix, const RecordDecoder* decoder, const MatrixKernels& kernels)
      : tiles_(pack, matrix, decoder), kernels_(kernels), first_strip_(matrix * pack.header.grid.strips_a_matrix()) {
    if (pack.header.layout == Layout::kFast) records_.emplace(pack, linear_kernels(cpu_isa()));
  }

  const Grid& grid() const { return tiles_.grid(); }
  uint32_t record_cols() const { return tiles_.record_cols(); }
  bool can_fetch() const { return records_.has_value(); }
  PairOrder order() const { return records_ ? PairOrder::kFours : PairOrder::kColumns; }
  uint64_t cols_of(uint64_t record) const {
    return std::min<uint64_t>(record_cols(), grid().cols - record * record_cols());
  }

  using Fetch = ShiftedRecords::Fetch;
  // For sources that can fetch.
  ShiftedRecords::Place place_of(uint64_t strip, uint64_t record) const {
    return records_->place_of(first_strip_ + strip, record);
  }

  // x is zero behind the last column, so weights there must be numbers, up to a whole step.
  // `meanwhile`, of another tile, is multiplied.
  Result<void> load(uint64_t strip, uint64_t record, const Fetch& fetch, const MultiplyArgs& meanwhile,
                    uint16_t* out) const {
    if (records_) {
      if (!records_->decode(place_of(strip, record), record, kernels_, fetch, meanwhile, out)) [[unlikely]]
        return broken_patches(first_strip_ + strip, record);
      return Ok{};
    }
    kernels_.multiply(meanwhile);
    GLYD_CHECK(tiles_.load(strip, record, out));
    const uint64_t cols = cols_of(record), whole = round_up<uint64_t>(cols, kUnitCols);
    for (uint64_t r = 0; cols < whole && r < kStripRows; ++r) {
      std::fill(out + r * kTileStride + cols, out + r * kTileStride + whole, uint16_t{0});
    }
    return Ok{};
  }

 private:
  const TileSource tiles_;
  std::optional<ShiftedRecords> records_;
  const MatrixKernels& kernels_;
  const uint64_t first_strip_;
};

// Sets begin .. end-1 of the matrix times some tokens.
class GroupProduct {
 public:
  GroupProduct(const UnitSource& source, const LinearArgs& args, const MatrixKernels& kernels, uint64_t begin,
               uint64_t end)
      : source_(source), args_(args), kernels_(kernels), grid_(source.grid()), begin_(begin), end_(end) {}

  // Tokens token .. token+tokens-1; as many token tiles as the sets are made for, or fewer.
  Result<void> run(uint64_t set_strips, uint64_t token, uint64_t tokens) {
    token_tiles_ = ceil_div<uint64_t>(tokens, kUnitTokens);
    set_strips_ = set_strips;
    auto* const memory = reinterpret_cast<uint8_t*>(workspace().tiles);
    tiles_ = reinterpret_cast<uint16_t*>(memory);
    x_ = reinterpret_cast<uint16_t*>(memory + kPairBytes);
    sums_ = reinterpret_cast<float*>(memory + kPairBytes + x_bytes(set_strips));
    std::fill_n(sums_, (end_ - begin_) * kSetSums, 0.0f);
    records_ = ceil_div<uint64_t>(grid_.cols, source_.record_cols());
    record_x_ = source_.record_cols() / kUnitCols * token_tiles_ * kXTileValues;
    block_ = x_bytes(set_strips) / (record_x_ * sizeof(uint16_t));
    if (records_ > 0) GLYD_CHECK(multiply(token, tokens));
    finish(token, tokens);
    return Ok{};
  }

 private:
  // A record of a strip, where the group's work is.
  struct Place {
    uint64_t block_begin, block_end, set, record, strip;
    uint64_t strips_end;  // of the set
  };
  Place first_of(uint64_t set, uint64_t block_begin) const {
    const uint64_t strip = set * set_strips_;
    return {block_begin, std::min(records_, block_begin + block_),
            set,         block_begin,
            strip,       std::min(grid_.strips_a_matrix(), strip + set_strips_)};
  }
  bool is_one(const Place& place) const { return place.block_begin < records_; }
  bool begins_set(const Place& place) const {
    return place.record == place.block_begin && place.strip == place.set * set_strips_;
  }
  bool ends_set(const Place& place) const {
    return place.record + 1 == place.block_end && place.strip + 1 == place.strips_end;
  }
  void advance(Place& place) const {
    if (++place.strip < place.strips_end || !is_one(place)) return;
    place.strip = place.set * set_strips_;
    if (++place.record < place.block_end) return;
    place = place.set + 1 < end_ ? first_of(place.set + 1, place.block_begin) : first_of(begin_, place.block_end);
  }

  Result<void> multiply(uint64_t token, uint64_t tokens) {
    Place next = first_of(begin_, 0), ahead = next;
    for (int i = 0; i < kAhead; ++i) advance(ahead);
    std::optional<Place> decoded;
    uint64_t turn = 0;
    for (; is_one(next); ++turn) {
      const Place now = next;
      advance(next);
      const MultiplyArgs product = decoded ? begin_product(*decoded, tile(turn - 1)) : MultiplyArgs{};
      GLYD_CHECK(source_.load(now.strip, now.record, fetch_of(next, ahead), product, tile(turn)));
      if (decoded) end_product(*decoded);
      decoded = now;
      if (now.set == begin_ && begins_set(now)) arrange_x(now, token, tokens);
      advance(ahead);
    }
    kernels_.multiply(begin_product(*decoded, tile(turn - 1)));
    end_product(*decoded);
    return Ok{};
  }

  UnitSource::Fetch fetch_of(const Place& next, const Place& ahead) const {
    UnitSource::Fetch fetch{};
    if (!source_.can_fetch()) return fetch;
    if (is_one(next)) fetch.soon = source_.place_of(next.strip, next.record).planes;
    if (is_one(ahead)) {
      const auto place = source_.place_of(ahead.strip, ahead.record);
      __builtin_prefetch(place.slot);
      fetch.ahead = place.planes;
    }
    return fetch;
  }

  MultiplyArgs begin_product(const Place& place, const uint16_t* tile) const {
    float* const sums = set_sums(place.set);
    if (begins_set(place)) kernels_.load_sums(sums);
    return {.tile = tile,
            .tile_cols = source_.record_cols(),
            .steps = ceil_div<uint64_t>(source_.cols_of(place.record), kUnitCols),
            .x = x_ + (place.record - place.block_begin) * record_x_,
            .token_tiles = token_tiles_,
            .strip = place.strip - place.set * set_strips_,
            .sums = sums};
  }
  void end_product(const Place& place) const {
    if (ends_set(place)) kernels_.store_sums(set_sums(place.set));
  }

  void arrange_x(const Place& place, uint64_t token, uint64_t tokens) const {
    const uint64_t col = place.block_begin * source_.record_cols();
    const uint64_t cols = std::min(place.block_end * source_.record_cols(), grid_.cols) - col;
    kernels_.arrange_x(source_.order(), args_.x + token * args_.x_stride + col, args_.x_stride, tokens, cols, x_);
  }

  void finish(uint64_t token, uint64_t tokens) const {
    const uint64_t last = std::min(grid_.strips_a_matrix(), end_ * set_strips_);
    for (uint64_t strip = begin_ * set_strips_; strip < last; ++strip) {
      const uint64_t row = strip * kStripRows;
      kernels_.finish({.sums = set_sums(strip / set_strips_) + strip % set_strips_ * token_tiles_ * kSumTileValues,
                       .tokens = tokens,
                       .rows = std::min<uint64_t>(kStripRows, grid_.rows - row),
                       .bias = args_.bias == nullptr ? nullptr : args_.bias + row,
                       .y = args_.y + token * args_.y_stride + row,
                       .y_stride = args_.y_stride});
    }
  }

  uint16_t* tile(uint64_t turn) const { return tiles_ + turn % kTiles * kTileValues; }
  float* set_sums(uint64_t set) const { return sums_ + (set - begin_) * kSetSums; }

  const UnitSource& source_;
  const LinearArgs& args_;
  const MatrixKernels& kernels_;
  const Grid& grid_;
  const uint64_t begin_, end_;
  uint16_t *tiles_ = nullptr, *x_ = nullptr;
  float* sums_ = nullptr;
  uint64_t token_tiles_ = 0, set_strips_ = 0;
  uint64_t records_ = 0, block_ = 0;  // of a strip, of a block
  uint64_t record_x_ = 0;             // values of x, arranged, of a record
};

}  // namespace

Result<void> multiply_by_matrix_unit(const OpenPack& pack, const LinearArgs& args, int threads,
                                     const MatrixKernels& kernels) {
  const Grid& grid = pack.header.grid;
  const LayoutOps& ops = layout_ops(pack.header.layout);
  std::unique_ptr<RecordDecoder> decoder;
  if (ops.open != nullptr) {
    GLYD_TRY(decoder, ops.open(pack, Check::kTrust));
  }
  const UnitSource source(pack, args.matrix, decoder.get(), kernels);
  const uint64_t most_tiles = ceil_div<uint64_t>(std::min(args.tokens, kTokenBlock), kUnitTokens);
  const uint64_t set_strips = strips_of_set(most_tiles), sets = ceil_div(grid.strips_a_matrix(), set_strips);
  const int used = useful_threads(grid, args.tokens, threads);
  const auto shares = static_cast<uint64_t>(used);
  const uint64_t rounds = std::max(kLeastRounds, ceil_div(sets, group_sets(set_strips) * shares));
  FirstError failure;
  parallel_for(sets, ceil_div(sets, rounds * shares), used, [&](uint64_t begin, uint64_t end) {
    GroupProduct product(source, args, kernels, begin, end);
    const OpenUnit unit(kernels);
    for (uint64_t token = 0; token < args.tokens; token += kTokenBlock) {
      const uint64_t tokens = std::min<uint64_t>(kTokenBlock, args.tokens - token);
      if (Result<void> result = product.run(set_strips, token, tokens); !result) {
        failure.keep(begin, std::move(result));
        return;
      }
    }
  });
  return failure.result();
}

}  // namespace glyd
