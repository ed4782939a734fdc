// The file of verdicts: what is written is read, whoever writes at the same time; what is damaged or another's is not.
#include "dispatch/verdicts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "base/crc32c.hpp"

namespace glyd::test {
namespace {

using cuda::ProductKey;
using cuda::Verdict;
using cuda::VerdictEnvironment;
using cuda::Verdicts;

const VerdictEnvironment kHere{"NVIDIA H200", "580.65.06", "0.1.0 sums 1", 130101, 32 << 20, true};
const Verdicts kSome = {{{4096, 4096, 1, false}, {true, 4, 0}}, {{4096, 4096, 8, true}, {false, 1, 77}}};

class VerdictsTest : public testing::Test {
 protected:
  VerdictsTest() {
    std::string pattern = testing::TempDir() + "/glyd-verdicts-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    path_ = folder_ / "verdicts";
  }
  ~VerdictsTest() override { std::filesystem::remove_all(folder_); }

  std::string text() const {
    std::ifstream in(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const std::string& text) const { std::ofstream(path_, std::ios::binary) << text; }

  std::filesystem::path folder_, path_;
};

TEST_F(VerdictsTest, WhatIsWrittenIsRead) {
  ASSERT_TRUE(cuda::merge_verdicts(path_, kHere, kSome));
  const auto read = cuda::read_verdicts(path_, kHere);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read.value(), kSome);
  EXPECT_TRUE(
      text().starts_with("glyd verdicts 1\n[NVIDIA H200; driver 580.65.06; cublas 130101; glyd 0.1.0 sums 1; "
                         "workspace 33554432; reduced 1]\n4096 4096 1 0 1 4 0\n4096 4096 8 1 0 1 77\ncrc32c "))
      << text();
}

TEST_F(VerdictsTest, NoFileIsNoVerdicts) {
  const auto read = cuda::read_verdicts(path_, kHere);
  ASSERT_TRUE(read);
  EXPECT_TRUE(read.value().empty());
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(VerdictsTest, EachEnvironmentHasItsOwn) {
  ASSERT_TRUE(cuda::merge_verdicts(path_, kHere, kSome));
  std::vector<VerdictEnvironment> others(6, kHere);
  others[0].gpu = "NVIDIA H100", others[1].driver = "580.65.07", others[2].library = "0.2.0 sums 1";
  others[3].cublas += 1, others[4].workspace_bytes /= 2, others[5].reduced_precision = false;
  uint64_t rows = 1;
  for (const auto& other : others) {
    const auto before = cuda::read_verdicts(path_, other);
    ASSERT_TRUE(before);
    EXPECT_TRUE(before.value().empty()) << other.line();
    ASSERT_TRUE(cuda::merge_verdicts(path_, other, {{{rows++, 1, 1, false}, {true, 1, 0}}}));
  }
  EXPECT_EQ(cuda::read_verdicts(path_, kHere).value(), kSome);
  for (const auto& other : others) EXPECT_EQ(cuda::read_verdicts(path_, other).value().size(), 1u);
}

TEST_F(VerdictsTest, TheNewestVerdictCounts) {
  ASSERT_TRUE(cuda::merge_verdicts(path_, kHere, kSome));
  const Verdicts newer = {{{4096, 4096, 1, false}, {false, 2, 5}}, {{1, 2, 3, false}, {true, 1, 0}}};
  ASSERT_TRUE(cuda::merge_verdicts(path_, kHere, newer));
  Verdicts expected = newer;
  expected.insert(kSome.begin(), kSome.end());
  EXPECT_EQ(cuda::read_verdicts(path_, kHere).value(), expected);
}

// Any byte changed, cut off or added: the text says so, and the next merge makes the file anew.
TEST_F(VerdictsTest, DamageIsSeenAndMadeGood) {
  ASSERT_TRUE(cuda::merge_verdicts(path_, kHere, kSome));
  const std::string sound = text();
  const auto expect_refused = [&](const std::string& bytes) {
    write(bytes);
    const auto read = cuda::read_verdicts(path_, kHere);
    ASSERT_FALSE(read) << bytes;
    EXPECT_THAT(read.error().message, testing::HasSubstr(path_.string()));
  };
  for (size_t i = 0; i < sound.size(); ++i) {
    std::string changed = sound;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    expect_refused(changed);
    expect_refused(sound.substr(0, i));
  }
  expect_refused(sound + "\n");
  expect_refused(sound + sound);
  write(sound.substr(0, sound.size() - 3));
  EXPECT_EQ(cuda::read_verdicts(path_, kHere).error().status, GLYD_ERROR_CORRUPT);
  ASSERT_TRUE(cuda::merge_verdicts(path_, kHere, kSome));
  EXPECT_EQ(text(), sound);
}

// Lines that a checksum vouches for, but that are no verdicts.
TEST_F(VerdictsTest, OnlyVerdictsAreVerdicts) {
  for (const char* line :
       {"1 1 1 0 1 1", "1 1 1 0 1 1 0 0", "1 1 1 2 1 1 0", "1 1 1 0 2 1 0", "1 1 1 0 1 0 0", "x", "1 1 1 0 1 65 0",
        "1  1 1 0 1 1 0", "-1 1 1 0 1 1 0", "99999999999999999999 1 1 0 1 1 0", ""}) {
    VerdictEnvironment sly = kHere;
    ASSERT_TRUE(cuda::merge_verdicts(path_, sly, {}));
    std::string body = text().substr(0, text().rfind("crc32c ")) + line + "\n";
    write(body);
    // The checksum of the new body, as another writer would print it.
    const auto crc = crc32c({reinterpret_cast<const uint8_t*>(body.data()), body.size()});
    write(body + fmt::format("crc32c {:08x}\n", crc));
    EXPECT_EQ(cuda::read_verdicts(path_, kHere).error().status, GLYD_ERROR_CORRUPT) << line;
    std::filesystem::remove(path_);
  }
}

TEST_F(VerdictsTest, AnothersFileIsLeftAlone) {
  for (const char* other : {"glyd verdicts 2\n", "my thesis\n", "glyd verdicts 10\n"}) {
    write(other);
    EXPECT_EQ(cuda::read_verdicts(path_, kHere).error().status, GLYD_ERROR_FOREIGN_FORMAT);
    EXPECT_EQ(cuda::merge_verdicts(path_, kHere, kSome).error().status, GLYD_ERROR_FOREIGN_FORMAT);
    EXPECT_EQ(text(), other);
  }
}

TEST_F(VerdictsTest, AMissingFolderIsAnError) {
  const auto merged = cuda::merge_verdicts(folder_ / "none" / "verdicts", kHere, kSome);
  ASSERT_FALSE(merged);
  EXPECT_THAT(merged.error().message, testing::HasSubstr("none"));
}

TEST_F(VerdictsTest, NamesCannotForgeLines) {
  VerdictEnvironment sly = kHere;
  sly.gpu = "A]\n1 1 1 0 1 1 0\n[B; driver";
  ASSERT_TRUE(cuda::merge_verdicts(path_, sly, kSome));
  EXPECT_EQ(cuda::read_verdicts(path_, sly).value(), kSome);
  EXPECT_TRUE(cuda::read_verdicts(path_, kHere).value().empty());
}

// Writers at once lose nothing, and a reader never sees half a file.
TEST_F(VerdictsTest, WritersAtOnceLoseNothing) {
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < 10; ++i) {
        EXPECT_TRUE(cuda::merge_verdicts(path_, kHere, {{{t, i, 1, false}, {true, 1, 0}}}));
        EXPECT_TRUE(cuda::read_verdicts(path_, kHere));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(cuda::read_verdicts(path_, kHere).value().size(), 80u);
}

}  // namespace
}  // namespace glyd::test
