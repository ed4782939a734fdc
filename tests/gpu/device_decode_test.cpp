// The decoding logic of the CUDA kernels, run on the CPU against the CPU library: every kind of matrix, odd shapes.
#include <gtest/gtest.h>

#include "decode/fast_chunk.hpp"
#include "decode/small_reader.hpp"
#include "format/fast_patch.hpp"
#include "unit/weights/matrices.hpp"
#include "weights/weights.hpp"

namespace glyd::test {
namespace {

struct Decoded {
  Grid grid;
  Values values;
  void set(uint64_t strip, uint64_t row, uint64_t col, uint16_t value) {
    const uint64_t r = strip % grid.strips_a_matrix() * kStripRows + row;
    if (r < grid.rows && col < grid.cols) {
      values[(strip / grid.strips_a_matrix() * grid.rows + r) * grid.cols + col] = value;
    }
  }
};

uint32_t word_at(const uint8_t* p) { return load_le<uint32_t>(p); }

// A lane's words of a chunk of `steps` steps, as the kernels load them.
void load_words(const uint8_t* chunk, uint32_t steps, uint32_t lane, uint32_t (&low)[8], uint32_t (&high)[3]) {
  for (uint32_t step = 0; step < steps; ++step) {
    const bool lone = step % 2 == 0 && step + 1 == steps;
    const uint8_t* p = chunk + step / 2 * 512 + (lone ? lane * 8 : lane * 16 + step % 2 * 8);
    low[2 * step] = word_at(p), low[2 * step + 1] = word_at(p + 4);
  }
  for (uint32_t i = 0; i < std::min(steps, 3u); ++i)
    high[i] = word_at(chunk + fast::low_plane_bytes(steps) + 128 * i + lane * 4);
}

// The scratch of upper exponent bytes that a warp keeps.
std::vector<uint8_t> patched_scratch(const PackHeader& header, ByteSpan pack, uint64_t strip, uint64_t record,
                                     uint32_t steps) {
  std::vector<uint8_t> scratch(2048, cuda::kWindowByte);
  const uint32_t bytes = fast::slot_bytes_of(header.slot_bytes, steps);
  if (bytes == 0) return scratch;
  const uint8_t* slot = header.array(pack, fast::kPatches).data() +
                        strip * fast::strip_slot_bytes(header.slot_bytes, header.grid.steps()) +
                        record * header.slot_bytes;
  std::vector<uint8_t> padded(slot, slot + bytes);  // entries are read by words, up to 8 bytes at a time
  padded.resize(bytes + 16);
  const cuda::SlotHeader counts = cuda::slot_header(word_at(slot) & 0xffff);
  for (uint32_t i = 0; i < counts.entries(); ++i) {
    const uint8_t* p = padded.data() + cuda::entry_word(i) * 4;
    const uint64_t bits = load_le<uint64_t>(p) >> cuda::entry_shift(i);
    const cuda::Patch patch = cuda::slot_patch(static_cast<uint32_t>(bits), i >= counts.first);
    scratch[patch.place] = static_cast<uint8_t>(patch.byte);
  }
  if (counts.overflow) {
    const uint8_t* group = header.array(pack, fast::kOverflow).data() + uint64_t{4} * word_at(slot + bytes - 4);
    for (uint32_t i = 0; i < word_at(group); ++i) {
      const cuda::Patch patch = cuda::overflow_patch(word_at(group + 4 + 4 * i));
      scratch[patch.place] = static_cast<uint8_t>(patch.byte);
    }
  }
  return scratch;
}

void decode_fast_record(const PackHeader& header, ByteSpan pack, uint64_t strip, uint64_t record, Decoded& out) {
  const uint64_t steps = header.grid.steps();
  const uint32_t here = fast::steps_of_record(steps, record);
  const uint8_t* planes =
      header.array(pack, fast::kPlanes).data() + strip * fast::strip_bytes(steps) + record * fast::kRecordBytes;
  const auto scratch = patched_scratch(header, pack, strip, record, here);
  for (uint32_t chunk = 0; chunk < 2; ++chunk) {
    const uint32_t present = fast::chunk_steps(here, chunk);
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      uint32_t low[8] = {}, high[3] = {}, upper[8], pairs[16];
      load_words(planes + chunk * fast::kChunkBytes, present, lane, low, high);
      for (uint32_t w = 0; w < 8; ++w) upper[w] = word_at(&scratch[chunk * 1024 + w / 4 * 512 + lane * 16 + w % 4 * 4]);
      cuda::decode_chunk(low, high, upper, pairs);
      for (uint32_t j = 0; j < present * 8; ++j) {
        const uint16_t shifted = static_cast<uint16_t>(pairs[j / 2] >> (j % 2 * 16));
        const uint32_t exponent = fast::unshift_exponent(bf16_exponent(shifted), header.base);
        out.set(strip, fragment_row(lane, j % 8),
                record * 128 + (chunk * 4 + j / 8) * kStepCols + fragment_col(lane, j % 8),
                bf16_join(bf16_sign(shifted), exponent, bf16_mantissa(shifted)));
      }
    }
  }
}

// The table, filled pair by pair as the threads of a block fill it.
std::vector<uint32_t> fill_table(const uint8_t* table) {
  std::vector<uint32_t> entries(cuda::kCodeEntries, 0);
  uint32_t counts[16] = {}, before[16] = {};
  for (uint32_t p = 0; p < small::kPairs; ++p) ++counts[cuda::pair_length(table, p)];
  for (uint32_t p = 0; p < small::kPairs; ++p)
    cuda::fill_code(table, p, counts, before[cuda::pair_length(table, p)]++, entries.data());
  return entries;
}

void decode_small_record(const PackHeader& header, ByteSpan pack, const std::vector<uint32_t>& table, uint64_t strip,
                         uint64_t record, Decoded& out) {
  const uint64_t steps = header.grid.steps(), strips = header.grid.strips();
  const uint32_t here = small::steps_of_record(steps, record), streams = small::streams_of_record(here);
  const ByteSpan codes = header.array(pack, small::kCodes), offsets = header.array(pack, small::kOffsets);
  const auto* words = reinterpret_cast<const uint32_t*>(codes.data());
  const uint64_t count = codes.size() / 4;
  const uint32_t entry = word_at(offsets.data() + small::offsets_table_start(strips) +
                                 4 * (strip * small::records_a_strip(steps) + record));
  const uint64_t start = load_le<uint64_t>(offsets.data() + 8 * strip) + (entry & 0xffffff);
  std::vector<uint32_t> exponents(here * 32 * 4);
  int64_t bit = static_cast<int64_t>((start + streams * 4) * 32);
  for (uint32_t region = 0; region < streams * 16; ++region) {
    const uint32_t stream = region / 16, count_steps = small::stream_steps(here, stream);
    const int64_t bits = small::least_region_bits(header.min_bits, count_steps) + codes[start * 4 + region];
    for (uint32_t side = 0; side < 2; ++side) {
      cuda::CodeReader reader{words, count, side == 0 ? bit : bit + bits, side == 1};
      for (uint32_t i = 0; i < count_steps * 4; ++i) {
        exponents[((stream * 8 + i / 4) * 32 + 2 * (region % 16) + side) * 4 + i % 4] =
            cuda::code_exponents(reader.next(table.data()));
      }
    }
    bit += bits;
  }
  for (uint32_t i = 0; i < entry >> 24; ++i) {
    const uint32_t patch = words[static_cast<uint64_t>(bit + 31) / 32 + i];
    const uint32_t step = (patch >> 7 & 1) * 8 + (patch >> 8 & 7);
    exponents[(step * 32 + (patch & 31)) * 4 + (patch >> 5 & 3)] = cuda::code_exponents(patch >> 16);
  }
  const uint8_t* plane =
      header.array(pack, small::kPlanes).data() + (strip * steps + record * 16) * small::kStepPlaneBytes;
  for (uint32_t i = 0; i < here * 32 * 4; ++i) {
    const uint32_t step = i / 128, lane = i / 4 % 32, pair = i % 4;
    const uint32_t value =
        cuda::pair_signs(word_at(plane + (step * 32 + lane) * 8 + pair / 2 * 4), pair) | exponents[i];
    for (uint32_t h = 0; h < 2; ++h) {
      out.set(strip, fragment_row(lane, 2 * pair + h),
              (record * 16 + step) * kStepCols + fragment_col(lane, 2 * pair + h),
              static_cast<uint16_t>(value >> (16 * h)));
    }
  }
}

class DeviceDecodeTest : public testing::TestWithParam<Layout> {};

TEST_P(DeviceDecodeTest, GivesTheSourcesBits) {
  const Grid grids[] = {{1, 16, 128}, {1, 33, 300}, {2, 17, 16}, {1, 1, 1}, {3, 5, 2049}, {1, 64, 112}, {1, 256, 256}};
  for (const MatrixKind& kind : matrix_kinds()) {
    for (const Grid& grid : grids) {
      SCOPED_TRACE(kind.name + " " + std::to_string(grid.rows) + " x " + std::to_string(grid.cols));
      const Values values = make_values(kind, grid.stack * grid.rows * grid.cols, grid.cols, 7);
      auto packed = pack_tensor(values, grid, false, GetParam(), 1);
      ASSERT_TRUE(packed) << packed.error().message;
      const ByteSpan pack = packed.value().bytes();
      const auto header = open_pack(pack);
      ASSERT_TRUE(header) << header.error().message;
      if (header.value().layout != GetParam()) continue;  // it did not pay
      Decoded out{grid, Values(values.size(), 0xdead)};
      std::vector<uint32_t> table;
      if (GetParam() == Layout::kSmall) table = fill_table(header.value().array(pack, small::kTable).data());
      const uint64_t steps = grid.steps();
      for (uint64_t strip = 0; strip < grid.strips(); ++strip) {
        const uint64_t records =
            GetParam() == Layout::kFast ? fast::records_a_strip(steps) : small::records_a_strip(steps);
        for (uint64_t record = 0; record < records; ++record) {
          if (GetParam() == Layout::kFast) {
            decode_fast_record(header.value(), pack, strip, record, out);
          } else {
            decode_small_record(header.value(), pack, table, strip, record, out);
          }
        }
      }
      ASSERT_EQ(out.values, values);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, DeviceDecodeTest, testing::Values(Layout::kFast, Layout::kSmall),
                         [](const auto& layout) { return layout.param == Layout::kFast ? "Fast" : "Small"; });

TEST(DeviceDecode, CodeReaderStaysInsideItsWords) {
  const uint32_t words[2] = {0x12345678, 0x9abcdef0};
  EXPECT_EQ(cuda::bits_at(words, 2, 0), 0x12345678u);
  EXPECT_EQ(cuda::bits_at(words, 2, 4), 0x01234567u);
  EXPECT_EQ(cuda::bits_at(words, 2, 40), 0x009abcdeu);
  EXPECT_EQ(cuda::bits_at(words, 2, 64), 0u);
  EXPECT_EQ(cuda::bits_at(words, 2, -8), 0x34567800u);
  EXPECT_EQ(cuda::bits_at(words, 2, -64), 0u);
}

// A row of 64 columns has 128 bytes; its pieces of 16 bytes are exchanged by the row's lowest three bits.
TEST(DeviceDecode, SwizzledPlaces) {
  for (uint32_t place = 0; place < fast::kChunkWeights; ++place) {
    const uint32_t row = fast::place_row(place), col = fast::place_col(0, place);
    const uint32_t expected = row * 128 + (col / 8 ^ row % 8) * 16 + col % 8 * 2;
    EXPECT_EQ(cuda::swizzled_place(place), expected) << place;
    EXPECT_EQ(cuda::swizzled_place(place | 0xfffffc00), expected) << place << " with higher bits";
  }
}

}  // namespace
}  // namespace glyd::test
