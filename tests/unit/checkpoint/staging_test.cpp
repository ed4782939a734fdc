// Targets: existing ones, ones that somebody else works on, ones in odd places; packs that were interrupted.
#include "checkpoint/staging.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/manifest.hpp"
#include "checkpoint/streams.hpp"
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
  const std::string message = refusal(work_ / "out", GLYD_ERROR_EXISTS, overwrite);
  EXPECT_THAT(message, HasSubstr("would lose"));
  EXPECT_THAT(message, HasSubstr("2 of 2 shards are done and kept"));
  EXPECT_EQ(test::read_file(work_ / "out/train.log"), "mine");
  fs::remove(work_ / "out/train.log");
  overwrite.progress = {};
  EXPECT_EQ(pack_checkpoint(work_ / "model", work_ / "out", overwrite).value()["shards_resumed"], 2);
  EXPECT_FALSE(fs::exists(work_ / ".out.glyd-staging"));
}

TEST_F(Target, OneThatAppearedMeanwhileIsKeptAndTheWorkToo) {
  PackOptions options = defaults();
  options.progress = [&](uint64_t, uint64_t, const char*) { return fs::create_directories(work_ / "out"), true; };
  const std::string message = refusal(work_ / "out", GLYD_ERROR_EXISTS, options);
  EXPECT_THAT(message, HasSubstr("was made by somebody else meanwhile"));
  EXPECT_THAT(message, HasSubstr("2 of 2 shards are done and kept"));
  fs::remove(work_ / "out");
  EXPECT_EQ(pack_checkpoint(work_ / "model", work_ / "out", defaults()).value()["shards_resumed"], 2);
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
  fs::path first_source() const { return work_ / "model/model-00001-of-00002.safetensors"; }

  void stop_after_a_shard() const {
    PackOptions stopping = defaults();
    stopping.progress = [&](uint64_t, uint64_t, const char*) { return !fs::exists(staging() / "journal.json"); };
    const auto stopped = pack_checkpoint(work_ / "model", work_ / "out", stopping);
    ASSERT_FALSE(stopped);
    ASSERT_TRUE(fs::exists(staging() / "journal.json")) << stopped.error().message;
  }

  // Packs with notes going to notes_; the result must be the source.
  void pack_again(PackOptions options = defaults()) {
    options.note = [&](const char* text) { notes_.emplace_back(text); };
    const auto packed = pack_checkpoint(work_ / "model", work_ / "out", options);
    ASSERT_TRUE(packed) << packed.error().message;
    resumed_ = packed.value()["shards_resumed"];
    EXPECT_FALSE(fs::exists(staging()));
  }

  // Another file with the first source file's name, size and time of modification.
  void swap_first_source() const {
    const auto time = fs::last_write_time(first_source());
    std::string bytes = test::read_file(first_source());
    bytes[bytes.size() - 100] = static_cast<char>(bytes[bytes.size() - 100] ^ 1);
    test::write_file(work_ / "other", bytes);
    fs::last_write_time(work_ / "other", time);
    fs::rename(work_ / "other", first_source());
  }

  std::vector<std::string> notes_;
  uint64_t resumed_ = 0;
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

TEST_F(Interrupted, OtherOptionsDropFinishedShardsAndSaySo) {
  stop_after_a_shard();
  PackOptions small = defaults();
  small.layout = Layout::kSmall;
  pack_again(small);
  EXPECT_EQ(resumed_, 0u);
  ASSERT_EQ(notes_.size(), 1u);
  EXPECT_THAT(notes_[0], HasSubstr(staging().string() + ": not used, and packed again: "));
  EXPECT_THAT(notes_[0], HasSubstr("of a stopped pack with other options (layout fast, now small)"));
}

TEST_F(Interrupted, SwappedSourceOfTheSameSizeAndTimeIsPackedAgain) {
  stop_after_a_shard();
  swap_first_source();
  pack_again();
  ASSERT_EQ(notes_.size(), 1u);
  EXPECT_THAT(notes_[0], HasSubstr("packed again: model-00001-of-00002.safetensors (changed or replaced since"));
  const auto same = verify_checkpoint(work_ / "out", {1, (work_ / "model").c_str()});
  EXPECT_TRUE(same) << same.error().message;
}

TEST_F(Interrupted, SourceWrittenInPlaceWithItsOldTimeIsPackedAgain) {
  stop_after_a_shard();
  const auto time = fs::last_write_time(first_source());
  std::string bytes = test::read_file(first_source());
  bytes[bytes.size() - 100] = static_cast<char>(bytes[bytes.size() - 100] ^ 1);
  test::write_file(first_source(), bytes);
  fs::last_write_time(first_source(), time);
  pack_again();
  EXPECT_EQ(notes_.size(), 1u);
  EXPECT_TRUE(verify_checkpoint(work_ / "out", {1, (work_ / "model").c_str()}));
}

TEST_F(Interrupted, DamagedShardIsPackedAgain) {
  stop_after_a_shard();
  fs::resize_file(staging() / "new/glyd-00001-of-00002.safetensors", 1000);
  pack_again();
  ASSERT_EQ(notes_.size(), 1u);
  EXPECT_THAT(notes_[0], HasSubstr("model-00001-of-00002.safetensors (its shard there is not whole)"));
  EXPECT_TRUE(verify_checkpoint(work_ / "out", {1, (work_ / "model").c_str()}));
}

TEST_F(Interrupted, UnreadableJournalIsSaid) {
  stop_after_a_shard();
  test::write_file(staging() / "journal.json", "{broken");
  pack_again();
  ASSERT_EQ(notes_.size(), 1u);
  EXPECT_THAT(notes_[0], HasSubstr("whose journal.json cannot be read"));
}

TEST_F(Interrupted, UndisturbedResumeSaysNothing) {
  stop_after_a_shard();
  pack_again();
  EXPECT_GE(resumed_, 1u);
  EXPECT_TRUE(notes_.empty()) << notes_[0];
}

TEST_F(Interrupted, UnpackToItsTargetIsRefused) {
  ASSERT_TRUE(pack_checkpoint(work_ / "model", work_ / "packed", defaults()));
  stop_after_a_shard();
  const auto unpacked = unpack_checkpoint(work_ / "packed", work_ / "out", {});
  ASSERT_FALSE(unpacked);
  EXPECT_EQ(unpacked.error().status, GLYD_ERROR_EXISTS);
  EXPECT_THAT(unpacked.error().message, HasSubstr("holds what a stopped pack"));
  pack_again();
  EXPECT_GE(resumed_, 1u);
}

// The header was read before: a file put in its place before it is opened again, or while it is read, is refused, and
// the shards that are whole are kept.
TEST_F(Interrupted, SourceReplacedWhileItIsPackedIsRefused) {
  PackOptions options = defaults();
  options.progress = [&, swapped = false](uint64_t, uint64_t, const char*) mutable {
    if (!swapped) swap_first_source();
    return swapped = true;
  };
  const std::string message = refusal(work_ / "out", GLYD_ERROR_MISMATCH, options);
  EXPECT_THAT(message, HasSubstr("model-00001-of-00002.safetensors: changed or replaced while it was being packed"));
  pack_again();
  EXPECT_TRUE(verify_checkpoint(work_ / "out", {1, (work_ / "model").c_str()}));
}

TEST_F(Interrupted, SourceReplacedBeforeItsTurnIsRefusedAndFinishedShardsAreKept) {
  const fs::path second = work_ / "model/model-00002-of-00002.safetensors";
  PackOptions options = defaults();
  options.progress = [&, swapped = false](uint64_t, uint64_t, const char*) mutable {
    if (swapped || !fs::exists(staging() / "new/glyd-00001-of-00002.safetensors")) return true;
    fs::copy_file(second, work_ / "copy");
    fs::last_write_time(work_ / "copy", fs::last_write_time(second));
    fs::rename(work_ / "copy", second);
    return swapped = true;
  };
  const std::string message = refusal(work_ / "out", GLYD_ERROR_MISMATCH, options);
  EXPECT_THAT(message, HasSubstr("model-00002-of-00002.safetensors: changed or replaced while it was being packed"));
  EXPECT_THAT(message, HasSubstr("1 of 2 shards are done and kept"));
  pack_again();
  EXPECT_EQ(resumed_, 1u);
}

TEST_F(Interrupted, SourceReplacedAfterItWasPackedIsSaid) {
  PackOptions options = defaults();
  options.progress = [&, swapped = false](uint64_t, uint64_t, const char*) mutable {
    if (swapped || !fs::exists(staging() / "new/README.md")) return true;
    swap_first_source();
    return swapped = true;
  };
  pack_again(options);
  ASSERT_EQ(notes_.size(), 1u);
  EXPECT_THAT(notes_[0], HasSubstr("changed since it was packed, a moment ago: model-00001-of-00002.safetensors"));
  EXPECT_TRUE(verify_checkpoint(work_ / "out", {}));
}

TEST_F(Interrupted, OldTargetLeftAsideComesBack) {
  ASSERT_TRUE(pack_checkpoint(work_ / "model", work_ / "out", defaults()));
  fs::create_directory(staging());
  fs::rename(work_ / "out", staging() / "old");
  EXPECT_THAT(refusal(work_ / "out", GLYD_ERROR_EXISTS), HasSubstr("exists already"));
  EXPECT_TRUE(verify_checkpoint(work_ / "out", {}));
}

// Refused where even the least would not fit, and told what is likely to be needed.
TEST(Space, NamesWhatIsNeededNotTheLeast) {
  const TempDirectory directory;
  EXPECT_TRUE(check_space(directory.path(), 1, uint64_t{1} << 62));
  const auto refused = check_space(directory.path(), uint64_t{1} << 62, 132'000'000);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("about 132 MB are needed there"));
}

}  // namespace
}  // namespace glyd
