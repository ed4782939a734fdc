// A disk that fills up, and memory that runs out. The disk is played by a limit on the size of files: a clear error, no
// target, nothing lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "checkpoint/checkpoint.hpp"
#include "crash/child.hpp"
#include "unit/checkpoint/test_model.hpp"

namespace glyd {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

// What `body` reports under the limit, through a file that is written after the limit is lifted again.
std::string message_under_limit(const fs::path& report, rlim_t bytes,
                                const std::function<Result<OrderedJson>()>& body) {
  const int status = test::wait_for(test::start_child([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    struct rlimit old {};
    ::getrlimit(RLIMIT_FSIZE, &old);
    const struct rlimit limited { bytes, old.rlim_max };
    ::setrlimit(RLIMIT_FSIZE, &limited);
    const auto done = body();
    ::setrlimit(RLIMIT_FSIZE, &old);
    test::write_file(report, done ? "done" : done.error().message);
    return done ? 0 : static_cast<int>(done.error().status);
  }));
  EXPECT_EQ(test::exit_code(status), GLYD_ERROR_IO);
  return test::read_file(report);
}

class FullDisk : public ::testing::Test {
 protected:
  void SetUp() override {
    test::write_file(work_ / "model/a.safetensors",
                     test::safetensors_bytes({test::make_tensor("small", "BF16", {64, 64}, 1)}));
    test::write_file(work_ / "model/b.safetensors",
                     test::safetensors_bytes({test::make_tensor("large", "BF16", {512, 512}, 2)}));
    options_.glyd_version = "0.1.0";
  }
  PackOptions options_;
  const test::TempDirectory work_;
};

TEST_F(FullDisk, PackSaysWhereAndHowMuchAndTheNextOneFinishes) {
  const std::string message = message_under_limit(
      work_ / "report", 100'000, [&] { return pack_checkpoint(work_ / "model", work_ / "out", options_); });
  EXPECT_THAT(message, AllOf(HasSubstr("cannot write"), HasSubstr("glyd-00002-of-00002.safetensors"),
                             HasSubstr("kB are needed in"), HasSubstr("are free"),
                             HasSubstr("1 of 2 shards are done and kept in")));
  EXPECT_FALSE(fs::exists(work_ / "out"));
  // The finished shard is kept for the next pack, the half one is not.
  EXPECT_TRUE(fs::exists(work_ / ".out.glyd-staging/new/glyd-00001-of-00002.safetensors"));
  EXPECT_FALSE(fs::exists(work_ / ".out.glyd-staging/new/glyd-00002-of-00002.safetensors"));
  ASSERT_TRUE(pack_checkpoint(work_ / "model", work_ / "out", options_));
  EXPECT_TRUE(verify_checkpoint(work_ / "out", {1, (work_ / "model").c_str()}));
  EXPECT_FALSE(fs::exists(work_ / ".out.glyd-staging"));
}

TEST_F(FullDisk, PackWithNothingFinishedLeavesNothing) {
  message_under_limit(work_ / "report", 1'000,
                      [&] { return pack_checkpoint(work_ / "model", work_ / "out", options_); });
  EXPECT_FALSE(fs::exists(work_ / "out"));
  EXPECT_FALSE(fs::exists(work_ / ".out.glyd-staging"));
}

TEST_F(FullDisk, OverwritingKeepsTheOldOne) {
  ASSERT_TRUE(pack_checkpoint(work_ / "model", work_ / "out", options_));
  const auto before = test::read_tree(work_ / "out");
  options_.overwrite = true;
  options_.layout = Layout::kSmall;
  message_under_limit(work_ / "report", 100'000,
                      [&] { return pack_checkpoint(work_ / "model", work_ / "out", options_); });
  EXPECT_EQ(test::read_tree(work_ / "out"), before);
}

TEST_F(FullDisk, UnpackSaysWhereAndLeavesNothing) {
  ASSERT_TRUE(pack_checkpoint(work_ / "model", work_ / "out", options_));
  const std::string message = message_under_limit(
      work_ / "report", 100'000, [&] { return unpack_checkpoint(work_ / "out", work_ / "back", {1}); });
  EXPECT_THAT(message, AllOf(HasSubstr("cannot write"), HasSubstr("b.safetensors"), HasSubstr("kB are needed in")));
  EXPECT_FALSE(fs::exists(work_ / "back"));
  EXPECT_FALSE(fs::exists(work_ / ".back.glyd-staging"));
}

// Memory that runs out, played by a limit on the address space.
TEST(LittleMemory, SaysForWhatAndHowMuchIsNeeded) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers reserve terabytes of address space, and end the program where memory runs out";
#endif
  const test::TempDirectory work;
  test::write_file(work / "model/model.safetensors",
                   test::safetensors_bytes({{"wide", "BF16", {8192, 4096}, std::string(uint64_t{64} << 20, 'w')}}));
  PackOptions options;
  options.glyd_version = "0.1.0";
  options.threads = 1;
  const int status = test::wait_for(test::start_child([&] {
    std::ifstream sizes("/proc/self/statm");
    rlim_t pages = 0;
    sizes >> pages;
    const rlim_t limit = pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + (rlim_t{70} << 20);
    const struct rlimit limited { limit, limit };
    ::setrlimit(RLIMIT_AS, &limited);
    const auto done = pack_checkpoint(work / "model", work / "out", options);
    test::write_file(work / "report", done ? "done" : done.error().message);
    return done ? 0 : static_cast<int>(done.error().status);
  }));
  EXPECT_EQ(test::exit_code(status), GLYD_ERROR_OUT_OF_MEMORY);
  EXPECT_THAT(test::read_file(work / "report"), HasSubstr("tensor \"wide\": not enough memory: about 201326592 bytes"));
  EXPECT_FALSE(fs::exists(work / "out"));
  EXPECT_FALSE(fs::exists(work / ".out.glyd-staging"));
}

}  // namespace
}  // namespace glyd
