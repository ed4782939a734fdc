#include "weights/raw/raw.hpp"

#include <cstring>

#include "base/parallel.hpp"
#include "weights/tile.hpp"

namespace glyd::raw {
namespace {

constexpr uint64_t kCopyGrain = uint64_t{1} << 20;  // bytes

void copy(const uint8_t* from, uint8_t* to, uint64_t bytes, int threads) {
  parallel_for(bytes, kCopyGrain, threads,
               [&](uint64_t begin, uint64_t end) { std::memcpy(to + begin, from + begin, end - begin); });
}

}  // namespace

Result<std::optional<AlignedBuffer>> pack(const TensorSource& source, int threads) {
  PackHeader header;
  header.layout = Layout::kRaw;
  header.transposed = source.transposed;
  header.grid = source.grid;
  header.array_bytes[kData] = header.bf16_bytes();
  finish_sizes(header);
  AlignedBuffer pack = new_pack(source, header.pack_bytes);
  write_pack_header(header, pack.data());
  uint8_t* data = pack.data() + kPackHeaderBytes;
  copy(reinterpret_cast<const uint8_t*>(source.values.data()), data, header.bf16_bytes(), threads);
  std::memset(data + header.bf16_bytes(), 0, header.pack_bytes - kPackHeaderBytes - header.bf16_bytes());
  return std::optional(std::move(pack));
}

void decode(const OpenPack& pack, int threads, std::span<uint16_t> out) {
  copy(pack.array(kData).data(), reinterpret_cast<uint8_t*>(out.data()), out.size_bytes(), threads);
}

void decode_block(const OpenPack& pack, const Block& block, int threads, uint16_t* out, uint64_t stride) {
  const Grid& grid = pack.header.grid;
  const uint8_t* matrix = pack.array(kData).data() + 2 * block.matrix * grid.rows * grid.cols;
  const uint64_t cols = block.col_end - block.col_begin;
  const auto rows_of = [&](uint64_t begin, uint64_t end) {
    if (pack.header.transposed) {
      const uint8_t* from = matrix + 2 * (block.col_begin * grid.rows + block.row_begin + begin);
      transpose_tile(from, grid.rows, cols, end - begin, out + begin * stride, stride);
      return;
    }
    for (uint64_t r = begin; r < end; ++r) {
      std::memcpy(out + r * stride, matrix + 2 * ((block.row_begin + r) * grid.cols + block.col_begin), 2 * cols);
    }
  };
  parallel_for(block.row_end - block.row_begin, 64, threads, rows_of);
}

}  // namespace glyd::raw
