// Targets: existing ones, ones that somebody else works on, ones in odd places; packs that were interrupted.
#include "checkpoint/staging.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/manifest.hpp"
#include "unit/checkpoint/test_model.hpp"

namespace glyd {
namespace {

namespace fs = std::filesystem;
using test::TempDirectory;
using ::testing::HasSubstr;

PackOptions defaults() {
  PackOptions options;
  options.glyd_version = "0.1.0";
  return options;
}

Result<void> always(const fs::path&) { return Ok{}; }

class Target : public ::testing::Test {
 protected:
  void SetUp() override { test::write_sharded_model(work_ / "model"); }
  std::string refusal(const std::string& target, Status status, const PackOptions& options = defaults()) {
    const auto packed = pack_checkpoint(work_ / "model", target, options);
    EXPECT_FALSE(packed);
    if (packed) return "";
    EXPECT_EQ(packed.error().status, status) << packed.error().message;
    return packed.error().message;
  }
  const TempDirectory work_;
};

TEST_F(Target, ExistingOneIsRefusedUnlessItMayBeOverwritten) {
  test::write_file(work_ / "out/precious.txt", "mine");
  EXPECT_THAT(refusal(work_ / "out", GLYD_ERROR_EXISTS), HasSubstr("exists already"));
  PackOptions overwrite = defaults();
  overwrite.overwrite = true;
  EXPECT_THAT(refusal(work_ / "out", GLYD_ERROR_EXISTS, overwrite),
              HasSubstr("neither a packed checkpoint nor an empty directory"));
  EXPECT_EQ(test::read_file(work_ / "out/precious.txt"), "mine");
  fs::remove(work_ / "out/precious.txt");
  EXPECT_THAT(refusal(work_ / "out", GLYD_ERROR_EXISTS), HasSubstr("exists already"));
  EXPECT_TRUE(pack_checkpoint(work_ / "model", work_ / "out", overwrite));
  overwrite.layout = Layout::kSmall;
  const auto again = pack_checkpoint(work_ / "model", work_ / "out", overwrite);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(verify_checkpoint(work_ / "out", {}).value()["layout"], "small");
  EXPECT_FALSE(fs::exists(work_ / ".out.glyd-staging"));
}

// A file that somebody puts into the target while it is being packed again is not lost either.
TEST_F(Target, FileThatAppearedMeanwhileIsKept) {
  ASSERT_TRUE(pack_checkpoint(work_ / "model", work_ / "out", defaults()));
  PackOptions overwrite = defaults();
  overwrite.overwrite = true;
  overwrite.progress = [&](uint64_t, uint64_t, const char*) {
    test::write_file(work_ / "out/train.log", "mine");
    return true;
  };
  EXPECT_THAT(refusal(work_ / "out", GLYD_ERROR_EXISTS, overwrite), HasSubstr("would lose"));
  EXPECT_EQ(test::read_file(work_ / "out/train.log"), "mine");
  EXPECT_FALSE(fs::exists(work_ / ".out.glyd-staging"));
}

TEST_F(Target, OddPlacesAreRefused) {
  EXPECT_THAT(refusal("", GLYD_ERROR_INVALID_ARGUMENT), HasSubstr("empty string"));
  EXPECT_THAT(refusal("/", GLYD_ERROR_INVALID_ARGUMENT), HasSubstr("not a name"));
  EXPECT_THAT(refusal((work_ / "..").string(), GLYD_ERROR_INVALID_ARGUMENT), HasSubstr("lies in the target"));
  EXPECT_THAT(refusal(work_ / "none/out", GLYD_ERROR_NOT_FOUND), HasSubstr("should be made in is missing"));
  EXPECT_THAT(refusal(work_ / "model/out", GLYD_ERROR_INVALID_ARGUMENT), HasSubstr("lies in the source"));
  EXPECT_THAT(refusal(work_ / "model", GLYD_ERROR_INVALID_ARGUMENT), HasSubstr("lies in the source"));
}

TEST_F(Target, ReadOnlyPlaceIsAnInputOutputError) {
  // Root may write anywhere: it becomes somebody else for the while.
  const bool is_root = ::geteuid() == 0;
  fs::create_directory(work_ / "locked");
  for (const fs::path& path : {work_.path(), work_ / "locked"}) ASSERT_EQ(::chmod(path.c_str(), 0555), 0);
  ASSERT_TRUE(!is_root || ::seteuid(65534) == 0);
  const std::string message = refusal(work_ / "locked/out", GLYD_ERROR_IO);
  ASSERT_TRUE(!is_root || ::seteuid(0) == 0);
  ASSERT_EQ(::chmod(work_.path().c_str(), 0755), 0);
  EXPECT_THAT(message, HasSubstr("cannot create"));
  EXPECT_THAT(message, HasSubstr("Permission denied"));
}

TEST_F(Target, TrailingSlashNamesTheSameTarget) {
  EXPECT_TRUE(pack_checkpoint(work_ / "model", (work_ / "out").string() + "/", defaults()));
  EXPECT_TRUE(fs::exists(work_ / "out/glyd.json"));
}

TEST_F(Target, SecondPackWhileOneRunsIsBusy) {
  auto first = Staging::open(work_ / "out", false, always);
  ASSERT_TRUE(first);
  EXPECT_THAT(refusal(work_ / "out", GLYD_ERROR_BUSY), HasSubstr("another process is writing it"));
  { const Staging ended = std::move(first).value(); }
  EXPECT_FALSE(fs::exists(work_ / ".out.glyd-staging"));
  EXPECT_TRUE(pack_checkpoint(work_ / "model", work_ / "out", defaults()));
}

TEST_F(Target, CommitRefusesATargetThatAppearedMeanwhile) {
  auto staging = Staging::open(work_ / "out", false, always);
  ASSERT_TRUE(staging);
  fs::create_directory(staging.value().new_path());
  fs::create_directory(work_ / "out");
  const auto done = staging.value().commit();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().status, GLYD_ERROR_EXISTS);
}

TEST_F(Target, LinkAsStagingDirectoryIsNotFollowed) {
  fs::create_directory(work_ / "elsewhere");
  fs::create_directory_symlink(work_ / "elsewhere", work_ / ".out.glyd-staging");
  EXPECT_THAT(refusal(work_ / "out", GLYD_ERROR_IO), HasSubstr("not a directory of its own"));
  EXPECT_TRUE(fs::is_empty(work_ / "elsewhere"));
}

class Interrupted : public Target {
 protected:
  fs::path staging() const { return work_ / ".out.glyd-staging"; }
};

TEST_F(Interrupted, StagingOfADeadPackIsUsedOrRemoved) {
  ASSERT_TRUE(pack_checkpoint(work_ / "model", work_ / "whole", defaults()));
  // What a kill leaves: a lock nobody holds, half a shard, no journal.
  test::write_file(staging() / "lock", "");
  test::write_file(staging() / "new/glyd-00001-of-00002.safetensors", "half");
  test::write_file(staging() / "new/stray", "x");
  test::write_file(staging() / "journal.json", "{broken");
  ASSERT_TRUE(pack_checkpoint(work_ / "model", work_ / "out", defaults()));
  EXPECT_EQ(test::read_tree(work_ / "out"), test::read_tree(work_ / "whole"));
  EXPECT_FALSE(fs::exists(staging()));
}

// Stopped at the first call after a shard was finished: the next pack takes it over and says so.
TEST_F(Interrupted, StoppedPackKeepsItsFinishedShards) {
  PackOptions stopping = defaults();
  stopping.progress = [&](uint64_t, uint64_t, const char*) { return !fs::exists(staging() / "journal.json"); };
  const std::string message = refusal(work_ / "out", GLYD_ERROR_CANCELLED, stopping);
  EXPECT_THAT(message, HasSubstr("of 2 shards are done and kept in " + staging().string()));
  EXPECT_TRUE(fs::exists(staging() / "new/glyd-00001-of-00002.safetensors"));
  EXPECT_FALSE(fs::exists(staging() / "new/README.md"));
  EXPECT_THAT(verify_checkpoint(work_ / "out", {}).error().message, HasSubstr("was stopped"));
  uint64_t first = 0;
  PackOptions again = defaults();
  again.progress = [&](uint64_t done, uint64_t, const char*) {
    if (first == 0) first = done;
    return true;
  };
  const auto packed = pack_checkpoint(work_ / "model", work_ / "out", again);
  ASSERT_TRUE(packed) << packed.error().message;
  EXPECT_GE(packed.value()["shards_resumed"], 1);
  EXPECT_GE(first, fs::file_size(work_ / "model/model-00001-of-00002.safetensors"));
  EXPECT_TRUE(verify_checkpoint(work_ / "out", {1, (work_ / "model").c_str()}));
  EXPECT_FALSE(fs::exists(staging()));
}

TEST_F(Interrupted, OldTargetLeftAsideComesBack) {
  ASSERT_TRUE(pack_checkpoint(work_ / "model", work_ / "out", defaults()));
  fs::create_directory(staging());
  fs::rename(work_ / "out", staging() / "old");
  EXPECT_THAT(refusal(work_ / "out", GLYD_ERROR_EXISTS), HasSubstr("exists already"));
  EXPECT_TRUE(verify_checkpoint(work_ / "out", {}));
}

}  // namespace
}  // namespace glyd
