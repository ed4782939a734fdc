// Every kind of matrix in many shapes comes back bit for bit, from a pack that passes every check, at any number of
// threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/weights/matrices.hpp"
#include "weights/registry.hpp"
#include "weights/weights.hpp"

namespace glyd::test {
namespace {

struct Shape {
  Grid grid;
  bool transposed;
};

void PrintTo(const Shape& shape, std::ostream* out) {
  *out << shape.grid.stack << "x" << shape.grid.rows << "x" << shape.grid.cols
       << (shape.transposed ? " transposed" : "");
}

std::vector<Shape> edge_shapes() {
  std::vector<Shape> shapes;
  const uint64_t sides[] = {1, 15, 16, 17, 127, 128, 129};
  for (const uint64_t rows : sides) {
    for (const uint64_t cols : sides) shapes.push_back({{1, rows, cols}, (rows + cols) % 3 == 0});
  }
  shapes.push_back({{1, 33, 255}, false});
  shapes.push_back({{1, 33, 257}, true});
  shapes.push_back({{3, 17, 40}, false});
  shapes.push_back({{5, 40, 17}, true});
  shapes.push_back({{1, 257, 300}, false});
  return shapes;
}

void expect_round_trip(const Values& values, const Shape& shape, Layout layout, int threads) {
  auto pack = pack_tensor(values, shape.grid, shape.transposed, layout, threads);
  ASSERT_TRUE(pack) << pack.error().message;
  const ByteSpan bytes = pack.value().bytes();
  EXPECT_LE(bytes.size(), pack_bound(shape.grid));
  const auto valid = validate_pack(bytes, threads);
  EXPECT_TRUE(valid) << valid.error().message;
  Values decoded(values.size(), 0xabcd);
  const auto result = decode_tensor(bytes, threads, decoded);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_TRUE(decoded == values);
  std::fill(decoded.begin(), decoded.end(), uint16_t{0xabcd});
  const auto checked = decode_tensor_checked(bytes, threads, decoded);
  ASSERT_TRUE(checked) << checked.error().message;
  EXPECT_TRUE(decoded == values);
  const auto decodes = [&](const Values& others) {
    const auto same = decodes_to(bytes, threads, others);
    EXPECT_TRUE(same) << same.error().message;
    return same && same.value();
  };
  EXPECT_TRUE(decodes(values));
  for (const size_t changed : {size_t{0}, values.size() / 2, values.size() - 1}) {
    if (changed >= values.size()) continue;
    decoded[changed] ^= 1;
    EXPECT_FALSE(decodes(decoded)) << "value " << changed;
    decoded[changed] ^= 1;
  }
  if (!values.empty()) {
    decoded.pop_back();
    EXPECT_FALSE(decodes(decoded));
  }
}

class RoundTrip : public testing::TestWithParam<Layout> {};

TEST_P(RoundTrip, EveryKindInEdgeShapes) {
  for (const MatrixKind& kind : matrix_kinds()) {
    for (const Shape& shape : edge_shapes()) {
      SCOPED_TRACE(testing::Message() << kind.name << " " << testing::PrintToString(shape));
      const Values values = make_values(kind, shape.grid.stack * shape.grid.rows * shape.grid.cols, shape.grid.cols);
      expect_round_trip(values, shape, GetParam(), 1);
    }
  }
}

TEST_P(RoundTrip, EveryKindInALargerMatrix) {
  for (const MatrixKind& kind : matrix_kinds()) {
    for (const bool transposed : {false, true}) {
      SCOPED_TRACE(testing::Message() << kind.name << (transposed ? " transposed" : ""));
      const Grid grid{1, 270, 1000};
      expect_round_trip(make_values(kind, 270 * 1000, 1000), {grid, transposed}, GetParam(), 2);
    }
  }
}

// From 8 MiB on rows are written past the caches, line by line.
TEST_P(RoundTrip, LargeOutputsAtAnyAlignment) {
  constexpr uint16_t kCanary = 0xabcd;
  for (const uint64_t cols : {5, 37, 300, 4096, 4103}) {
    const Grid grid{1, (uint64_t{8} << 20) / (2 * cols) + 1, cols};
    const Values values = make_values(matrix_kinds()[0], grid.rows * cols, cols);
    auto pack = pack_tensor(values, grid, false, GetParam(), 2);
    ASSERT_TRUE(pack) << pack.error().message;
    Values memory(values.size() + 64);
    for (const size_t offset : {0, 1, 15, 31}) {
      SCOPED_TRACE(testing::Message() << cols << " columns, " << offset << " values behind the start");
      std::fill(memory.begin(), memory.end(), kCanary);
      const auto result = decode_tensor(pack.value().bytes(), 2, std::span(memory).subspan(offset, values.size()));
      ASSERT_TRUE(result) << result.error().message;
      EXPECT_TRUE(std::equal(values.begin(), values.end(), memory.begin() + static_cast<ptrdiff_t>(offset)));
      for (size_t i = 0; i < memory.size(); ++i) {
        const bool outside = i < offset || i >= offset + values.size();
        ASSERT_TRUE(!outside || memory[i] == kCanary) << i;
      }
    }
  }
}

// The memory of an older pack, larger, smaller or much larger, changes nothing.
TEST_P(RoundTrip, OldMemoryIsTakenOver) {
  const Values values = make_values(matrix_kinds()[0], 300 * 200, 200);
  const auto fresh = pack_tensor(values, {1, 300, 200}, false, GetParam(), 1);
  ASSERT_TRUE(fresh);
  for (const size_t old_bytes : {size_t{1}, fresh.value().size(), 2 * fresh.value().size(), size_t{64} << 20}) {
    AlignedBuffer old(old_bytes);
    std::memset(old.data(), 0xff, old.size());
    const auto again = pack_tensor(values, {1, 300, 200}, false, GetParam(), 1, std::move(old));
    ASSERT_TRUE(again);
    const ByteSpan a = fresh.value().bytes(), b = again.value().bytes();
    EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end())) << old_bytes;
  }
}

TEST_P(RoundTrip, EmptyTensorsAreRaw) {
  for (const Grid grid : {Grid{0, 4, 4}, Grid{1, 0, 5}, Grid{1, 5, 0}, Grid{0, 0, 0}, Grid{7, 0, 0}}) {
    auto pack = pack_tensor({}, grid, false, GetParam(), 1);
    ASSERT_TRUE(pack) << pack.error().message;
    const auto header = open_pack(pack.value().bytes());
    ASSERT_TRUE(header);
    EXPECT_EQ(header.value().layout, Layout::kRaw);
    EXPECT_TRUE(validate_pack(pack.value().bytes(), 1));
    EXPECT_TRUE(decode_tensor(pack.value().bytes(), 1, {}));
  }
}

TEST_P(RoundTrip, BytesDoNotDependOnThreads) {
  for (const char* name : {"Gaussian", "OutlierBlocks", "HeavyTails", "EveryValueShuffled"}) {
    const Grid grid{2, 333, 500};
    const Values values = make_values(matrix_kind(name), 2 * 333 * 500, 500);
    for (const bool transposed : {false, true}) {
      auto one = pack_tensor(values, grid, transposed, GetParam(), 1);
      ASSERT_TRUE(one);
      for (const int threads : {2, 5}) {
        auto many = pack_tensor(values, grid, transposed, GetParam(), threads);
        ASSERT_TRUE(many);
        EXPECT_THAT(many.value().bytes(), testing::ElementsAreArray(one.value().bytes())) << name;
        Values decoded(values.size());
        ASSERT_TRUE(decode_tensor(one.value().bytes(), threads, decoded));
        EXPECT_TRUE(decoded == values) << name;
      }
    }
  }
}

TEST_P(RoundTrip, TrainedLikeWeightsKeepTheirLayout) {
  const Grid grid{1, 320, 872};
  auto pack = pack_tensor(make_values(matrix_kind("Gaussian"), 320 * 872, 872), grid, false, GetParam(), 1);
  ASSERT_TRUE(pack);
  EXPECT_EQ(open_pack(pack.value().bytes()).value().layout, GetParam());
}

// A weight in fifty of a rare exponent: products would wait for its patches, so packs for products hold bf16.
TEST(PackForProducts, HeavyTailsBecomeRaw) {
  const Grid grid{1, 64, 1024};
  const auto layout_of = [&](const Values& values) {
    const auto pack = pack_tensor_auto(values, grid, false, 1);
    EXPECT_TRUE(pack);
    return static_cast<Layout>(pack.value().bytes()[6]);
  };
  Values values = make_values(matrix_kind("Gaussian"), grid.rows * grid.cols, grid.cols, 8);
  EXPECT_EQ(layout_of(values), Layout::kFast);
  for (uint64_t i = 0; i < values.size(); i += 51) values[i] = bf16_join(0, static_cast<uint32_t>(60 + i % 89), 1);
  EXPECT_EQ(layout_of(values), Layout::kRaw);
  const auto fast = pack_tensor(values, grid, false, Layout::kFast, 1);
  ASSERT_TRUE(fast);
  EXPECT_EQ(static_cast<Layout>(fast.value().bytes()[6]), Layout::kFast);
}

TEST_P(RoundTrip, RandomBitsFallBackToRaw) {
  const Grid grid{1, 200, 300};
  auto pack = pack_tensor(make_values(matrix_kind("RandomBits"), 200 * 300, 300), grid, false, GetParam(), 1);
  ASSERT_TRUE(pack);
  EXPECT_EQ(open_pack(pack.value().bytes()).value().layout, Layout::kRaw);
}

INSTANTIATE_TEST_SUITE_P(Layouts, RoundTrip, testing::Values(Layout::kRaw, Layout::kFast, Layout::kSmall),
                         [](const auto& test) { return std::string(layout_ops(test.param).name); });

}  // namespace
}  // namespace glyd::test
