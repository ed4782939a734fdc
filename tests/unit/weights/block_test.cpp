// Blocks and rows against the whole tensor, and what wrong arguments get.
#include <gtest/gtest.h>

#include "unit/weights/matrices.hpp"
#include "weights/registry.hpp"
#include "weights/weights.hpp"

namespace glyd::test {
namespace {

class Blocks : public testing::TestWithParam<Layout> {
 protected:
  void make(const Grid& grid, bool transposed) {
    grid_ = grid;
    transposed_ = transposed;
    values_ = make_values(matrix_kind("Gaussian"), grid.stack * grid.rows * grid.cols, grid.cols);
    auto pack = pack_tensor(values_, grid, transposed, GetParam(), 1);
    ASSERT_TRUE(pack);
    pack_ = std::move(pack).value();
  }
  // Element (row, col) of a matrix as it is packed.
  uint16_t at(uint64_t matrix, uint64_t row, uint64_t col) const {
    const uint64_t start = matrix * grid_.rows * grid_.cols;
    return values_[start + (transposed_ ? col * grid_.rows + row : row * grid_.cols + col)];
  }

  Grid grid_;
  bool transposed_ = false;
  Values values_;
  AlignedBuffer pack_;
};

TEST_P(Blocks, EqualTheTensorsPart) {
  for (const bool transposed : {false, true}) {
    make({3, 150, 530}, transposed);
    Random random(3);
    for (int i = 0; i < 60; ++i) {
      Block block;
      block.matrix = random() % 3;
      block.row_begin = random() % 150;
      block.row_end = block.row_begin + random() % (151 - block.row_begin);
      block.col_begin = i % 2 == 0 ? random() % 9 * 64 % 530 : random() % 530;
      block.col_end = block.col_begin + random() % (531 - block.col_begin);
      const uint64_t rows = block.row_end - block.row_begin, cols = block.col_end - block.col_begin,
                     stride = cols + random() % 5;
      Values out(rows * stride + 1, 0x5a5a);
      const auto result = decode_block(pack_.bytes(), block, 1 + i % 3, out.data(), stride);
      ASSERT_TRUE(result) << result.error().message;
      for (uint64_t r = 0; r < rows; ++r) {
        for (uint64_t c = 0; c < stride; ++c) {
          const uint16_t wanted = c < cols ? at(block.matrix, block.row_begin + r, block.col_begin + c) : 0x5a5a;
          ASSERT_EQ(out[r * stride + c], wanted) << r << ", " << c;
        }
      }
      EXPECT_EQ(out.back(), 0x5a5a);
    }
  }
}

TEST_P(Blocks, RowsByIndex) {
  for (const bool transposed : {false, true}) {
    make({1, 100, 333}, transposed);
    const std::vector<int64_t> indices = {0, 99, 5, 5, 16, 15, 98};
    Values out(indices.size() * 333);
    const auto result = decode_rows(pack_.bytes(), indices, 2, out.data());
    ASSERT_TRUE(result) << result.error().message;
    for (size_t i = 0; i < indices.size(); ++i) {
      for (uint64_t c = 0; c < 333; ++c) ASSERT_EQ(out[i * 333 + c], at(0, static_cast<uint64_t>(indices[i]), c));
    }
  }
}

TEST_P(Blocks, WrongArgumentsAreNamed) {
  make({2, 40, 50}, false);
  Values out(40 * 50);
  for (const Block block : {Block{2, 0, 1, 0, 1}, Block{0, 3, 2, 0, 1}, Block{0, 0, 41, 0, 1}, Block{0, 0, 1, 0, 51},
                            Block{0, 0, 1, 9, 8}, Block{0, 0, UINT64_MAX, 0, 1}}) {
    const auto result = decode_block(pack_.bytes(), block, 1, out.data(), 50);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().status, GLYD_ERROR_INVALID_ARGUMENT);
  }
  EXPECT_FALSE(decode_block(pack_.bytes(), {0, 0, 2, 0, 50}, 1, out.data(), 49));
  for (const int64_t index : {int64_t{-1}, int64_t{40}, INT64_MAX, INT64_MIN}) {
    const auto result = decode_rows(pack_.bytes(), std::array{int64_t{0}, index}, 1, out.data());
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().status, GLYD_ERROR_INVALID_ARGUMENT);
  }
  EXPECT_FALSE(decode_tensor(pack_.bytes(), 1, std::span(out).first(10)));
  EXPECT_FALSE(pack_tensor(out, {1, 40, 51}, false, GetParam(), 1));
}

INSTANTIATE_TEST_SUITE_P(Layouts, Blocks, testing::Values(Layout::kRaw, Layout::kFast, Layout::kSmall),
                         [](const auto& test) { return std::string(layout_ops(test.param).name); });

}  // namespace
}  // namespace glyd::test
