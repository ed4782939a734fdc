#include "checkpoint/safetensors_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/checkpoint/test_model.hpp"

namespace glyd {
namespace {

using ::testing::HasSubstr;

TEST(SafetensorsFile, RefusesBadLengths) {
  const test::TempDirectory directory;
  const auto refusal_of = [&](const std::string& bytes) {
    test::write_file(directory / "f", bytes);
    const auto file = File::open_read(directory / "f");
    EXPECT_TRUE(file);
    const auto header = read_safetensors_header(file.value());
    return header ? std::string() : header.error().message;
  };
  const std::string good = test::safetensors_bytes(
      R"({"a":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]},"b":{"dtype":"U8","shape":[4],"data_offsets":[12,16]}})",
      std::string(16, 'x'));
  EXPECT_THAT(refusal_of(""), HasSubstr("0 bytes are no safetensors file"));
  EXPECT_THAT(refusal_of("short"), HasSubstr("5 bytes are no safetensors file"));
  EXPECT_THAT(refusal_of(std::string(8, '\xff')), HasSubstr("more than the 100000000 allowed"));
  EXPECT_THAT(refusal_of(good.substr(0, 60)), HasSubstr("truncated"));
  EXPECT_EQ(refusal_of(good), "");
}

}  // namespace
}  // namespace glyd
