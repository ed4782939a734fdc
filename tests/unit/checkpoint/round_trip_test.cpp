// Packing, checking and restoring whole checkpoints.
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

PackOptions options_for(Layout layout, int threads = 2) {
  PackOptions options;
  options.layout = layout;
  options.threads = threads;
  options.glyd_version = "0.1.0";
  return options;
}

class RoundTrip : public ::testing::TestWithParam<Layout> {};
INSTANTIATE_TEST_SUITE_P(Layouts, RoundTrip, ::testing::Values(Layout::kFast, Layout::kSmall),
                         [](const auto& test) { return std::string(layout_text(test.param)); });

TEST_P(RoundTrip, ShardedDirectoryComesBackByteForByte) {
  const TempDirectory work;
  test::write_sharded_model(work / "model");
  const auto packed = pack_checkpoint(work / "model", work / "packed", options_for(GetParam()));
  ASSERT_TRUE(packed) << packed.error().message;
  EXPECT_EQ(packed.value()["tensors_packed"], 4);
  EXPECT_EQ(packed.value()["tensors_carried"], 12);
  EXPECT_LT(packed.value()["bits_per_weight"], 13.0);
  EXPECT_FALSE(fs::exists(work / ".packed.glyd-staging"));
  const auto verified = verify_checkpoint(work / "packed", {2, (work / "model").c_str()});
  ASSERT_TRUE(verified) << verified.error().message;
  const auto unpacked = unpack_checkpoint(work / "packed", work / "back", {});
  ASSERT_TRUE(unpacked) << unpacked.error().message;
  EXPECT_EQ(test::read_tree(work / "back"), test::read_tree(work / "model"));
}

TEST_P(RoundTrip, OneFileComesBackAsAFile) {
  const TempDirectory work;
  test::write_small_model(work / "model");
  ASSERT_TRUE(pack_checkpoint(work / "model/model.safetensors", work / "packed", options_for(GetParam())));
  const auto unpacked = unpack_checkpoint(work / "packed", work / "back.safetensors", {});
  ASSERT_TRUE(unpacked) << unpacked.error().message;
  EXPECT_EQ(test::read_file(work / "back.safetensors"), test::read_file(work / "model/model.safetensors"));
  EXPECT_FALSE(fs::exists(work / "packed/config.json"));
}

TEST_P(RoundTrip, TheSameBytesAtAnyNumberOfThreads) {
  const TempDirectory work;
  test::write_sharded_model(work / "model");
  ASSERT_TRUE(pack_checkpoint(work / "model", work / "one", options_for(GetParam(), 1)));
  ASSERT_TRUE(pack_checkpoint(work / "model", work / "four", options_for(GetParam(), 4)));
  EXPECT_EQ(test::read_tree(work / "one"), test::read_tree(work / "four"));
}

TEST(Pack, EveryTensorFileInADirectoryWithoutIndex) {
  const TempDirectory work;
  test::write_file(work / "model/b.safetensors",
                   test::safetensors_bytes({test::make_tensor("b", "BF16", {64, 64}, 1)}));
  test::write_file(work / "model/a.safetensors",
                   test::safetensors_bytes({test::make_tensor("a", "BF16", {64, 64}, 2)}));
  ASSERT_TRUE(pack_checkpoint(work / "model", work / "packed", options_for(Layout::kFast)));
  EXPECT_TRUE(fs::exists(work / "packed/glyd-00002-of-00002.safetensors"));
  ASSERT_TRUE(unpack_checkpoint(work / "packed", work / "back", {}));
  EXPECT_EQ(test::read_tree(work / "back"), test::read_tree(work / "model"));
}

TEST(Pack, ModelOfOtherDtypesIsCarried) {
  const TempDirectory work;
  test::write_file(work / "model/model.safetensors",
                   test::safetensors_bytes({test::make_tensor("w", "F16", {64, 64}, 1)}));
  const auto packed = pack_checkpoint(work / "model", work / "packed", options_for(Layout::kFast));
  ASSERT_TRUE(packed) << packed.error().message;
  EXPECT_EQ(packed.value()["tensors_packed"], 0);
  ASSERT_TRUE(unpack_checkpoint(work / "packed", work / "back", {}));
  EXPECT_EQ(test::read_tree(work / "back"), test::read_tree(work / "model"));
}

TEST(Pack, ConfigSaysHowTheModelIsPackedAndKeepsTheRest) {
  const TempDirectory work;
  test::write_small_model(work / "model");
  ASSERT_TRUE(pack_checkpoint(work / "model", work / "packed", options_for(Layout::kSmall)));
  const std::string config = test::read_file(work / "packed/config.json");
  EXPECT_THAT(config, HasSubstr("\"quant_method\": \"glyd\""));
  EXPECT_THAT(config, HasSubstr("\"layout\": \"small\""));
  EXPECT_THAT(config, HasSubstr("Infinity\n"));
  EXPECT_THAT(config, HasSubstr("\"rms_norm_eps\": 1e-06"));
  EXPECT_EQ(test::read_file(work / "packed/glyd-source/config.json"), test::read_file(work / "model/config.json"));
}

TEST(Pack, ReductionAxisFollowsTheModelType) {
  const TempDirectory work;
  test::write_small_model(work / "gpt2", "gpt2");
  test::write_small_model(work / "llama", "llama");
  for (const auto& [name, axis] : {std::pair{"gpt2", -2}, std::pair{"llama", -1}}) {
    ASSERT_TRUE(pack_checkpoint(work / name, work / (std::string(name) + "-packed"), options_for(Layout::kFast)));
    const auto manifest = Json::parse(test::read_file(work / (std::string(name) + "-packed/glyd.json")));
    EXPECT_EQ(manifest["tensors"]["transformer.h.0.attn.c_attn.weight"]["packed"]["reduction_axis"], axis);
    EXPECT_EQ(manifest["tensors"]["transformer.wte.weight"]["packed"]["reduction_axis"], -1);
    ASSERT_TRUE(unpack_checkpoint(work / (std::string(name) + "-packed"), work / (std::string(name) + "-back"), {}));
    EXPECT_EQ(test::read_tree(work / (std::string(name) + "-back")), test::read_tree(work / name));
  }
}

TEST(Pack, WholeFileHashesAreKeptAndCheckedWhenAskedFor) {
  const TempDirectory work;
  test::write_sharded_model(work / "model");
  PackOptions options = options_for(Layout::kFast);
  options.hash_files = true;
  ASSERT_TRUE(pack_checkpoint(work / "model", work / "packed", options));
  const auto manifest = Json::parse(test::read_file(work / "packed/glyd.json"));
  EXPECT_TRUE(is_hex(manifest["source_files"][0]["sha256"].get<std::string>(), 64));
  EXPECT_TRUE(verify_checkpoint(work / "packed", {}));
  EXPECT_TRUE(unpack_checkpoint(work / "packed", work / "back", {}));
}

TEST(Pack, ModesOfAllFilesComeBack) {
  const TempDirectory work;
  test::write_small_model(work / "model");
  test::write_file(work / "model/run.sh", "#!/bin/sh\n");
  ASSERT_EQ(::chmod((work / "model/run.sh").c_str(), 0755), 0);
  ASSERT_EQ(::chmod((work / "model/model.safetensors").c_str(), 0600), 0);
  ASSERT_EQ(::chmod((work / "model/config.json").c_str(), 0440), 0);
  ASSERT_TRUE(pack_checkpoint(work / "model", work / "packed", options_for(Layout::kFast)));
  ASSERT_TRUE(unpack_checkpoint(work / "packed", work / "back", {}));
  const auto mode = [&](const char* name) {
    return static_cast<unsigned>(fs::status(work / "back" / name).permissions());
  };
  EXPECT_EQ(mode("run.sh"), 0755u);
  EXPECT_EQ(mode("model.safetensors"), 0600u);
  EXPECT_EQ(mode("config.json"), 0440u);
}

TEST(Pack, CancellingLeavesNothing) {
  const TempDirectory work;
  test::write_sharded_model(work / "model");
  PackOptions options = options_for(Layout::kFast);
  options.progress = [](uint64_t, uint64_t, const char*) { return false; };
  const auto packed = pack_checkpoint(work / "model", work / "packed", options);
  ASSERT_FALSE(packed);
  EXPECT_EQ(packed.error().status, GLYD_ERROR_CANCELLED);
  EXPECT_FALSE(fs::exists(work / "packed"));
  EXPECT_FALSE(fs::exists(work / ".packed.glyd-staging"));
}

TEST(Pack, ProgressEndsAtTheTotal) {
  const TempDirectory work;
  test::write_sharded_model(work / "model");
  uint64_t last = 0, all = 1;
  PackOptions options = options_for(Layout::kFast);
  options.progress = [&](uint64_t done, uint64_t total, const char*) {
    EXPECT_GE(done, last);
    last = done;
    all = total;
    return true;
  };
  ASSERT_TRUE(pack_checkpoint(work / "model", work / "packed", options));
  EXPECT_EQ(last, all);
  options.hash_files = true;
  last = 0;
  ASSERT_TRUE(pack_checkpoint(work / "model", work / "again", options));
  EXPECT_EQ(last, all);
}

TEST(Verify, ProgressEndsAtTheTotal) {
  const TempDirectory work;
  test::write_sharded_model(work / "model");
  ASSERT_TRUE(pack_checkpoint(work / "model", work / "packed", options_for(Layout::kFast)));
  uint64_t last = 0, all = 1;
  const ProgressCallback progress = [&](uint64_t done, uint64_t total, const char*) {
    EXPECT_GE(done, last);
    last = done;
    all = total;
    return true;
  };
  ASSERT_TRUE(verify_checkpoint(work / "packed", {2, nullptr, nullptr, progress}));
  EXPECT_EQ(last, all);
  last = 0;
  ASSERT_TRUE(unpack_checkpoint(work / "packed", work / "back", {2, false, progress}));
  EXPECT_EQ(last, all);
}

TEST(Verify, SourceThatDiffersIsNamed) {
  const TempDirectory work;
  test::write_sharded_model(work / "model");
  ASSERT_TRUE(pack_checkpoint(work / "model", work / "packed", options_for(Layout::kFast)));
  const auto against = [&] {
    const auto verified = verify_checkpoint(work / "packed", {2, (work / "model").c_str()});
    EXPECT_FALSE(verified);
    EXPECT_EQ(verified.error().status, GLYD_ERROR_MISMATCH);
    return verified.error().message;
  };
  const std::string shard = test::read_file(work / "model/model-00002-of-00002.safetensors");
  std::string changed = shard;
  changed.back() = static_cast<char>(changed.back() ^ 1);
  test::write_file(work / "model/model-00002-of-00002.safetensors", changed);
  EXPECT_THAT(against(), HasSubstr("tensor \"noise\" differs"));
  test::write_file(work / "model/model-00002-of-00002.safetensors", shard);
  test::write_file(work / "model/README.md", "# A modal\n");
  EXPECT_THAT(against(), HasSubstr("README.md: differs"));
  test::write_file(work / "model/README.md", "# A model\n");
  test::write_file(work / "model/new.txt", "");
  EXPECT_THAT(against(), HasSubstr("new.txt: in the source, but not in"));
}

TEST(Unpack, OverwritesWhatItWouldMakeItselfAndNothingElse) {
  const TempDirectory work;
  test::write_small_model(work / "model");
  ASSERT_TRUE(pack_checkpoint(work / "model", work / "packed", options_for(Layout::kFast)));
  test::write_file(work / "photos/cat.jpg", "meow");
  EXPECT_EQ(unpack_checkpoint(work / "packed", work / "photos", {}).error().status, GLYD_ERROR_EXISTS);
  EXPECT_THAT(unpack_checkpoint(work / "packed", work / "photos", {0, true}).error().message,
              HasSubstr("not overwritten"));
  EXPECT_TRUE(fs::exists(work / "photos/cat.jpg"));
  test::write_small_model(work / "older", "gpt2");
  ASSERT_TRUE(unpack_checkpoint(work / "packed", work / "older", {0, true}));
  EXPECT_EQ(test::read_tree(work / "older"), test::read_tree(work / "model"));
}

TEST(Unpack, RefusesATargetInsideThePackedDirectory) {
  const TempDirectory work;
  test::write_small_model(work / "model");
  ASSERT_TRUE(pack_checkpoint(work / "model", work / "packed", options_for(Layout::kFast)));
  EXPECT_THAT(unpack_checkpoint(work / "packed", work / "packed/back", {}).error().message,
              HasSubstr("lies in the packed checkpoint"));
}

}  // namespace
}  // namespace glyd
