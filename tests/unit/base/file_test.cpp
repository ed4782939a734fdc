#include "base/file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

namespace glyd {
namespace {

using ::testing::HasSubstr;

class FileTest : public ::testing::Test {
 protected:
  std::filesystem::path directory_ =
      std::filesystem::path(::testing::TempDir()) / ("glyd_file_test_" + std::to_string(::getpid()));
  void SetUp() override { std::filesystem::create_directories(directory_); }
  void TearDown() override { std::filesystem::remove_all(directory_); }
};

TEST_F(FileTest, WritesAndReadsBack) {
  const uint8_t data[] = {1, 2, 3, 4};
  ASSERT_TRUE(write_new_file(directory_ / "a", data));
  auto file = File::open_read(directory_ / "a");
  ASSERT_TRUE(file);
  EXPECT_EQ(file.value().size(), 4u);
  uint8_t two[2];
  ASSERT_TRUE(file.value().read_at(1, two));
  EXPECT_EQ(two[0], 2);
  EXPECT_EQ(two[1], 3);
}

TEST_F(FileTest, ReadingPastTheEndIsTruncated) {
  const uint8_t data[] = {1, 2, 3, 4};
  ASSERT_TRUE(write_new_file(directory_ / "a", data));
  auto file = File::open_read(directory_ / "a");
  ASSERT_TRUE(file);
  uint8_t two[2];
  auto read = file.value().read_at(3, two);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().status, GLYD_ERROR_CORRUPT);
  EXPECT_THAT(read.error().message, HasSubstr("truncated"));
}

TEST_F(FileTest, MissingDirectoryAndFifoAreErrorsAtOnce) {
  EXPECT_EQ(File::open_read(directory_ / "none").error().status, GLYD_ERROR_NOT_FOUND);
  auto directory = File::open_read(directory_);
  ASSERT_FALSE(directory);
  EXPECT_THAT(directory.error().message, HasSubstr("is a directory"));
  ASSERT_EQ(::mkfifo((directory_ / "fifo").c_str(), 0600), 0);
  auto fifo = File::open_read(directory_ / "fifo");
  ASSERT_FALSE(fifo);
  EXPECT_THAT(fifo.error().message, HasSubstr("not a regular file"));
}

TEST_F(FileTest, CreateRefusesAnExistingPath) {
  ASSERT_TRUE(write_new_file(directory_ / "a", {}));
  EXPECT_EQ(write_new_file(directory_ / "a", {}).error().status, GLYD_ERROR_EXISTS);
}

}  // namespace
}  // namespace glyd
