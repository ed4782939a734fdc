// linear.cpp - Y = X * W^T from packed bytes: a strip of 16 rows at a time, decoded tile by tile into the first-level
// cache and multiplied by every token there. Threads share out strips, so that no sum depends on their number.
//
// Five ways to a strip's weights:
//  - the matrix units, where the CPU has them (matrix_unit.hpp), from a few tokens on;
//  - one token (`fast`, AVX2 and AVX-512): from the pack's bytes to the sums in registers;
//  - fused (`fast`, x small enough to be scaled and permuted once): records decoded as they are cheapest, a record
//  ahead of the products;
//  - direct (`raw`, not transposed): the pack's own rows;
//  - tiles (all else): decoded in their true values and order.
#include <algorithm>
#include <cstring>

#include "base/parallel.hpp"
#include "weights/linear/linear_kernels.hpp"
#include "weights/linear/linear_parts.hpp"
#include "weights/linear/matrix_unit.hpp"
#include "weights/linear/shifted_record.hpp"
#include "weights/record_walk.hpp"
#include "weights/registry.hpp"
#include "weights/weights.hpp"

namespace glyd {
namespace {

struct Job {
  const OpenPack& pack;
  const LinearArgs& args;
  const LinearKernels& kernels;

  const Grid& grid() const { return pack.header.grid; }
  uint64_t first_strip() const { return args.matrix * grid().strips_a_matrix(); }
};

// Where the rows of decoded tiles stand.
const size_t* tile_rows() {
  static constexpr auto rows = [] {
    std::array<size_t, kStripRows> offsets{};
    for (size_t r = 0; r < kStripRows; ++r) offsets[r] = 2 * r * kTileStride;
    return offsets;
  }();
  return rows.data();
}

// Sums of tokens token .. token+tokens-1 for a strip's rows to y.
void store_sums(const Job& job, uint64_t strip, uint64_t token, uint64_t tokens, const float* sums,
                void (*reduce)(const float*, float*)) {
  const uint64_t row = strip * kStripRows, rows = std::min<uint64_t>(kStripRows, job.grid().rows - row);
  for (uint64_t t = 0; t < tokens; ++t) {
    float total[kStripRows];
    reduce(sums + t * kStripRows * job.kernels.width, total);
    uint16_t* y = job.args.y + (token + t) * job.args.y_stride + row;
    for (uint64_t r = 0; r < rows; ++r) {
      y[r] = round_to_bf16(job.args.bias == nullptr ? total[r] : total[r] + widen_bf16(job.args.bias[row + r]));
    }
  }
}

void clear_sums(const Job& job, uint64_t tokens, float* sums) {
  std::fill_n(sums, tokens * kStripRows * job.kernels.width, 0.0f);
}

// Columns col .. of the strip, as many as the tiles hold, to tiles[kTiles][16][kTileStride].
Result<void> load_tiles(const TileSource& source, uint64_t strip, uint64_t col, uint16_t* tiles) {
  const uint64_t end = std::min<uint64_t>(source.grid().cols, col + kTiles * kTileStride);
  for (uint64_t c = col; c < end; c += source.record_cols()) {
    uint16_t* out = tiles + (c - col) / kTileStride * kTileValues + (c - col) % kTileStride;
    GLYD_CHECK(source.load(strip, c / source.record_cols(), out));
  }
  return Ok{};
}

Result<void> multiply_tiles(const Job& job, const TileSource& source, uint64_t strip) {
  const Workspace space = workspace();
  for (uint64_t token = 0; token < job.args.tokens; token += kTokenBlock) {
    const uint64_t tokens = std::min<uint64_t>(kTokenBlock, job.args.tokens - token);
    clear_sums(job, tokens, space.sums);
    for (uint64_t col = 0; col < job.grid().cols; col += kTiles * kTileStride) {
      GLYD_CHECK(load_tiles(source, strip, col, space.tiles));
      job.kernels.dot({.weights = reinterpret_cast<const uint8_t*>(space.tiles),
                       .rows = kStripRows,
                       .row_offset = tile_rows(),
                       .tile_cols = kTileStride,
                       .tile_bytes = kTileBytes,
                       .cols = std::min<uint64_t>(kTiles * kTileStride, job.grid().cols - col),
                       .x = job.args.x + token * job.args.x_stride + col,
                       .x_stride = job.args.x_stride,
                       .tokens = tokens,
                       .sums = space.sums});
    }
    store_sums(job, strip, token, tokens, space.sums, job.kernels.reduce);
  }
  return Ok{};
}

// `raw`, rows as they stand. Where there are many tokens the columns go in blocks that the first-level cache holds.
void multiply_direct(const Job& job, uint64_t strip) {
  constexpr uint64_t kFewTokens = 4;
  const Workspace space = workspace();
  const Grid& grid = job.grid();
  const uint64_t row = strip * kStripRows, last = std::min<uint64_t>(kStripRows, grid.rows - row) - 1;
  const uint8_t* weights = job.pack.array(raw::kData).data() + 2 * (job.args.matrix * grid.rows + row) * grid.cols;
  size_t row_offset[kStripRows];
  for (uint64_t r = 0; r < kStripRows; ++r) row_offset[r] = 2 * std::min(r, last) * grid.cols;
  const uint64_t all_cols = round_up<uint64_t>(grid.cols, kTileStride);
  const uint64_t block = job.args.tokens <= kFewTokens ? all_cols : kTiles * kTileStride;
  for (uint64_t token = 0; token < job.args.tokens; token += kTokenBlock) {
    const uint64_t tokens = std::min<uint64_t>(kTokenBlock, job.args.tokens - token);
    clear_sums(job, tokens, space.sums);
    for (uint64_t col = 0; col < grid.cols; col += block) {
      job.kernels.dot({.weights = weights + 2 * col,
                       .rows = kStripRows,
                       .row_offset = row_offset,
                       .tile_cols = block,
                       .tile_bytes = 0,
                       .cols = std::min(block, grid.cols - col),
                       .x = job.args.x + token * job.args.x_stride + col,
                       .x_stride = job.args.x_stride,
                       .tokens = tokens,
                       .sums = space.sums});
    }
    store_sums(job, strip, token, tokens, space.sums, job.kernels.reduce);
  }
}

// A record is decoded and patched while the one before it is multiplied: its patches are 16-bit stores, which the wide
// loads of the products would wait for if they came at once.
Result<void> multiply_fused(const Job& job, const ShiftedRecords& records, const uint16_t* scaled_x, uint64_t strip) {
  const Workspace space = workspace();
  const uint64_t count = fast::records_a_strip(job.grid().steps()), x_stride = job.grid().steps() * kFragmentStep;
  clear_sums(job, job.args.tokens, space.sums);
  for (uint64_t next = 0; next <= count; ++next) {
    if (next < count && !records.decode(job.first_strip() + strip, next, space.tiles + next % 2 * kTileValues)) {
      return broken_patches(job.first_strip() + strip, next);
    }
    if (next == 0) continue;
    const uint64_t col = (next - 1) * kTileStride;
    job.kernels.dot({.weights = reinterpret_cast<const uint8_t*>(space.tiles + (next - 1) % 2 * kTileValues),
                     .rows = kFragmentRows,
                     .row_offset = tile_rows(),
                     .tile_cols = kTileStride,
                     .tile_bytes = 0,
                     .cols = std::min<uint64_t>(kTileStride, x_stride - col),
                     .x = scaled_x + col,
                     .x_stride = x_stride,
                     .tokens = job.args.tokens,
                     .sums = space.sums});
  }
  store_sums(job, strip, 0, job.args.tokens, space.sums, job.kernels.reduce_fragments);
  return Ok{};
}

size_t one_token_value_bytes(const Job& job) {
  return job.kernels.widen_x == nullptr ? sizeof(uint16_t) : sizeof(float);
}

// One token: from the pack's bytes to the sums with no tile between. Patches are bytes that dot_record joins in; those
// of a record are set while the one before it is multiplied, for the same reason.
Result<void> multiply_one_token(const Job& job, const ShiftedRecords& records, const uint8_t* x, uint64_t strip) {
  uint8_t* const uppers = workspace().uppers;
  float sums[kFragmentRows * 2 * kMostWidth] = {};
  const size_t width = job.kernels.width, x_bytes = kTileStride * one_token_value_bytes(job);
  alignas(64) uint8_t scratch[fast::kRecordBytes];
  const uint64_t count = fast::records_a_strip(job.grid().steps()), place = job.first_strip() + strip;
  for (uint64_t next = 0; next <= count; ++next) {
    if (next < count && !records.set_upper(place, next, uppers + next % 2 * kUpperBytes)) {
      clear_uppers(uppers);
      return broken_patches(place, next);
    }
    if (next == 0) continue;
    const uint64_t record = next - 1;
    job.kernels.dot_record(records.planes(place, record, scratch), uppers + record % 2 * kUpperBytes,
                           x + record * x_bytes, sums);
  }
  for (size_t g = 0; g < kFragmentRows; ++g) {
    for (size_t i = 0; i < width; ++i) {
      sums[g * width + i] = sums[2 * g * width + i] + sums[(2 * g + 1) * width + i];
    }
  }
  store_sums(job, strip, 0, 1, sums, job.kernels.reduce_fragments);
  return Ok{};
}

// Runs `multiply(strip)` on every strip of the matrix.
template <typename Multiply>
Result<void> for_strips(const Job& job, int threads, Multiply multiply) {
  const Grid& grid = job.grid();
  const uint64_t strips = grid.strips_a_matrix();
  const int used = useful_threads(grid, job.args.tokens, threads);
  const uint64_t grain = std::clamp<uint64_t>(strips / (8 * static_cast<uint64_t>(used)), 1, 64);
  FirstError failure;
  parallel_for(strips, grain, used, [&](uint64_t begin, uint64_t end) {
    for (uint64_t strip = begin; strip < end; ++strip) {
      if (Result<void> result = multiply(strip); !result) {
        failure.keep(strip, std::move(result));
        return;
      }
    }
  });
  return failure.result();
}

int shift_of(const PackHeader& header) { return static_cast<int>(header.base) - 120; }

// Null if x does not fit the scratch memory or cannot be scaled exactly.
const uint16_t* try_scale(const Job& job) {
  const PackHeader& header = job.pack.header;
  if (job.kernels.decode_chunk == nullptr || header.layout != Layout::kFast || !header.fusible) return nullptr;
  const uint64_t token_bytes = 2 * kFragmentStep * header.grid.steps();
  if (job.args.tokens > kTokenBlock || job.args.tokens * token_bytes > kScaledBytes) return nullptr;
  uint16_t* out = workspace().scaled_x;
  return scale_x(job.args.x, job.args.tokens, job.args.x_stride, header.grid.cols, shift_of(header), out) ? out
                                                                                                          : nullptr;
}

// The same of one token, as dot_record reads it: whole records, zeros behind the last step.
const uint8_t* try_scale_one_token(const Job& job) {
  const PackHeader& header = job.pack.header;
  if (job.kernels.dot_record == nullptr || header.layout != Layout::kFast || !header.fusible || job.args.tokens != 1)
    return nullptr;
  const uint64_t steps = header.grid.steps(), values = fast::records_a_strip(steps) * kTileStride;
  const uint64_t value_bytes = one_token_value_bytes(job);
  if (values * value_bytes > kWidenedBytes) return nullptr;
  uint8_t* const out = reinterpret_cast<uint8_t*>(workspace().widened_x);
  // To be widened, it is the second half, and widened from its front on.
  uint16_t* const scaled = reinterpret_cast<uint16_t*>(out + values * (value_bytes - sizeof(uint16_t)));
  std::fill(scaled + steps * kFragmentStep, scaled + values, uint16_t{0});
  if (!scale_x(job.args.x, 1, job.args.x_stride, header.grid.cols, shift_of(header), scaled)) return nullptr;
  if (job.kernels.widen_x != nullptr) job.kernels.widen_x(scaled, values, reinterpret_cast<float*>(out));
  return out;
}

Result<void> check_args(const Grid& grid, const LinearArgs& args) {
  if (args.matrix >= grid.stack) return invalid_argument("linear: matrix {} of a stack of {}", args.matrix, grid.stack);
  const bool reads = args.tokens > 0 && grid.cols > 0, writes = args.tokens > 0 && grid.rows > 0;
  if ((reads && args.x == nullptr) || (writes && args.y == nullptr))
    return invalid_argument("linear: x or y is a null pointer");
  if (args.tokens > 1 && (args.x_stride < grid.cols || args.y_stride < grid.rows)) {
    return invalid_argument("linear: strides of {} and {} are less than the {} columns and {} rows", args.x_stride,
                            args.y_stride, grid.cols, grid.rows);
  }
  return Ok{};
}

}  // namespace

Result<void> linear(ByteSpan bytes, const LinearArgs& args, int threads) {
  GLYD_TRY(const PackHeader header, open_pack(bytes));
  GLYD_CHECK(check_args(header.grid, args));
  if (args.tokens == 0 || header.grid.rows == 0) return Ok{};
  const OpenPack pack{bytes, header};
  if (const MatrixKernels* kernels = matrix_kernels(cpu_isa()); kernels != nullptr && args.tokens >= kMatrixUnitTokens)
    return multiply_by_matrix_unit(pack, args, threads, *kernels);
  const Job job{pack, args, linear_kernels(cpu_isa())};
  const LayoutOps& ops = layout_ops(header.layout);
  if (ops.open == nullptr) {
    const TileSource source(pack, args.matrix, nullptr);
    return for_strips(job, threads, [&](uint64_t strip) -> Result<void> {
      if (header.transposed) return multiply_tiles(job, source, strip);
      multiply_direct(job, strip);
      return Ok{};
    });
  }
  if (const uint8_t* x = try_scale_one_token(job)) {
    const ShiftedRecords records(pack, job.kernels);
    return for_strips(job, threads, [&](uint64_t strip) { return multiply_one_token(job, records, x, strip); });
  }
  if (const uint16_t* x = try_scale(job)) {
    const ShiftedRecords records(pack, job.kernels);
    return for_strips(job, threads, [&](uint64_t strip) { return multiply_fused(job, records, x, strip); });
  }
  GLYD_TRY(const auto decoder, ops.open(pack, Check::kTrust));
  const TileSource source(pack, args.matrix, decoder.get());
  return for_strips(job, threads, [&](uint64_t strip) { return multiply_tiles(job, source, strip); });
}

}  // namespace glyd
