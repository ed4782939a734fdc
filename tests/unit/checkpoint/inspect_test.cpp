#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "checkpoint/checkpoint.hpp"
#include "unit/checkpoint/test_model.hpp"

namespace glyd {
namespace {

using test::TempDirectory;
using ::testing::HasSubstr;

class Inspect : public ::testing::Test {
 protected:
  void SetUp() override {
    test::write_sharded_model(work_ / "m");
    PackOptions options;
    options.layout = Layout::kSmall;
    options.glyd_version = "0.1.0";
    ASSERT_TRUE(pack_checkpoint(work_ / "m", work_ / "p", options));
  }
  OrderedJson document(const std::string& path) {
    const auto found = inspect_checkpoint(path, nullptr);
    EXPECT_TRUE(found) << found.error().message;
    return found ? found.value() : OrderedJson();
  }
  const TempDirectory work_;
};

TEST_F(Inspect, TellsWhatAPackedDirectoryHolds) {
  const auto found = document(work_ / "p");
  EXPECT_EQ(found["kind"], "packed checkpoint");
  EXPECT_EQ(found["layout"], "small");
  EXPECT_EQ(found["tensors_packed"], 4);
  EXPECT_EQ(found["shards"].size(), 2u);
  EXPECT_EQ(found["tensors"].size(), 16u);
}

TEST_F(Inspect, TellsWhatASourceHolds) {
  const auto found = document(work_ / "m");
  EXPECT_EQ(found["kind"], "source");
  EXPECT_EQ(found["tensor_files"].size(), 2u);
  EXPECT_EQ(found["dtypes"]["F32"], 4 + 1024);
}

TEST_F(Inspect, NamesThePacksInAShard) {
  const auto found = document(work_ / "p/glyd-00001-of-00002.safetensors");
  EXPECT_EQ(found["kind"], "safetensors file");
  EXPECT_EQ(found["metadata"]["glyd"], "glyd-x1");
  EXPECT_EQ(found["tensors"][0]["name"], "model.embed_tokens.weight_glyd");
  EXPECT_EQ(found["tensors"][0]["layout"], "small");
  EXPECT_EQ(found["tensors"][0]["rows"], 200);
}

TEST_F(Inspect, ReadsOnePack) {
  const auto shard = document(work_ / "p/glyd-00001-of-00002.safetensors");
  const std::string bytes = test::read_file(work_ / "p/glyd-00001-of-00002.safetensors");
  test::write_file(work_ / "one.pack", bytes.substr(bytes.find("GLYW"), shard["tensors"][0]["bytes"].get<size_t>()));
  const auto found = document(work_ / "one.pack");
  EXPECT_EQ(found["kind"], "pack");
  EXPECT_EQ(found["cols"], 64);
  test::write_file(work_ / "cut.pack", bytes.substr(bytes.find("GLYW"), 100));
  EXPECT_THAT(inspect_checkpoint(work_ / "cut.pack", nullptr).error().message,
              HasSubstr("cut.pack: 100 bytes are no pack"));
}

TEST_F(Inspect, RefusesOtherFiles) {
  EXPECT_EQ(inspect_checkpoint(work_ / "m/README.md", nullptr).error().status, GLYD_ERROR_UNSUPPORTED);
  EXPECT_EQ(inspect_checkpoint(work_ / "m/nothing/here", nullptr).error().status, GLYD_ERROR_NOT_FOUND);
}

}  // namespace
}  // namespace glyd
