// vectors_test.cpp - valid vectors decode to their bits in the library and in the reference, invalid and hostile ones
// are refused by both.
#include <chrono>

#include "glyd_reference.hpp"
#include "vectors_support.hpp"

namespace {

using vectors::packs_in;
using vectors::read_bytes;
namespace fs = std::filesystem;

std::vector<std::uint16_t> as_values(const std::vector<std::uint8_t>& bytes) {
  std::vector<std::uint16_t> values(bytes.size() / 2);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<std::uint16_t>(bytes[2 * i] | bytes[2 * i + 1] << 8);
  return values;
}

TEST(ValidVectors, DecodeToTheirBits) {
  SKIP_UNLESS_ISA_RUNS_HERE();
  const auto packs = packs_in("valid");
  ASSERT_GT(packs.size(), 100u);
  for (const auto& path : packs) {
    SCOPED_TRACE(path.filename().string());
    const auto pack = read_bytes(path);
    const auto expected = as_values(read_bytes(fs::path(path).replace_extension(".bf16")));
    EXPECT_EQ(glyd_pack_validate(pack.data(), pack.size(), 1), GLYD_OK) << glyd_last_error();
    for (const int threads : {1, 3}) {
      std::vector<std::uint16_t> values(expected.size(), 0xdead);
      ASSERT_EQ(glyd_decode(pack.data(), pack.size(), threads, values.data(), values.size()), GLYD_OK)
          << glyd_last_error();
      EXPECT_EQ(values, expected);
    }
  }
}

TEST(ValidVectors, DecodeToTheirBitsInTheReference) {
  for (const auto& path : packs_in("valid")) {
    SCOPED_TRACE(path.filename().string());
    const auto pack = read_bytes(path);
    EXPECT_EQ(glyd_reference::decode_pack(pack).values,
              as_values(read_bytes(fs::path(path).replace_extension(".bf16"))));
  }
}

// Blocks and rows of every vector equal the same part of the whole.
TEST(ValidVectors, DecodeByBlocksAndRows) {
  SKIP_UNLESS_ISA_RUNS_HERE();
  for (const auto& path : packs_in("valid")) {
    SCOPED_TRACE(path.filename().string());
    const auto pack = read_bytes(path);
    glyd_pack_info info{};
    info.struct_size = sizeof info;
    ASSERT_EQ(glyd_pack_read_info(pack.data(), pack.size(), &info), GLYD_OK) << glyd_last_error();
    const auto values = as_values(read_bytes(fs::path(path).replace_extension(".bf16")));
    const std::uint64_t rows = info.shape.rows, cols = info.shape.cols;
    if (values.empty()) continue;
    const auto at = [&](std::uint64_t matrix, std::uint64_t r, std::uint64_t c) {
      return values[matrix * rows * cols + (info.shape.transposed ? c * rows + r : r * cols + c)];
    };
    const std::uint64_t matrix = info.shape.stack - 1, row = rows / 3, col = cols / 2;
    const std::uint64_t height = rows - row, width = cols - col, stride = width + 3;
    std::vector<std::uint16_t> block(height * stride, 0xdead);
    ASSERT_EQ(glyd_decode_block(pack.data(), pack.size(), matrix, row, rows, col, cols, 1, block.data(), stride),
              GLYD_OK)
        << glyd_last_error();
    for (std::uint64_t r = 0; r < height; ++r) {
      for (std::uint64_t c = 0; c < stride; ++c) {
        ASSERT_EQ(block[r * stride + c], c < width ? at(matrix, row + r, col + c) : 0xdead) << r << ' ' << c;
      }
    }
    const std::int64_t indices[] = {static_cast<std::int64_t>(rows - 1), 0, static_cast<std::int64_t>(row)};
    std::vector<std::uint16_t> looked_up(3 * cols, 0xdead);
    ASSERT_EQ(glyd_decode_rows(pack.data(), pack.size(), indices, 3, 1, looked_up.data()), GLYD_OK)
        << glyd_last_error();
    for (std::uint64_t i = 0; i < looked_up.size(); ++i) {
      ASSERT_EQ(looked_up[i], at(0, static_cast<std::uint64_t>(indices[i / cols]), i % cols)) << i;
    }
  }
}

struct Refusal {
  int status = 0;
  std::string words;
};
Refusal refusal_of(const fs::path& path) {
  std::ifstream file(fs::path(path).replace_extension(".status"));
  Refusal refusal;
  file >> refusal.status;
  file.get();
  std::getline(file, refusal.words);
  EXPECT_GT(refusal.status, 0) << path;
  return refusal;
}

void expect_refused(const char* folder, std::size_t least) {
  const auto packs = packs_in(folder);
  ASSERT_GT(packs.size(), least);
  for (const auto& path : packs) {
    SCOPED_TRACE(path.filename().string());
    auto pack = read_bytes(path);
    pack.reserve(1);  // data() of an empty file is no null pointer
    const Refusal refusal = refusal_of(path);
    EXPECT_EQ(glyd_pack_validate(pack.data(), pack.size(), 1), refusal.status);
    EXPECT_NE(std::string(glyd_last_error()).find(refusal.words), std::string::npos) << glyd_last_error();
    EXPECT_THROW(glyd_reference::decode_pack(pack), glyd_reference::Corrupt);
    // Decoding may take what only breaks a rule that no decoded bit depends on, but must give a status and stay inside
    // its buffer.
    glyd_pack_info info{};
    info.struct_size = sizeof info;
    if (glyd_pack_read_info(pack.data(), pack.size(), &info) != GLYD_OK) continue;
    std::vector<std::uint16_t> values(info.bf16_bytes / 2);
    const glyd_status status = glyd_decode(pack.data(), pack.size(), 1, values.data(), values.size());
    EXPECT_TRUE(status == GLYD_OK || status == refusal.status) << glyd_last_error();
  }
}

TEST(InvalidVectors, AreRefused) {
  SKIP_UNLESS_ISA_RUNS_HERE();
  expect_refused("invalid", 100);
}

TEST(HostileVectors, AreRefusedAtOnce) {
  SKIP_UNLESS_ISA_RUNS_HERE();
  const auto begin = std::chrono::steady_clock::now();
  expect_refused("hostile", 80);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
}

}  // namespace
