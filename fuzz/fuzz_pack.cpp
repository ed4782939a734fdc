// fuzz_pack.cpp - any bytes as a pack: a status, never a crash, and always the reference's verdict and bits, whatever
// the instruction set.
//
// The input is the pack itself (the golden vectors are seeds). The mutator puts length and checksum right after most
// mutations, so that the code behind them is reached.
#include <algorithm>
#include <optional>

#include "base/bytes.hpp"
#include "base/crc32c.hpp"
#include "common/guarded_buffer.hpp"
#include "common/isas.hpp"
#include "format/pack_header.hpp"
#include "glyd_reference.hpp"
#include "weights/weights.hpp"

namespace {

using glyd::fuzz::check;
using glyd::fuzz::GuardedBuffer;

constexpr std::uint64_t kMostValues = std::uint64_t{1} << 20;
constexpr std::size_t kMostPackBytes = std::size_t{1} << 20;

std::optional<std::vector<std::uint16_t>> reference_values(glyd::ByteSpan pack) {
  try {
    return glyd_reference::decode_pack(pack).values;
  } catch (const glyd_reference::Corrupt&) {
    return std::nullopt;
  }
}

// Whole decode; returns whether it was accepted. The bits of an accepted one must not depend on the instruction set.
bool decode_whole(glyd::ByteSpan pack, std::uint64_t values, int threads, std::vector<std::uint16_t>& out) {
  GuardedBuffer buffer(2 * values);
  const auto result = glyd::decode_tensor(pack, threads, buffer.as<std::uint16_t>());
  const auto decoded = buffer.as<std::uint16_t>();
  out.assign(decoded.begin(), decoded.end());
  return static_cast<bool>(result);
}

// A block, some rows and a product of matrix `matrix`, chosen by the pack's checksum; only staying in bounds counts,
// and on a good pack the bits.
void decode_parts(glyd::ByteSpan pack, const glyd::PackHeader& header, const std::vector<std::uint16_t>* whole) {
  const glyd::Grid& grid = header.grid;
  if (header.values() == 0) return;
  std::uint32_t dice = glyd::load_le<std::uint32_t>(pack.data() + 124);
  const auto below = [&dice](std::uint64_t limit) {
    dice = dice * 1664525 + 1013904223;
    return (std::uint64_t{dice} >> 8) % limit;
  };
  const std::uint64_t matrix = below(grid.stack), row = below(grid.rows), col = below(grid.cols);
  const std::uint64_t rows = 1 + below(grid.rows - row), cols = 1 + below(grid.cols - col);
  GuardedBuffer block(2 * rows * cols);
  const bool got = static_cast<bool>(
      glyd::decode_block(pack, {matrix, row, row + rows, col, col + cols}, 1, block.as<std::uint16_t>().data(), cols));
  if (whole != nullptr) {
    check(got);
    for (std::uint64_t i = 0; i < rows * cols; ++i) {
      const std::uint64_t r = row + i / cols, c = col + i % cols;
      const std::uint64_t at =
          matrix * grid.rows * grid.cols + (header.transposed ? c * grid.rows + r : r * grid.cols + c);
      check(block.as<std::uint16_t>()[i] == (*whole)[at]);
    }
  }
  const std::int64_t indices[] = {static_cast<std::int64_t>(row), static_cast<std::int64_t>(grid.rows - 1)};
  GuardedBuffer looked_up(2 * 2 * grid.cols);
  check(static_cast<bool>(glyd::decode_rows(pack, indices, 1, looked_up.as<std::uint16_t>().data())) ||
        whole == nullptr);

  const std::uint64_t tokens = 1 + below(3);
  GuardedBuffer x(2 * tokens * grid.cols), y(2 * tokens * grid.rows);
  for (auto& value : x.as<std::uint16_t>()) value = static_cast<std::uint16_t>(0x3f00 + below(512));
  const glyd::LinearArgs args{matrix,  x.as<std::uint16_t>().data(), tokens,   grid.cols,
                              nullptr, y.as<std::uint16_t>().data(), grid.rows};
  check(static_cast<bool>(glyd::linear(pack, args, 1)) || whole == nullptr);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > kMostPackBytes) return 0;
  GuardedBuffer copy(glyd::ByteSpan{data, size});
  copy.seal();
  const glyd::ByteSpan pack = copy.bytes();
  const auto header = glyd::open_pack(pack);
  if (header && header.value().values() > kMostValues) return 0;
  const auto expected = reference_values(pack);
  check(!expected || header);
  std::vector<std::uint16_t> first;
  for (const glyd::Isa isa : glyd::fuzz::isas()) {
    const glyd::ScopedIsa scoped(isa);
    check(static_cast<bool>(glyd::validate_pack(pack, 1)) == expected.has_value());
    if (!header) continue;
    std::vector<std::uint16_t> values;
    const bool accepted = decode_whole(pack, header.value().values(), 1 + static_cast<int>(isa) % 2, values);
    check(accepted || !expected);
    if (expected) check(values == *expected);
    decode_parts(pack, header.value(), expected ? &values : nullptr);
  }
  return 0;
}

#ifdef GLYD_LIBFUZZER
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

// Length and checksum as a pack of `size` bytes has them.
std::size_t put_right(std::uint8_t* data, std::size_t size, std::size_t max_size) {
  const std::size_t whole =
      std::min(glyd::round_up<std::size_t>(std::max<std::size_t>(size, 128), 128), max_size / 128 * 128);
  if (whole < 128) return size;
  if (whole > size) std::memset(data + size, 0, whole - size);
  std::memcpy(data, "GLYW\1", 5);
  glyd::store_le<std::uint64_t>(data + 32, whole);
  glyd::store_le<std::uint32_t>(data + 124, glyd::crc32c({data, 124}));
  return whole;
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  if (size < 256 || seed % 8 == 0) return LLVMFuzzerMutate(data, size, max_size);
  if (seed % 8 == 1) {  // the header's fields
    LLVMFuzzerMutate(data, 80, 80);
  } else {  // one array's neighbourhood, in place: a shift would only break the sizes
    const std::size_t begin = 128 + seed / 8 % (size - 128);
    const std::size_t length = std::min<std::size_t>(size - begin, 1 + seed / 64 % 64);
    LLVMFuzzerMutate(data + begin, length, length);
  }
  return put_right(data, size, max_size);
}
#endif
