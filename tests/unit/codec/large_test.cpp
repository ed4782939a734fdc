// Contents past 4 GiB, never held in memory: nothing counts in 32 bits, and nothing changes near the limits.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "glyd/codec.h"

namespace {

constexpr uint64_t kContentBytes = (uint64_t{4} << 30) + (uint64_t{300} << 20) + 12345;
constexpr size_t kPieceBytes = 1 << 20;

// Mostly one byte a mebibyte, its number in front.
void fill(std::vector<char>& piece, uint64_t index) {
  std::memset(piece.data(), static_cast<int>(index % 251), piece.size());
  std::memcpy(piece.data(), &index, sizeof index);
}

glyd_status append(void* context, const void* bytes, size_t count) {
  static_cast<std::string*>(context)->append(static_cast<const char*>(bytes), count);
  return GLYD_OK;
}

class Large : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    glyd_compress_options options{};
    options.struct_size = sizeof options;
    options.level = GLYD_LEVEL_DEFAULT;
    options.has_content_bytes = GetParam();
    options.content_bytes = GetParam() ? kContentBytes : 0;
    glyd_compressor* compressor = nullptr;
    ASSERT_EQ(glyd_compressor_create(&options, append, &frame_, &compressor), GLYD_OK);
    std::vector<char> piece(kPieceBytes);
    for (uint64_t at = 0; at < kContentBytes; at += kPieceBytes) {
      fill(piece, at / kPieceBytes);
      const size_t count = std::min<uint64_t>(kPieceBytes, kContentBytes - at);
      ASSERT_EQ(glyd_compressor_write(compressor, piece.data(), count), GLYD_OK) << glyd_last_error();
    }
    ASSERT_EQ(glyd_compressor_finish(compressor), GLYD_OK) << glyd_last_error();
    glyd_compressor_free(compressor);
  }
  std::string frame_;
};

TEST_P(Large, RangesPast4GiB) {
  glyd_frame_info info{};
  info.struct_size = sizeof info;
  ASSERT_EQ(glyd_frame_read_info(frame_.data(), frame_.size(), &info), GLYD_OK) << glyd_last_error();
  EXPECT_EQ(info.content_bytes, kContentBytes);
  std::vector<char> piece(kPieceBytes), found(kPieceBytes);
  for (const uint64_t index : {0u, 2047u, 2048u, 4095u, 4096u, 4395u}) {
    fill(piece, index);
    ASSERT_EQ(
        glyd_decompress_range(frame_.data(), frame_.size(), nullptr, index * kPieceBytes, found.data(), found.size()),
        GLYD_OK)
        << glyd_last_error();
    EXPECT_TRUE(found == piece) << index;
  }
  EXPECT_EQ(glyd_decompress_range(frame_.data(), frame_.size(), nullptr, kContentBytes - 5, found.data(), 6),
            GLYD_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(glyd_frame_verify(frame_.data(), frame_.size(), nullptr), GLYD_OK) << glyd_last_error();
}

TEST_P(Large, SalvageKnowsPlacesPast4GiB) {
  std::string cut = frame_;
  cut[cut.size() / 2] = static_cast<char>(cut[cut.size() / 2] ^ 1);
  uint64_t end = 0;
  glyd_salvage_report report{};
  report.struct_size = sizeof report;
  const auto take = [](void* context, uint64_t position, const void*, size_t bytes) -> glyd_status {
    *static_cast<uint64_t*>(context) = position + bytes;
    return GLYD_OK;
  };
  ASSERT_EQ(glyd_salvage(cut.data(), cut.size(), take, &end, &report), GLYD_OK) << glyd_last_error();
  EXPECT_EQ(end, kContentBytes);
  EXPECT_EQ(report.lost_ranges, 1u);
  EXPECT_EQ(report.recovered_bytes, kContentBytes - (4 << 20));
}

INSTANTIATE_TEST_SUITE_P(Sizes, Large, ::testing::Bool(),
                         [](const auto& suite) { return suite.param ? "Known" : "Unknown"; });

}  // namespace
