// The pack header: what is written is read, and every rule of docs/spec/weights.md 2 refuses what breaks it.
#include "format/pack_header.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/crc32c.hpp"
#include "format/fast_plan.hpp"
#include "format/small_plan.hpp"

namespace glyd::test {
namespace {

PackHeader fast_header() { return fast::plan_header({2, 100, 300}, true, 113, 48, 25); }

using Bytes = std::array<uint8_t, kPackHeaderBytes>;
Bytes written(const PackHeader& header) {
  Bytes bytes;
  write_pack_header(header, bytes.data());
  return bytes;
}
void set_checksum(Bytes& bytes) { store_le<uint32_t>(bytes.data() + 124, crc32c(ByteSpan(bytes).first(124))); }

TEST(PackHeader, ComesBackAsWritten) {
  const PackHeader header = fast_header();
  const auto read = read_pack_header(written(header), header.pack_bytes);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read.value().layout, Layout::kFast);
  EXPECT_TRUE(read.value().transposed);
  EXPECT_FALSE(read.value().fusible);
  EXPECT_EQ(read.value().grid.rows, 100u);
  EXPECT_EQ(read.value().array_bytes, header.array_bytes);
  EXPECT_EQ(read.value().base, 113u);
  EXPECT_EQ(read.value().slot_bytes, 48u);
}

TEST(PackHeader, SmallComesBackAsWritten) {
  small::PairCode code;
  code.symbols = 9;
  const PackHeader header = small::plan_header({1, 40, 600}, false, code, 144, 900);
  const auto read = read_pack_header(written(header), header.pack_bytes);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read.value().min_bits, 144u);
  EXPECT_EQ(read.value().symbols, 9u);
  EXPECT_EQ(read.value().pack_bytes, header.pack_bytes);
}

TEST(PackHeader, EveryFlippedBitIsRefused) {
  const PackHeader header = fast_header();
  for (size_t bit = 0; bit < 8 * kPackHeaderBytes; ++bit) {
    Bytes bytes = written(header);
    bytes[bit / 8] ^= static_cast<uint8_t>(1u << bit % 8);
    EXPECT_FALSE(read_pack_header(bytes, header.pack_bytes)) << "bit " << bit;
  }
}

TEST(PackHeader, ForeignVersionIsNamed) {
  Bytes bytes = written(fast_header());
  bytes[4] = 9;
  set_checksum(bytes);
  const auto read = read_pack_header(bytes, fast_header().pack_bytes);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().status, GLYD_ERROR_FOREIGN_FORMAT);
  EXPECT_THAT(read.error().message, testing::HasSubstr("version 9"));
}

struct Rejection {
  const char* name;
  size_t at;
  uint8_t value;
  const char* message;
};
class PackHeaderRejects : public testing::TestWithParam<Rejection> {};

// The checksum is right, so that the rule itself must refuse.
TEST_P(PackHeaderRejects, ByName) {
  Bytes bytes = written(fast_header());
  ASSERT_NE(bytes[GetParam().at], GetParam().value);
  bytes[GetParam().at] = GetParam().value;
  set_checksum(bytes);
  const auto read = read_pack_header(bytes, fast_header().pack_bytes);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().status, GLYD_ERROR_CORRUPT);
  EXPECT_THAT(read.error().message, testing::HasSubstr(GetParam().message));
}
INSTANTIATE_TEST_SUITE_P(
    Rules, PackHeaderRejects,
    testing::Values(Rejection{"Magic", 0, 'X', "GLYW"}, Rejection{"Layout", 6, 3, "layout"},
                    Rejection{"Flags", 7, 4, "flags"}, Rejection{"Stack", 15, 1, "2^31"},
                    Rejection{"Rows", 16, 113, "planes"}, Rejection{"RowsTooMany", 20, 1, "2^31"},
                    Rejection{"Cols", 25, 8, "planes"}, Rejection{"PackBytes", 33, 0, "bytes"},
                    Rejection{"Planes", 40, 1, "planes"}, Rejection{"Patches", 48, 1, "patches"},
                    Rejection{"Overflow", 56, 101, "overflow"}, Rejection{"FourthArray", 64, 4, "array 3"},
                    Rejection{"ArrayPastTheEnd", 47, 1, "array 0"}, Rejection{"BaseZero", 72, 0, "base"},
                    Rejection{"BaseTooHigh", 72, 248, "base"}, Rejection{"Byte73", 73, 1, "73"},
                    Rejection{"SlotNotAMultiple", 74, 47, "slot_bytes"}, Rejection{"SlotTooLarge", 75, 2, "slot_bytes"},
                    Rejection{"Parameters", 76, 1, "parameter"}, Rejection{"Reserved", 100, 1, "reserved"}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(PackHeader, ShapeLimits) {
  EXPECT_TRUE(check_shape({1, 1u << 20, 1u << 20}));
  EXPECT_FALSE(check_shape({2, 1u << 20, 1u << 20}));  // 2^41 values
  EXPECT_FALSE(check_shape({1, uint64_t{1} << 31, 1}));
  EXPECT_FALSE(check_shape({(1u << 31) - 1, (1u << 31) - 1, 0x7fffffff}));
  EXPECT_TRUE(check_shape({0, 0x7fffffff, 0x7fffffff}));
  EXPECT_FALSE(check_shape({1, 0x7fffffff, 1024}));  // 2^41 values
  EXPECT_TRUE(check_shape({(1u << 31) - 1, 1, 1}));
}

TEST(PackHeader, PaddingBehindArraysIsChecked) {
  const PackHeader header = fast::plan_header({1, 16, 16}, false, 113, 16, 3);
  std::vector<uint8_t> pack(header.pack_bytes);
  write_pack_header(header, pack.data());
  EXPECT_TRUE(open_pack(pack));
  for (const size_t at :
       {header.array_offset(fast::kPatches) + 16, header.array_offset(fast::kOverflow) + 12, header.pack_bytes - 1}) {
    pack[at] = 1;
    EXPECT_FALSE(open_pack(pack)) << at;
    pack[at] = 0;
  }
}

}  // namespace
}  // namespace glyd::test
