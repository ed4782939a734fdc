// kill -9 at many moments of a pack: no target half made, and the next pack gives the bytes of one that nobody
// disturbed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <random>

#include "checkpoint/checkpoint.hpp"
#include "crash/child.hpp"
#include "unit/checkpoint/test_model.hpp"

namespace glyd {
namespace {

namespace fs = std::filesystem;

PackOptions defaults() {
  PackOptions options;
  options.glyd_version = "0.1.0";
  options.threads = 2;
  return options;
}

class Kill : public ::testing::Test {
 protected:
  // Four shards without an index, and the small model with everything else beside them.
  void SetUp() override {
    for (int shard = 0; shard < 4; ++shard) {
      std::vector<test::TestTensor> tensors;
      for (int i = 0; i < 3; ++i) {
        tensors.push_back(test::make_tensor(fmt::format("s{}.t{}", shard, i), "BF16", {256, 512},
                                            static_cast<uint64_t>(10 * shard + i)));
      }
      test::write_file(work_ / "model" / fmt::format("part-{}.safetensors", shard), test::safetensors_bytes(tensors));
    }
    test::write_file(work_ / "model/config.json", R"({"model_type": "llama"})");
    test::write_file(work_ / "model/sub/other.bin", test::random_bytes(200'000, 99));
    const auto start = std::chrono::steady_clock::now();
    ASSERT_TRUE(pack_checkpoint(work_ / "model", work_ / "whole", defaults()));
    seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    whole_ = test::read_tree(work_ / "whole");
  }

  fs::path target() const { return work_ / "out"; }
  fs::path staging() const { return work_ / ".out.glyd-staging"; }

  // After a kill: the target is absent or whole. Then the next pack.
  void expect_recovery(bool overwrite = false) {
    if (fs::exists(target())) {
      EXPECT_EQ(test::read_tree(target()), whole_);
      if (!overwrite) fs::remove_all(target());
    }
    PackOptions options = defaults();
    options.overwrite = overwrite;
    const auto packed = pack_checkpoint(work_ / "model", target(), options);
    ASSERT_TRUE(packed) << packed.error().message;
    EXPECT_EQ(test::read_tree(target()), whole_);
    EXPECT_FALSE(fs::exists(staging()));
  }

  // A child that packs and kills itself at its nth report of progress. False if it came to its end.
  bool pack_killed_at(int report) {
    const int status = test::wait_for(test::start_child([&] {
      int reports = 0;
      PackOptions options = defaults();
      options.progress = [&](uint64_t, uint64_t, const char*) {
        if (++reports == report) ::kill(::getpid(), SIGKILL);
        ::usleep(25'000);  // longer than the pause between reports, so that none is left out
        return true;
      };
      return pack_checkpoint(work_ / "model", target(), options) ? 0 : 1;
    }));
    if (WIFSIGNALED(status)) return true;
    EXPECT_EQ(test::exit_code(status), 0);
    return false;
  }

  const test::TempDirectory work_;
  double seconds_ = 0;
  std::map<std::string, std::string> whole_;
};

TEST_F(Kill, AtEachReportOfProgress) {
  int killed = 0;
  for (int report = 1; pack_killed_at(report); ++report) {
    ++killed;
    EXPECT_FALSE(fs::exists(target()));
    expect_recovery();
    fs::remove_all(target());
  }
  EXPECT_GE(killed, 12);  // one a tensor at least
}

TEST_F(Kill, AtFortyRandomMoments) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> part(0, 1);
  int killed = 0;
  double longest = seconds_;  // follows how long a pack takes, however busy the machine is
  for (int i = 0; i < 40; ++i) {
    const pid_t child =
        test::start_child([&] { return pack_checkpoint(work_ / "model", target(), defaults()) ? 0 : 1; });
    ::usleep(static_cast<useconds_t>(1e6 * longest * part(random)));
    ::kill(child, SIGKILL);
    const bool hit = WIFSIGNALED(test::wait_for(child));
    killed += hit ? 1 : 0;
    longest *= hit ? 1.1 : 0.7;
    if (i % 3 == 0 && fs::exists(staging())) continue;  // the next child meets what this one left
    expect_recovery();
    fs::remove_all(target());
  }
  EXPECT_GT(killed, 10);
}

TEST_F(Kill, WhileOverwritingLeavesTheOldOrTheNew) {
  std::mt19937 random(8);
  std::uniform_real_distribution<double> moment(0.3 * seconds_, 1.3 * seconds_);
  ASSERT_TRUE(pack_checkpoint(work_ / "model", target(), defaults()));
  for (int i = 0; i < 15; ++i) {
    const pid_t child = test::start_child([&] {
      PackOptions options = defaults();
      options.overwrite = true;
      return pack_checkpoint(work_ / "model", target(), options) ? 0 : 1;
    });
    ::usleep(static_cast<useconds_t>(1e6 * moment(random)));
    ::kill(child, SIGKILL);
    test::wait_for(child);
    ASSERT_TRUE(fs::exists(target()));
    expect_recovery(true);
  }
}

TEST_F(Kill, FinishedShardsAreNotMadeAgain) {
  // Killed at the second tensor of the third file: two shards are whole.
  ASSERT_TRUE(pack_killed_at(8));
  struct stat before {
  }, after{};
  const char* shard = "glyd-00002-of-00004.safetensors";
  ASSERT_EQ(::stat((staging() / "new" / shard).c_str(), &before), 0);
  expect_recovery();
  ASSERT_EQ(::stat((target() / shard).c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino);
  EXPECT_EQ(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
}

TEST_F(Kill, ChangedSourceOrLayoutIsPackedAnew) {
  ASSERT_TRUE(pack_killed_at(8));
  PackOptions options = defaults();
  options.layout = Layout::kSmall;
  ASSERT_TRUE(pack_checkpoint(work_ / "model", target(), options));
  EXPECT_EQ(verify_checkpoint(target(), {1}).value()["layout"], "small");
  fs::remove_all(target());
  ASSERT_TRUE(pack_killed_at(8));
  test::write_file(work_ / "model/part-0.safetensors",
                   test::safetensors_bytes({test::make_tensor("s0.t0", "BF16", {256, 512}, 77)}));
  ASSERT_TRUE(pack_checkpoint(work_ / "model", target(), defaults()));
  const auto verified = verify_checkpoint(target(), {2, (work_ / "model").c_str()});
  EXPECT_TRUE(verified) << verified.error().message;
}

TEST_F(Kill, UnpackLeavesNoHalfDirectory) {
  std::mt19937 random(9);
  std::uniform_real_distribution<double> moment(0, seconds_);
  const auto source = test::read_tree(work_ / "model");
  for (int i = 0; i < 15; ++i) {
    const pid_t child =
        test::start_child([&] { return unpack_checkpoint(work_ / "whole", work_ / "back", {2}) ? 0 : 1; });
    ::usleep(static_cast<useconds_t>(1e6 * moment(random)));
    ::kill(child, SIGKILL);
    test::wait_for(child);
    if (!fs::exists(work_ / "back")) {
      const auto unpacked = unpack_checkpoint(work_ / "whole", work_ / "back", {2});
      ASSERT_TRUE(unpacked) << unpacked.error().message;
    }
    EXPECT_EQ(test::read_tree(work_ / "back"), source);
    EXPECT_TRUE(unpack_checkpoint(work_ / "whole", work_ / "back", {2, true}));
    EXPECT_FALSE(fs::exists(work_ / ".back.glyd-staging"));
    fs::remove_all(work_ / "back");
  }
}

}  // namespace
}  // namespace glyd
