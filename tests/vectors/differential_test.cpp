// differential_test.cpp - what the library packs, the reference decodes to the same bits and takes for valid.
#include <random>

#include "glyd_reference.hpp"
#include "vectors_support.hpp"

namespace {

// The families of matrices: how a value is drawn.
enum class Family { kTrained, kWide, kAnyBits, kPruned, kConstant, kSpecials };
constexpr Family kFamilies[] = {Family::kTrained, Family::kWide,     Family::kAnyBits,
                                Family::kPruned,  Family::kConstant, Family::kSpecials};

std::uint16_t draw(Family family, std::mt19937_64& random) {
  const auto bits = static_cast<std::uint16_t>(random());
  const auto with_exponent = [&](unsigned exponent) {
    return static_cast<std::uint16_t>((bits & 0x807f) | exponent << 7);
  };
  unsigned fall = 0;
  while (fall < 40 && random() % 5 < 2) ++fall;
  switch (family) {
    case Family::kTrained:
      return with_exponent(124 - fall);
    case Family::kWide:
      return with_exponent(124 - 3 * fall);
    case Family::kAnyBits:
      return bits;
    case Family::kPruned:
      return random() % 10 < 6 ? std::uint16_t{0} : with_exponent(122 - fall);
    case Family::kConstant:
      return 0xbf80;
    case Family::kSpecials: {
      constexpr std::uint16_t kSpecials[] = {0, 0x8000, 1, 0x807f, 0x7f80, 0xff80, 0x7fc0, 0xffff, 0x0080, 0x7f7f};
      return random() % 50 == 0 ? kSpecials[random() % std::size(kSpecials)] : with_exponent(120 - fall);
    }
  }
  return 0;
}

void expect_reference_agrees(const glyd_shape& shape, Family family, glyd_layout layout, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::uint16_t> values(shape.stack * shape.rows * shape.cols);
  for (auto& value : values) value = draw(family, random);
  std::uint64_t capacity = 0, bytes = 0;
  ASSERT_EQ(glyd_pack_bound(&shape, &capacity), GLYD_OK);
  std::vector<std::uint8_t> pack(capacity);
  ASSERT_EQ(glyd_pack(values.data(), &shape, layout, 1, pack.data(), capacity, &bytes), GLYD_OK) << glyd_last_error();
  pack.resize(bytes);
  EXPECT_LE(static_cast<double>(bytes), 2.0 * static_cast<double>(values.size()) * 1.01 + 4096);
  EXPECT_EQ(glyd_pack_validate(pack.data(), pack.size(), 1), GLYD_OK) << glyd_last_error();
  try {
    const auto tensor = glyd_reference::decode_pack(pack);
    EXPECT_EQ(tensor.values, values);
    glyd_pack_info info{};
    info.struct_size = sizeof info;
    ASSERT_EQ(glyd_pack_read_info(pack.data(), pack.size(), &info), GLYD_OK);
    const auto& header = tensor.header;
    EXPECT_EQ(static_cast<int>(header.layout), static_cast<int>(info.layout));
    EXPECT_EQ(header.fusible, info.fusible != 0);
    EXPECT_EQ(header.base, info.base);
    EXPECT_EQ(header.slot_bytes, info.slot_bytes);
    EXPECT_EQ(header.min_bits, info.min_bits);
    EXPECT_EQ(header.symbols, info.symbols);
  } catch (const glyd_reference::Corrupt& error) {
    ADD_FAILURE() << "the reference refuses it: " << error.what();
  }
}

TEST(Differential, ReferenceDecodesWhatTheLibraryPacks) {
  SKIP_UNLESS_ISA_RUNS_HERE();
  const glyd_shape shapes[] = {{1, 0, 5, 0, 0},     {1, 1, 1, 0, 0},    {1, 16, 16, 0, 0}, {3, 17, 33, 0, 0},
                               {1, 48, 320, 0, 0},  {1, 33, 872, 0, 0}, {2, 40, 96, 1, 0}, {1, 5, 1025, 0, 0},
                               {1, 200, 127, 1, 0}, {1, 64, 256, 0, 0}};
  std::uint64_t seed = 1;
  for (const auto& shape : shapes) {
    for (const Family family : kFamilies) {
      for (const glyd_layout layout : {GLYD_LAYOUT_RAW, GLYD_LAYOUT_FAST, GLYD_LAYOUT_SMALL}) {
        SCOPED_TRACE(testing::Message() << shape.stack << 'x' << shape.rows << 'x' << shape.cols << " transposed "
                                        << shape.transposed << " family " << static_cast<int>(family) << " layout "
                                        << static_cast<int>(layout) << " seed " << seed);
        expect_reference_agrees(shape, family, layout, seed++);
      }
    }
  }
}

TEST(Differential, ReferenceDecodesRandomShapes) {
  SKIP_UNLESS_ISA_RUNS_HERE();
  std::mt19937_64 random(20);
  for (std::uint64_t seed = 1000; seed < 1100; ++seed) {
    const glyd_shape shape{1 + random() % 3, random() % 70, random() % 300, static_cast<std::uint32_t>(random() % 2),
                           0};
    const Family family = kFamilies[random() % std::size(kFamilies)];
    const glyd_layout layout = random() % 2 == 0 ? GLYD_LAYOUT_FAST : GLYD_LAYOUT_SMALL;
    SCOPED_TRACE(testing::Message() << shape.stack << 'x' << shape.rows << 'x' << shape.cols << " transposed "
                                    << shape.transposed << " family " << static_cast<int>(family) << " layout "
                                    << static_cast<int>(layout) << " seed " << seed);
    expect_reference_agrees(shape, family, layout, seed);
  }
}

}  // namespace
