// weights.cpp - the entry points of weights.hpp but `linear`: checks, then the layout's own functions.
#include "weights/weights.hpp"

#include <algorithm>

#include "base/parallel.hpp"
#include "format/fast_plan.hpp"
#include "weights/raw/raw.hpp"
#include "weights/record_walk.hpp"
#include "weights/registry.hpp"

namespace glyd {
namespace {

Result<OpenPack> open(ByteSpan bytes) {
  GLYD_TRY(PackHeader header, open_pack(bytes));
  return OpenPack{bytes, header};
}

Result<void> check_capacity(const OpenPack& pack, std::span<uint16_t> out) {
  if (out.size() == pack.header.values()) return Ok{};
  return invalid_argument("decode: room for {} values, the tensor has {}", out.size(), pack.header.values());
}

Result<void> check_block(const Grid& grid, const Block& block, uint64_t stride) {
  const bool inside = block.matrix < grid.stack && block.row_begin <= block.row_end && block.row_end <= grid.rows &&
                      block.col_begin <= block.col_end && block.col_end <= grid.cols;
  if (!inside) {
    return invalid_argument("block: matrix {}, rows {}-{}, columns {}-{} of a tensor of {} x {} x {}", block.matrix,
                            block.row_begin, block.row_end, block.col_begin, block.col_end, grid.stack, grid.rows,
                            grid.cols);
  }
  if (block.row_end - block.row_begin > 1 && stride < block.col_end - block.col_begin) {
    return invalid_argument("block: a stride of {} is less than its {} columns", stride,
                            block.col_end - block.col_begin);
  }
  return Ok{};
}

Result<void> decode_open(const OpenPack& pack, Check check, int threads, std::span<uint16_t> out) {
  GLYD_CHECK(check_capacity(pack, out));
  const LayoutOps& ops = layout_ops(pack.header.layout);
  if (ops.open == nullptr) {
    raw::decode(pack, threads, out);
    return Ok{};
  }
  GLYD_TRY(auto decoder, ops.open(pack, check));
  GLYD_CHECK(decode_records(*decoder, pack.header, threads, out));
  return decoder->finish();
}

}  // namespace

Result<AlignedBuffer> pack_tensor(std::span<const uint16_t> bf16, const Grid& grid, bool transposed, Layout wanted,
                                  int threads, AlignedBuffer old) {
  GLYD_CHECK(check_shape(grid));
  if (bf16.size() != grid.stack * grid.rows * grid.cols) {
    return invalid_argument("pack: {} values given for a shape of {} x {} x {}", bf16.size(), grid.stack, grid.rows,
                            grid.cols);
  }
  const TensorSource source{bf16, grid, transposed, &old};
  const LayoutOps& first = layout_ops(bf16.empty() ? Layout::kRaw : wanted);
  for (const Layout layout : {first.layout, first.otherwise[0], first.otherwise[1]}) {
    GLYD_TRY(auto pack, layout_ops(layout).pack(source, threads));
    if (pack) return *std::move(pack);
  }
  return internal("pack: no layout holds the tensor");
}

Result<AlignedBuffer> pack_tensor_auto(std::span<const uint16_t> bf16, const Grid& grid, bool transposed, int threads) {
  GLYD_TRY(AlignedBuffer pack, pack_tensor(bf16, grid, transposed, Layout::kFast, threads));
  GLYD_TRY(const PackHeader header, read_pack_header(pack.bytes().first(kPackHeaderBytes), pack.size()));
  if (!fast::has_heavy_tails(header)) return pack;
  return pack_tensor(bf16, grid, transposed, Layout::kRaw, threads, std::move(pack));
}

Result<void> validate_pack(ByteSpan bytes, int threads) {
  GLYD_TRY(const OpenPack pack, open(bytes));
  const LayoutOps& ops = layout_ops(pack.header.layout);
  if (ops.open == nullptr) return Ok{};
  GLYD_TRY(auto decoder, ops.open(pack, Check::kEveryRule));
  GLYD_CHECK(visit_records(*decoder, pack.header, threads));
  return decoder->finish();
}

Result<void> decode_tensor(ByteSpan bytes, int threads, std::span<uint16_t> out) {
  GLYD_TRY(const OpenPack pack, open(bytes));
  return decode_open(pack, Check::kTrust, threads, out);
}

Result<void> decode_tensor_checked(ByteSpan bytes, int threads, std::span<uint16_t> out) {
  GLYD_TRY(const OpenPack pack, open(bytes));
  return decode_open(pack, Check::kEveryRule, threads, out);
}

Result<bool> decodes_to(ByteSpan bytes, int threads, std::span<const uint16_t> bf16) {
  GLYD_TRY(const OpenPack pack, open(bytes));
  if (pack.header.values() != bf16.size()) return false;
  const LayoutOps& ops = layout_ops(pack.header.layout);
  if (ops.open == nullptr)
    return bf16.empty() || std::memcmp(pack.array(raw::kData).data(), bf16.data(), bf16.size_bytes()) == 0;
  GLYD_TRY(auto decoder, ops.open(pack, Check::kEveryRule));
  GLYD_TRY(const bool same, compare_records(*decoder, pack.header, threads, bf16));
  GLYD_CHECK(decoder->finish());
  return same;
}

Result<void> decode_block(ByteSpan bytes, const Block& block, int threads, uint16_t* out, uint64_t stride) {
  GLYD_TRY(const OpenPack pack, open(bytes));
  GLYD_CHECK(check_block(pack.header.grid, block, stride));
  if (block.row_begin == block.row_end || block.col_begin == block.col_end) return Ok{};
  const LayoutOps& ops = layout_ops(pack.header.layout);
  if (ops.open == nullptr) {
    raw::decode_block(pack, block, threads, out, stride);
    return Ok{};
  }
  GLYD_TRY(auto decoder, ops.open(pack, Check::kTrust));
  return decode_records_of(*decoder, pack.header, block, threads, out, stride);
}

Result<void> decode_rows(ByteSpan bytes, std::span<const int64_t> indices, int threads, uint16_t* out) {
  GLYD_TRY(const OpenPack pack, open(bytes));
  const Grid& grid = pack.header.grid;
  const uint64_t rows = grid.stack == 0 ? 0 : grid.rows;
  for (const int64_t index : indices) {
    if (index < 0 || static_cast<uint64_t>(index) >= rows) {
      return invalid_argument("rows: index {} is outside 0-{} ({} rows)", index, static_cast<int64_t>(rows) - 1, rows);
    }
  }
  if (grid.cols == 0) return Ok{};
  const LayoutOps& ops = layout_ops(pack.header.layout);
  std::unique_ptr<RecordDecoder> decoder;
  if (ops.open != nullptr) {
    GLYD_TRY(decoder, ops.open(pack, Check::kTrust));
  }
  FirstError failure;
  parallel_for(indices.size(), 1, threads, [&](uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) {
      const auto row = static_cast<uint64_t>(indices[i]);
      const Block block{0, row, row + 1, 0, grid.cols};
      if (decoder == nullptr) {
        raw::decode_block(pack, block, 1, out + i * grid.cols, grid.cols);
      } else {
        failure.keep(i, decode_records_of(*decoder, pack.header, block, 1, out + i * grid.cols, grid.cols));
      }
    }
  });
  return failure.result();
}

}  // namespace glyd
