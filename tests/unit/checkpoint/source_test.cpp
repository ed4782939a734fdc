#include "checkpoint/source.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>

#include "checkpoint/hf_cache.hpp"
#include "unit/checkpoint/test_model.hpp"

namespace glyd {
namespace {

namespace fs = std::filesystem;
using test::TempDirectory;
using ::testing::HasSubstr;

const std::string kCommit(40, 'c');

std::string error_of(const Result<Source>& source, Status status) {
  EXPECT_FALSE(source);
  if (source) return "";
  EXPECT_EQ(source.error().status, status) << source.error().message;
  return source.error().message;
}

std::vector<std::string> paths_of(const std::vector<SourceFile>& files) {
  std::vector<std::string> paths;
  for (const auto& file : files) paths.push_back(file.path);
  return paths;
}

TEST(OpenSource, ListsShardsAndEverythingElse) {
  const TempDirectory work;
  test::write_sharded_model(work / "m");
  const auto source = open_source(work / "m", nullptr);
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_THAT(paths_of(source.value().tensor_files),
              ::testing::ElementsAre("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"));
  EXPECT_THAT(paths_of(source.value().other_files), ::testing::Contains("original/consolidated.safetensors"));
  EXPECT_THAT(source.value().directories, ::testing::ElementsAre("runs/nothing here"));
  EXPECT_EQ(source.value().name, "m");
}

TEST(OpenSource, SingleModelFileLeavesOtherTensorFilesAlone) {
  const TempDirectory work;
  test::write_small_model(work / "m");
  test::write_file(work / "m/adapter.safetensors", "not looked at");
  const auto source = open_source(work / "m", nullptr);
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_THAT(paths_of(source.value().tensor_files), ::testing::ElementsAre("model.safetensors"));
}

TEST(OpenSource, MissingAndWrongPlacesAreNamed) {
  const TempDirectory work;
  EXPECT_THAT(error_of(open_source(work / "none/there", nullptr), GLYD_ERROR_NOT_FOUND),
              HasSubstr("no such file or directory"));
  EXPECT_THAT(error_of(open_source("", nullptr), GLYD_ERROR_INVALID_ARGUMENT), HasSubstr("empty string"));
  fs::create_directory(work / "empty");
  EXPECT_THAT(error_of(open_source(work / "empty", nullptr), GLYD_ERROR_NOT_FOUND), HasSubstr("no .safetensors files"));
  test::write_file(work / "m.bin", "x");
  EXPECT_THAT(error_of(open_source(work / "m.bin", nullptr), GLYD_ERROR_INVALID_ARGUMENT),
              HasSubstr("not a .safetensors file"));
  EXPECT_THAT(error_of(open_source(work / "empty", "main"), GLYD_ERROR_INVALID_ARGUMENT),
              HasSubstr("a revision is for repo ids"));
  ASSERT_EQ(::mkfifo((work / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(error_of(open_source(work / "pipe", nullptr), GLYD_ERROR_INVALID_ARGUMENT),
              HasSubstr("neither a directory nor a file"));
}

TEST(OpenSource, IndexMustNameWhatIsThere) {
  const TempDirectory work;
  test::write_sharded_model(work / "m");
  const auto with_index = [&](const std::string& text) {
    test::write_file(work / "m/model.safetensors.index.json", text);
    return open_source(work / "m", nullptr);
  };
  EXPECT_THAT(
      error_of(with_index(R"({"weight_map": {"half": "model-00003-of-00003.safetensors"}})"), GLYD_ERROR_NOT_FOUND),
      HasSubstr("names shards that are not there: model-00003-of-00003.safetensors"));
  EXPECT_THAT(
      error_of(with_index(R"({"weight_map": {"gone": "model-00002-of-00002.safetensors"}})"), GLYD_ERROR_CORRUPT),
      HasSubstr("\"gone\" (should be in model-00002-of-00002.safetensors)"));
  EXPECT_THAT(error_of(with_index(R"({"weight_map": {"half": "../model.safetensors"}})"), GLYD_ERROR_CORRUPT),
              HasSubstr("not a plain relative path"));
  EXPECT_THAT(error_of(with_index(R"({"weight_map": {"half": 3}})"), GLYD_ERROR_CORRUPT),
              HasSubstr("not a plain relative path"));
  EXPECT_THAT(error_of(with_index(R"({"weight_map": {}})"), GLYD_ERROR_CORRUPT), HasSubstr("names no tensors"));
  EXPECT_THAT(error_of(with_index(R"({"maps": {}})"), GLYD_ERROR_CORRUPT), HasSubstr("no object \"weight_map\""));
  EXPECT_THAT(error_of(with_index("{"), GLYD_ERROR_CORRUPT), HasSubstr("not valid JSON"));
  EXPECT_THAT(error_of(with_index(R"({"weight_map": {"a": "x", "a": "y"}})"), GLYD_ERROR_CORRUPT),
              HasSubstr("duplicate key \"a\""));
}

TEST(OpenSource, TensorInTwoFilesIsRefused) {
  const TempDirectory work;
  const std::string bytes = test::safetensors_bytes({test::make_tensor("w", "BF16", {4, 4}, 1)});
  test::write_file(work / "m/a.safetensors", bytes);
  test::write_file(work / "m/b.safetensors", bytes);
  EXPECT_THAT(error_of(open_source(work / "m", nullptr), GLYD_ERROR_CORRUPT),
              HasSubstr("tensor \"w\" is in a.safetensors and in b.safetensors"));
}

TEST(OpenSource, NamesOfPackedCheckpointsAreTaken) {
  const TempDirectory work;
  test::write_small_model(work / "m");
  for (const char* name : {"glyd.safetensors.index.json", "glyd-00001-of-00001.safetensors", "glyd-source/x"}) {
    test::write_file(work / "m" / name, "x");
    EXPECT_THAT(error_of(open_source(work / "m", nullptr), GLYD_ERROR_INVALID_ARGUMENT),
                HasSubstr("is one that packed checkpoints use"));
    fs::remove(work / "m" / name);
  }
  EXPECT_THAT(error_of(open_source(work / "m", nullptr), GLYD_ERROR_INVALID_ARGUMENT),
              HasSubstr("rename the folder"));  // glyd-source is left, empty
  test::write_file(work / "m/glyd.json", "x");
  EXPECT_THAT(error_of(open_source(work / "m", nullptr), GLYD_ERROR_INVALID_ARGUMENT),
              HasSubstr("a packed checkpoint already"));
}

TEST(OpenSource, LinksMayNotLeaveTheDirectory) {
  const TempDirectory work;
  test::write_small_model(work / "m");
  test::write_file(work / "outside.txt", "x");
  fs::create_symlink("config.json", work / "m/inside.json");
  ASSERT_TRUE(open_source(work / "m", nullptr));
  fs::create_symlink("../outside.txt", work / "m/link");
  EXPECT_THAT(error_of(open_source(work / "m", nullptr), GLYD_ERROR_UNSUPPORTED),
              HasSubstr("link: a symbolic link that leaves the directory"));
  fs::remove(work / "m/link");
  fs::create_symlink("nowhere", work / "m/link");
  EXPECT_THAT(error_of(open_source(work / "m", nullptr), GLYD_ERROR_NOT_FOUND), HasSubstr("leads nowhere"));
  fs::remove(work / "m/link");
  fs::create_directory(work / "m/sub");
  fs::create_directory_symlink("sub", work / "m/link");
  EXPECT_THAT(error_of(open_source(work / "m", nullptr), GLYD_ERROR_UNSUPPORTED),
              HasSubstr("a symbolic link to a directory"));
  fs::remove(work / "m/link");
  ASSERT_EQ(::mkfifo((work / "m/pipe").c_str(), 0600), 0);
  EXPECT_THAT(error_of(open_source(work / "m", nullptr), GLYD_ERROR_UNSUPPORTED),
              HasSubstr("neither a file nor a directory"));
}

TEST(OpenSource, FileNamesThatAreNotUtf8AreRefused) {
  const TempDirectory work;
  test::write_small_model(work / "m");
  test::write_file(work / "m" / "bad\xff", "x");
  EXPECT_THAT(error_of(open_source(work / "m", nullptr), GLYD_ERROR_UNSUPPORTED), HasSubstr("not UTF-8"));
}

// A cache as the public library lays it out: blobs, refs, snapshots of links.
class HubCache : public ::testing::Test {
 protected:
  void SetUp() override {
    test::write_small_model(work_ / "made");
    for (const char* name : {"model.safetensors", "config.json"}) {
      fs::create_directories(repo() / "blobs");
      fs::create_directories(repo() / "snapshots" / kCommit);
      fs::copy_file(work_ / "made" / name, repo() / "blobs" / name);
      fs::create_symlink(fs::path("../../blobs") / name, repo() / "snapshots" / kCommit / name);
    }
    test::write_file(repo() / "refs/main", kCommit);
    test::write_file(repo() / "refs/refs/pr/1", kCommit + "\n");
    ::setenv("HF_HUB_CACHE", (work_ / "hub").c_str(), 1);
  }
  void TearDown() override { ::unsetenv("HF_HUB_CACHE"); }
  fs::path repo() const { return work_ / "hub/models--org--name"; }
  const TempDirectory work_;
};

TEST_F(HubCache, FindsBranchPullRequestAndCommit) {
  for (const char* revision : {static_cast<const char*>(nullptr), "main", "refs/pr/1", kCommit.c_str()}) {
    const auto source = open_source("org/name", revision);
    ASSERT_TRUE(source) << source.error().message;
    EXPECT_EQ(source.value().repo, "org/name");
    EXPECT_EQ(source.value().revision, kCommit);
    EXPECT_EQ(source.value().tensor_files.size(), 1u);
  }
}

TEST_F(HubCache, SaysWhatIsMissing) {
  EXPECT_THAT(error_of(open_source("org/other", nullptr), GLYD_ERROR_NOT_FOUND), HasSubstr("hf download org/other"));
  EXPECT_THAT(error_of(open_source("org/name", "v2"), GLYD_ERROR_NOT_FOUND),
              HasSubstr("revision \"v2\" is not in the Hugging Face cache"));
  EXPECT_THAT(error_of(open_source("org/name", std::string(40, 'd').c_str()), GLYD_ERROR_NOT_FOUND),
              HasSubstr("commit ddd"));
  test::write_file(repo() / "refs/bad", "../../../../etc");
  EXPECT_THAT(error_of(open_source("org/name", "bad"), GLYD_ERROR_CORRUPT), HasSubstr("does not hold a commit"));
}

TEST_F(HubCache, StaysInTheCache) {
  EXPECT_THAT(error_of(open_source("org/name", "../../x"), GLYD_ERROR_INVALID_ARGUMENT),
              HasSubstr("not a branch, tag or commit"));
  for (const char* id : {"a/b/c", "../name", "org/..", "./x", "org/", "/name", "a b", "org/na\\me", ".."})
    EXPECT_FALSE(is_repo_id(id)) << id;
  for (const char* id : {"gpt2", "org/name", "a.b/c-d_e"}) EXPECT_TRUE(is_repo_id(id)) << id;
  fs::create_directory_symlink("/etc", repo() / "snapshots" / std::string(40, 'e'));
  EXPECT_THAT(error_of(open_source("org/name", std::string(40, 'e').c_str()), GLYD_ERROR_CORRUPT),
              HasSubstr("leaves the repo's folder"));
  test::write_file(work_ / "hub/models--org--evil/blobs/x", "x");
  fs::create_symlink("../../../models--org--evil/blobs/x", repo() / "snapshots" / kCommit / "stolen");
  EXPECT_THAT(error_of(open_source("org/name", nullptr), GLYD_ERROR_UNSUPPORTED),
              HasSubstr("stolen: a symbolic link that leaves the directory"));
}

TEST(HubCacheDirectory, FollowsTheEnvironment) {
  ::setenv("HF_HOME", "/h", 1);
  EXPECT_EQ(hf_cache_directory(), "/h/hub");
  ::setenv("HF_HUB_CACHE", "/c", 1);
  EXPECT_EQ(hf_cache_directory(), "/c");
  ::unsetenv("HF_HUB_CACHE");
  ::unsetenv("HF_HOME");
  ::setenv("XDG_CACHE_HOME", "/x", 1);
  EXPECT_EQ(hf_cache_directory(), "/x/huggingface/hub");
  ::unsetenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  EXPECT_EQ(hf_cache_directory(), fs::path(home == nullptr ? "" : home) / ".cache/huggingface/hub");
}

}  // namespace
}  // namespace glyd
