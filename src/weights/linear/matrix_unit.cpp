// matrix_unit.cpp - a thread takes a group of quads, four strips each. It goes through their columns in blocks: x's
// columns are put in the units' order, then every quad's records, a stage at a time, are decoded to tiles, which the
// units take as they are, and multiplied. So an x tile is read once for four strips, and all of a block's x for a
// group.
//
// Up to 16 tokens the units hold a quad's sums through the block, which most matrices' columns fit in whole. Sums of
// more tokens go in and out a stage, by the first-level cache.
//
// While a stage is multiplied, token tile by token tile, the next one's strips are decoded between, so that vector
// instructions and units work at once and no tile is read so soon that its stores are still on their way; and the one
// after that is fetched, a few lines at a time throughout: a core can wait for no more than some sixteen.
//
// `fast` is decoded by the units' own kernels, which need a third of the layout's decoder's time; its padding weights
// are finite. Other layouts come in the order of their columns.
#include "weights/linear/matrix_unit.hpp"

#include <algorithm>
#include <optional>

#include "base/parallel.hpp"
#include "weights/linear/linear_parts.hpp"
#include "weights/linear/shifted_record.hpp"
#include "weights/record_walk.hpp"

namespace glyd {
namespace {

static_assert(kTokenBlock == kMostTokenTiles * kUnitTokens);

// A thread's memory: two stages, then x's block and the group's sums, which the second-level cache holds. Of few tokens
// the block is large, so that sums stay where they are; of many the group is, so that x is arranged for more strips.
constexpr size_t kFewSumBytes = 64 << 10, kManyXBytes = 64 << 10;
constexpr size_t stage_bytes(size_t tile_cols) { return kQuadStrips * kStripRows * tile_cols * sizeof(uint16_t); }
constexpr size_t x_bytes(size_t tile_cols, size_t token_tiles) {
  return token_tiles == 1 ? kWidenedBytes - 2 * stage_bytes(tile_cols) - kFewSumBytes : kManyXBytes;
}
constexpr size_t quad_sum_bytes(size_t token_tiles) { return token_tiles * kQuadSums * sizeof(float); }
constexpr uint64_t group_quads(size_t tile_cols, size_t token_tiles) {
  const size_t room = kWidenedBytes - 2 * stage_bytes(tile_cols) - x_bytes(tile_cols, token_tiles);
  return room / quad_sum_bytes(token_tiles);
}
static_assert(group_quads(kTileStride, kMostTokenTiles) > 0);
static_assert(kTileStride / kUnitCols * kMostTokenTiles * kXTileValues * sizeof(uint16_t) <= kManyXBytes);

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

  using Ahead = ShiftedRecords::Ahead;
  // The record's bytes and patches will be wanted soon: asks for the latter, and names the former for `load` to ask
  // for.
  Ahead announce(uint64_t strip, uint64_t record) const {
    if (!records_) return {};
    records_->fetch_patches(first_strip_ + strip, record);
    return records_->chunks_of(first_strip_ + strip, record);
  }

  // x is zero behind the last column, so weights there must be numbers, up to a whole step.
  Result<void> load(uint64_t strip, uint64_t record, const Ahead& ahead, uint16_t* out) const {
    if (records_) {
      if (!records_->decode(first_strip_ + strip, record, kernels_, ahead, out))
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

 private:
  const TileSource tiles_;
  std::optional<ShiftedRecords> records_;
  const MatrixKernels& kernels_;
  const uint64_t first_strip_;
};

// Quads begin .. end-1 of the matrix times some tokens.
class GroupProduct {
 public:
  GroupProduct(const UnitSource& source, const LinearArgs& args, const MatrixKernels& kernels, uint64_t begin,
               uint64_t end)
      : source_(source), args_(args), kernels_(kernels), grid_(source.grid()), begin_(begin), end_(end) {}

  // Tokens token .. token+tokens-1.
  Result<void> run(uint64_t token, uint64_t tokens) {
    token_tiles_ = ceil_div<uint64_t>(tokens, kUnitTokens);
    const size_t tile_cols = source_.record_cols();
    auto* const memory = reinterpret_cast<uint8_t*>(workspace().tiles);
    stages_ = reinterpret_cast<uint16_t*>(memory);
    x_ = reinterpret_cast<uint16_t*>(memory + 2 * stage_bytes(tile_cols));
    sums_ = reinterpret_cast<float*>(memory + 2 * stage_bytes(tile_cols) + x_bytes(tile_cols, token_tiles_));
    std::fill_n(sums_, (end_ - begin_) * token_tiles_ * kQuadSums, 0.0f);
    records_ = ceil_div<uint64_t>(grid_.cols, tile_cols);
    block_ = x_bytes(tile_cols, token_tiles_) / (tile_cols / kUnitCols * x_step() * sizeof(uint16_t));
    if (records_ > 0) GLYD_CHECK(multiply(token, tokens));
    finish(token, tokens);
    return Ok{};
  }

 private:
  struct Stage {
    uint64_t quad, record;
  };
  uint64_t block_begin(const Stage& stage) const { return stage.record / block_ * block_; }
  uint64_t block_end(const Stage& stage) const { return std::min(records_, block_begin(stage) + block_); }
  bool is_one(const Stage& stage) const { return stage.quad < end_; }
  // Block by block, quad by quad, record by record.
  Stage after(const Stage& stage) const {
    if (!is_one(stage)) return stage;
    if (stage.record + 1 < block_end(stage)) return {stage.quad, stage.record + 1};
    if (stage.quad + 1 < end_) return {stage.quad + 1, block_begin(stage)};
    return block_end(stage) < records_ ? Stage{begin_, block_end(stage)} : Stage{end_, 0};
  }
  uint64_t strips_of(const Stage& stage) const {
    return std::min<uint64_t>(kQuadStrips, grid_.strips_a_matrix() - stage.quad * kQuadStrips);
  }

  Result<void> multiply(uint64_t token, uint64_t tokens) {
    Stage stage{begin_, 0};
    for (uint64_t s = 0; s < kQuadStrips; ++s) GLYD_CHECK(load(stage, s, announce(after(stage), s), 0));
    for (uint64_t turn = 0; is_one(stage); stage = after(stage), ++turn) {
      if (stage.quad == begin_ && stage.record == block_begin(stage)) arrange_x(stage, token, tokens);
      GLYD_CHECK(multiply_stage(stage, turn));
    }
    return Ok{};
  }

  void arrange_x(const Stage& stage, uint64_t token, uint64_t tokens) const {
    const uint64_t col = stage.record * source_.record_cols();
    const uint64_t cols = std::min(block_end(stage) * source_.record_cols(), grid_.cols) - col;
    kernels_.arrange_x(source_.order(), args_.x + token * args_.x_stride + col, args_.x_stride, tokens, cols, x_);
  }

  Result<void> multiply_stage(const Stage& stage, uint64_t turn) const {
    const Stage next = after(stage), ahead = after(next);
    const bool first = stage.record == block_begin(stage), last = stage.record + 1 == block_end(stage);
    const uint64_t steps = source_.record_cols() / kUnitCols;
    for (uint64_t t = 0; t < token_tiles_; ++t) {
      float* const sums = quad_sums(stage.quad) + t * kQuadSums;
      // Of what is to be fetched, the units' share is half of the first strip that is decoded after them.
      const uint64_t strip = t * kQuadStrips / token_tiles_, end = (t + 1) * kQuadStrips / token_tiles_;
      UnitSource::Ahead bytes = announce(ahead, strip);
      if (first || token_tiles_ > 1) kernels_.load_sums(sums);
      kernels_.multiply({.tiles = tile(turn, 0),
                         .strips = strips_of(stage),
                         .tile_cols = source_.record_cols(),
                         .steps = ceil_div<uint64_t>(source_.cols_of(stage.record), kUnitCols),
                         .x = x_ + (stage.record - block_begin(stage)) * steps * x_step() + t * kXTileValues,
                         .x_step = x_step(),
                         .ahead = bytes[0],
                         .sums = sums});
      if (last || token_tiles_ > 1) kernels_.store_sums(sums);
      bytes[0] = nullptr;
      for (uint64_t s = strip; s < end; ++s) {
        GLYD_CHECK(load(next, s, s == strip ? bytes : announce(ahead, s), turn + 1));
      }
    }
    return Ok{};
  }

  UnitSource::Ahead announce(const Stage& stage, uint64_t s) const {
    if (!is_one(stage) || s >= strips_of(stage)) return {};
    return source_.announce(stage.quad * kQuadStrips + s, stage.record);
  }

  Result<void> load(const Stage& stage, uint64_t s, const UnitSource::Ahead& ahead, uint64_t turn) const {
    if (!is_one(stage) || s >= strips_of(stage)) return Ok{};
    return source_.load(stage.quad * kQuadStrips + s, stage.record, ahead, tile(turn, s));
  }

  void finish(uint64_t token, uint64_t tokens) const {
    const uint64_t last = std::min(grid_.strips_a_matrix(), end_ * kQuadStrips);
    for (uint64_t strip = begin_ * kQuadStrips; strip < last; ++strip) {
      const uint64_t row = strip * kStripRows;
      kernels_.finish({.sums = quad_sums(strip / kQuadStrips) + strip % kQuadStrips * kSumTileValues,
                       .tokens = tokens,
                       .rows = std::min<uint64_t>(kStripRows, grid_.rows - row),
                       .bias = args_.bias == nullptr ? nullptr : args_.bias + row,
                       .y = args_.y + token * args_.y_stride + row,
                       .y_stride = args_.y_stride});
    }
  }

  uint64_t x_step() const { return token_tiles_ * kXTileValues; }
  uint16_t* tile(uint64_t turn, uint64_t s) const {
    return stages_ + (turn % 2 * kQuadStrips + s) * kStripRows * source_.record_cols();
  }
  float* quad_sums(uint64_t quad) const { return sums_ + (quad - begin_) * token_tiles_ * kQuadSums; }

  const UnitSource& source_;
  const LinearArgs& args_;
  const MatrixKernels& kernels_;
  const Grid& grid_;
  const uint64_t begin_, end_;
  uint16_t *stages_ = nullptr, *x_ = nullptr;
  float* sums_ = nullptr;
  uint64_t token_tiles_ = 0, records_ = 0, block_ = 0;  // a block's records
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
  const uint64_t quads = ceil_div<uint64_t>(grid.strips_a_matrix(), kQuadStrips);
  const int used = useful_threads(grid, args.tokens, threads);
  const auto shares = static_cast<uint64_t>(used);
  const uint64_t most_tiles = ceil_div<uint64_t>(std::min(args.tokens, kTokenBlock), kUnitTokens);
  const uint64_t rounds =
      std::max(kLeastRounds, ceil_div(quads, group_quads(source.record_cols(), most_tiles) * shares));
  FirstError failure;
  parallel_for(quads, ceil_div(quads, rounds * shares), used, [&](uint64_t begin, uint64_t end) {
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
