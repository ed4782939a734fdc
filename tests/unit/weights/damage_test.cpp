// Damaged packs: every flipped bit is refused or changes a value, and nothing reads or writes out of bounds (run with
// asan).
#include <gtest/gtest.h>

#include "unit/weights/matrices.hpp"
#include "weights/registry.hpp"
#include "weights/weights.hpp"

namespace glyd::test {
namespace {

struct Damaged {
  const char* kind;
  Grid grid;
};

class Damage : public testing::TestWithParam<Layout> {
 protected:
  // Calls `body(pack, values, random)` for packs that between them have every part of a layout.
  template <typename Body>
  void over_packs(Body body) {
    const Damaged cases[] = {
        {"Gaussian", {1, 30, 200}},         {"Gaussian", {2, 16, 256}},      {"OutlierBlocks", {1, 64, 330}},
        {"SomeNonFinite", {1, 20, 97}},     {"Zero", {1, 32, 64}},           {"One", {1, 17, 300}},
        {"PrunedNineTenths", {1, 48, 150}}, {"HeavyTails", {1, 50, 272}},    {"ScaledRows", {1, 64, 256}},
        {"TwoExponents", {1, 40, 200}},     {"SomeSubnormals", {1, 40, 129}}};
    Random random(11);
    for (const Damaged& one : cases) {
      const Values values =
          make_values(matrix_kind(one.kind), one.grid.stack * one.grid.rows * one.grid.cols, one.grid.cols);
      auto pack = pack_tensor(values, one.grid, false, GetParam(), 1);
      ASSERT_TRUE(pack);
      SCOPED_TRACE(one.kind);
      body(pack.value(), values, random);
    }
  }
};

TEST_P(Damage, NoBitIsIdle) {
  over_packs([](AlignedBuffer& pack, const Values& values, Random& random) {
    Values decoded(values.size());
    for (int i = 0; i < 400; ++i) {
      // Half of the flips in the last quarter, where the tables are.
      const size_t begin = i % 2 == 0 ? 0 : pack.size() / 4 * 3;
      const size_t bit = 8 * begin + random() % (8 * (pack.size() - begin));
      pack.data()[bit / 8] ^= static_cast<uint8_t>(1u << bit % 8);
      const bool valid = static_cast<bool>(validate_pack(pack.bytes(), 1));
      const bool decodes = static_cast<bool>(decode_tensor(pack.bytes(), 1, decoded));
      EXPECT_TRUE(!valid || !decodes || decoded != values) << "bit " << bit << " of " << 8 * pack.size();
      EXPECT_TRUE(decodes || !valid) << "bit " << bit;
      const bool checked = static_cast<bool>(decode_tensor_checked(pack.bytes(), 1, decoded));
      EXPECT_EQ(checked, valid) << "bit " << bit;
      pack.data()[bit / 8] ^= static_cast<uint8_t>(1u << bit % 8);
    }
  });
}

TEST_P(Damage, RandomBytesStayInBounds) {
  over_packs([](AlignedBuffer& pack, const Values& values, Random& random) {
    const Values kept(values);
    Values decoded(values.size());
    const std::vector<uint8_t> original(pack.data(), pack.data() + pack.size());
    for (int i = 0; i < 60; ++i) {
      const size_t begin = kPackHeaderBytes + random() % (pack.size() - kPackHeaderBytes);
      const size_t count = std::min<size_t>(pack.size() - begin, 1 + random() % 300);
      for (size_t b = begin; b < begin + count; ++b)
        pack.data()[b] = i % 3 == 0 ? 0xff : static_cast<uint8_t>(random());
      (void)static_cast<bool>(decode_tensor(pack.bytes(), 1, decoded));
      (void)static_cast<bool>(decode_tensor_checked(pack.bytes(), 1, decoded));
      std::copy(original.begin(), original.end(), pack.data());
    }
  });
}

TEST_P(Damage, TruncatedAndLongerPacksAreRefused) {
  over_packs([](AlignedBuffer& pack, const Values&, Random&) {
    std::vector<uint8_t> bytes(pack.data(), pack.data() + pack.size());
    for (const size_t size : {size_t{0}, size_t{4}, size_t{127}, size_t{128}, pack.size() - 128, pack.size() - 1}) {
      if (size == pack.size()) continue;
      EXPECT_FALSE(validate_pack(ByteSpan(bytes).first(size), 1)) << size;
    }
    bytes.resize(pack.size() + 128);
    EXPECT_FALSE(validate_pack(bytes, 1));
  });
}

INSTANTIATE_TEST_SUITE_P(Layouts, Damage, testing::Values(Layout::kRaw, Layout::kFast, Layout::kSmall),
                         [](const auto& test) { return std::string(layout_ops(test.param).name); });

}  // namespace
}  // namespace glyd::test
