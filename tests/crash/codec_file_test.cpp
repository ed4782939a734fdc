// The glyd program compressing and decompressing files while it is killed, and on a disk that fills up: the target is
// absent or whole, the source is as it was, and the next run finishes.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>

#include "crash/child.hpp"
#include "unit/checkpoint/test_model.hpp"

namespace glyd {
namespace {

namespace fs = std::filesystem;

// The program with `words`, its outputs thrown away; at most `file_bytes` a file unless 0.
pid_t start_glyd(std::vector<std::string> words, rlim_t file_bytes = 0) {
  words.insert(words.begin(), "glyd");
  return test::start_child([&] {
    const int null = ::open("/dev/null", O_RDWR);
    for (const int descriptor : {0, 1, 2}) ::dup2(null, descriptor);
    if (file_bytes != 0) {
      const struct rlimit limited { file_bytes, file_bytes };
      ::setrlimit(RLIMIT_FSIZE, &limited);
    }
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    ::execv(GLYD_PROGRAM, arguments.data());
    return 127;
  });
}

int run_glyd(const std::vector<std::string>& words, rlim_t file_bytes = 0) {
  return test::exit_code(test::wait_for(start_glyd(words, file_bytes)));
}

class CodecFile : public ::testing::Test {
 protected:
  void SetUp() override {
    content_ = test::random_bytes(3 << 20, 1);
    for (int i = 0; i < 200000; ++i) content_ += fmt::format("line {} of the file\n", i % 7919);
    test::write_file(source(), content_);
    const auto start = std::chrono::steady_clock::now();
    ASSERT_EQ(run_glyd({"compress", source(), "-o", frame(), "--unit", "128KiB"}), 0);
    seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    whole_ = test::read_file(frame());
  }
  std::string source() const { return work_ / "source"; }
  std::string frame() const { return work_ / "frame.glyd"; }
  std::string target() const { return work_ / "target"; }
  size_t files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(work_ / "."), fs::directory_iterator()));
  }

  // Kills `words`, which make target(), at random moments; then lets them finish. How often it hit them at work.
  int kill_often(const std::vector<std::string>& words, const std::string& expected, uint32_t seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> part(0, 1);
    int killed = 0;
    double longest = seconds_;  // follows how long the program takes, however busy the machine is
    for (int i = 0; i < 25; ++i) {
      const pid_t child = start_glyd(words);
      ::usleep(static_cast<useconds_t>(1e6 * longest * part(random)));
      ::kill(child, SIGKILL);
      const bool hit = WIFSIGNALED(test::wait_for(child));
      killed += hit ? 1 : 0;
      longest *= hit ? 1.1 : 0.7;
      if (fs::exists(target())) {
        EXPECT_TRUE(test::read_file(target()) == expected) << "half a target";
        fs::remove(target());
      }
      EXPECT_TRUE(test::read_file(source()) == content_);
    }
    EXPECT_EQ(run_glyd(words), 0);
    EXPECT_TRUE(test::read_file(target()) == expected);
    EXPECT_EQ(files(), 3u) << "something is left beside source, frame and target";
    return killed;
  }

  const test::TempDirectory work_;
  std::string content_, whole_;
  double seconds_ = 0;
};

TEST_F(CodecFile, KilledWhileCompressing) {
  EXPECT_GT(kill_often({"compress", source(), "-o", target(), "--unit", "128KiB"}, whole_, 1), 5);
}

TEST_F(CodecFile, KilledWhileDecompressing) {
  EXPECT_GT(kill_often({"decompress", frame(), "-o", target()}, content_, 2), 2);
}

TEST_F(CodecFile, KilledWhileReplacingKeepsTheOldOrTheNew) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> moment(0, 1.3 * seconds_);
  test::write_file(target(), "old");
  for (int i = 0; i < 15; ++i) {
    const pid_t child = start_glyd({"compress", source(), "-o", target(), "--unit", "128KiB", "--overwrite"});
    ::usleep(static_cast<useconds_t>(1e6 * moment(random)));
    ::kill(child, SIGKILL);
    test::wait_for(child);
    const std::string found = test::read_file(target());
    EXPECT_TRUE(found == "old" || found == whole_);
  }
}

// With --rm there is always one of the two.
TEST_F(CodecFile, KilledWhileRemovingTheSourceLosesNothing) {
  std::mt19937 random(4);
  std::uniform_real_distribution<double> moment(0, 1.5 * seconds_);
  for (int i = 0; i < 15; ++i) {
    const pid_t child = start_glyd({"compress", source(), "-o", target(), "--unit", "128KiB", "--rm"});
    ::usleep(static_cast<useconds_t>(1e6 * moment(random)));
    ::kill(child, SIGKILL);
    test::wait_for(child);
    if (fs::exists(target())) {
      EXPECT_TRUE(test::read_file(target()) == whole_);
      fs::remove(target());
    } else {
      ASSERT_TRUE(fs::exists(source()));
    }
    test::write_file(source(), content_);
  }
}

TEST_F(CodecFile, AFullDiskLeavesNothingAndKeepsWhatWasThere) {
  EXPECT_EQ(run_glyd({"compress", source(), "-o", target()}, 1 << 20), 3);
  EXPECT_EQ(run_glyd({"decompress", frame(), "-o", target()}, 1 << 20), 3);
  EXPECT_EQ(files(), 2u);
  test::write_file(target(), "old");
  EXPECT_EQ(run_glyd({"compress", source(), "-o", target(), "-f", "--rm"}, 1 << 20), 3);
  EXPECT_EQ(run_glyd({"decompress", frame(), "-o", target(), "-f", "--rm"}, 1 << 20), 3);
  EXPECT_EQ(test::read_file(target()), "old");
  EXPECT_TRUE(test::read_file(source()) == content_);
  EXPECT_TRUE(test::read_file(frame()) == whole_);
  EXPECT_EQ(files(), 3u);
}

}  // namespace
}  // namespace glyd
