// matrix_unit.cpp - a thread takes a group of strips. It goes through their columns in blocks: x's columns are put in
// the units' order, then each strip's records are decoded to tiles, which the units take as they are, and multiplied.
// The sums of the group wait in memory from block to block.
//
// `fast` is decoded by the units' own kernels, which need a third of the layout's decoder's time; its padding weights
// are finite. Other layouts come in the order of their columns.
//
// A record is decoded before the one ahead of it is multiplied: the units work while the vector instructions do, and no
// tile is read so soon that its stores are still on their way.
#include "weights/linear/matrix_unit.hpp"

#include <algorithm>
#include <optional>

#include "base/parallel.hpp"
#include "weights/linear/linear_parts.hpp"
#include "weights/linear/shifted_record.hpp"
#include "weights/record_walk.hpp"

namespace glyd {
namespace {

// x's block stays in the first-level cache with two tiles; the group's sums, in the second.
constexpr size_t kXBytes = 32 << 10;
constexpr uint64_t kMostStrips = 16;  // of a group: x is arranged once for all of them
constexpr size_t kGroupSumBytes = kMostStrips * kStripSums * sizeof(float);
static_assert(kTiles * kTileBytes + kXBytes + kGroupSumBytes <= kWidenedBytes);
static_assert(kTokenBlock == kMostTokenTiles * kUnitTokens);
static_assert(kTileStride / kUnitCols * kMostTokenTiles * kXTileValues * sizeof(uint16_t) <= kXBytes);

constexpr uint64_t kLeastRounds = 4;  // groups that each thread takes, so that all end at about the same time

// Records at a strip's beginning that the decoder, which fetches so many ahead, has not fetched; they are fetched while
// the strip this far before is multiplied.
constexpr uint64_t kUnfetchedRecords = kPrefetchAhead / fast::kRecordBytes, kStripsAhead = 2;

class OpenUnit {
 public:
  explicit OpenUnit(const MatrixKernels& kernels) : kernels_(kernels) { kernels_.open(); }
  ~OpenUnit() { kernels_.close(); }
  OpenUnit(const OpenUnit&) = delete;
  OpenUnit& operator=(const OpenUnit&) = delete;

 private:
  const MatrixKernels& kernels_;
};

// The matrix as tiles for the units.
class UnitSource {
 public:
  UnitSource(const OpenPack& pack, uint64_t matrix, const RecordDecoder* decoder, const MatrixKernels& kernels)
      : tiles_(pack, matrix, decoder), kernels_(kernels), first_strip_(matrix * pack.header.grid.strips_a_matrix()) {
    if (pack.header.layout == Layout::kFast) records_.emplace(pack, linear_kernels(cpu_isa()));
  }

  const Grid& grid() const { return tiles_.grid(); }
  uint32_t record_cols() const { return tiles_.record_cols(); }
  PairOrder order() const { return records_ ? PairOrder::kFours : PairOrder::kColumns; }
  uint64_t cols_of(uint64_t record) const {
    return std::min<uint64_t>(record_cols(), grid().cols - record * record_cols());
  }

  // x is zero behind the last column, so weights there must be numbers, up to a whole step.
  Result<void> load(uint64_t strip, uint64_t record, uint16_t* out) const {
    if (records_) {
      if (!records_->decode(first_strip_ + strip, record, kernels_, out))
        return broken_patches(first_strip_ + strip, record);
      return Ok{};
    }
    GLYD_CHECK(tiles_.load(strip, record, out));
    const uint64_t cols = cols_of(record), whole = round_up<uint64_t>(cols, kUnitCols);
    for (uint64_t r = 0; cols < whole && r < kStripRows; ++r) {
      std::fill(out + r * kTileStride + cols, out + r * kTileStride + whole, uint16_t{0});
    }
    return Ok{};
  }

  void fetch(uint64_t strip, uint64_t record) const {
    if (records_) records_->fetch(first_strip_ + strip, record);
  }

 private:
  const TileSource tiles_;
  std::optional<ShiftedRecords> records_;
  const MatrixKernels& kernels_;
  const uint64_t first_strip_;
};

// Strips begin .. end-1 of the matrix times tokens token .. token+tokens-1.
class GroupProduct {
 public:
  GroupProduct(const UnitSource& source, const LinearArgs& args, const MatrixKernels& kernels, uint64_t begin,
               uint64_t end)
      : source_(source), args_(args), kernels_(kernels), grid_(source.grid()), begin_(begin), end_(end) {
    auto* memory = reinterpret_cast<uint8_t*>(workspace().tiles);
    tiles_ = reinterpret_cast<uint16_t*>(memory);
    x_ = reinterpret_cast<uint16_t*>(memory + kTiles * kTileBytes);
    sums_ = reinterpret_cast<float*>(memory + kTiles * kTileBytes + kXBytes);
  }

  Result<void> run(uint64_t token, uint64_t tokens) {
    token_tiles_ = ceil_div<uint64_t>(tokens, kUnitTokens);
    const uint64_t record_x_bytes = source_.record_cols() / kUnitCols * token_tiles_ * kXTileValues * sizeof(uint16_t);
    const uint64_t records = ceil_div<uint64_t>(grid_.cols, source_.record_cols()), most = kXBytes / record_x_bytes;
    std::fill_n(sums_, (end_ - begin_) * kStripSums, 0.0f);
    for (uint64_t record = 0; record < records; record += most) {
      const uint64_t col = record * source_.record_cols(), count = std::min(most, records - record);
      fetch_first_strips(record, count);
      kernels_.arrange_x(source_.order(), args_.x + token * args_.x_stride + col, args_.x_stride, tokens,
                         std::min(count * source_.record_cols(), grid_.cols - col), x_);
      GLYD_CHECK(multiply_block(record, count));
    }
    finish(token, tokens);
    return Ok{};
  }

 private:
  struct Place {
    uint64_t strip, record;
  };

  // Records first .. first+count-1 of all the strips.
  Result<void> multiply_block(uint64_t first, uint64_t count) {
    const auto next = [&](Place p) {
      return p.record + 1 < first + count ? Place{p.strip, p.record + 1} : Place{p.strip + 1, first};
    };
    Place place{begin_, first};
    uint64_t turn = 0;
    GLYD_CHECK(load(place, tile(turn)));
    while (place.strip < end_) {
      const Place following = next(place);
      if (following.strip < end_) GLYD_CHECK(load(following, tile(turn + 1)));
      float* const sums = strip_sums(place.strip);
      if (place.record == first) kernels_.load_sums(token_tiles_, sums);
      const uint64_t x_step = (place.record - first) * source_.record_cols() / kUnitCols;
      kernels_.multiply(token_tiles_, tile(turn), ceil_div<uint64_t>(source_.cols_of(place.record), kUnitCols),
                        x_ + x_step * token_tiles_ * kXTileValues, sums);
      if (following.strip != place.strip) kernels_.store_sums(token_tiles_, sums);
      place = following;
      ++turn;
    }
    return Ok{};
  }

  Result<void> load(Place place, uint16_t* out) const {
    if (place.record < kUnfetchedRecords && place.strip + kStripsAhead < end_)
      source_.fetch(place.strip + kStripsAhead, place.record);
    return source_.load(place.strip, place.record, out);
  }

  void fetch_first_strips(uint64_t record, uint64_t count) const {
    for (uint64_t strip = begin_; strip < std::min(end_, begin_ + kStripsAhead); ++strip) {
      for (uint64_t r = record; r < std::min(record + count, kUnfetchedRecords); ++r) source_.fetch(strip, r);
    }
  }

  void finish(uint64_t token, uint64_t tokens) const {
    for (uint64_t strip = begin_; strip < end_; ++strip) {
      const uint64_t row = strip * kStripRows;
      kernels_.finish({.sums = strip_sums(strip),
                       .token_tiles = token_tiles_,
                       .tokens = tokens,
                       .rows = std::min<uint64_t>(kStripRows, grid_.rows - row),
                       .bias = args_.bias == nullptr ? nullptr : args_.bias + row,
                       .y = args_.y + token * args_.y_stride + row,
                       .y_stride = args_.y_stride});
    }
  }

  uint16_t* tile(uint64_t turn) const { return tiles_ + turn % kTiles * kTileValues; }
  float* strip_sums(uint64_t strip) const { return sums_ + (strip - begin_) * kStripSums; }

  const UnitSource& source_;
  const LinearArgs& args_;
  const MatrixKernels& kernels_;
  const Grid& grid_;
  const uint64_t begin_, end_;
  uint16_t *tiles_, *x_;
  float* sums_;
  uint64_t token_tiles_ = 0;
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
  const uint64_t strips = grid.strips_a_matrix();
  const int used = useful_threads(grid, args.tokens, threads);
  const auto shares = static_cast<uint64_t>(used);
  const uint64_t rounds = std::max(kLeastRounds, ceil_div(strips, kMostStrips * shares));
  FirstError failure;
  parallel_for(strips, ceil_div(strips, rounds * shares), used, [&](uint64_t begin, uint64_t end) {
    GroupProduct product(source, args, kernels, begin, end);
    const OpenUnit unit(kernels);
    for (uint64_t token = 0; token < args.tokens; token += kTokenBlock) {
      const uint64_t tokens = std::min<uint64_t>(kTokenBlock, args.tokens - token);
      if (Result<void> result = product.run(token, tokens); !result) {
        failure.keep(begin, std::move(result));
        return;
      }
    }
  });
  return failure.result();
}

}  // namespace glyd
