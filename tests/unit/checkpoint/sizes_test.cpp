#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "checkpoint/checkpoint.hpp"
#include "unit/checkpoint/test_model.hpp"

namespace glyd {
namespace {

using test::TempDirectory;
using ::testing::HasSubstr;

TEST(Sizes, CountsEveryMatrixInBothLayouts) {
  const TempDirectory work;
  test::write_sharded_model(work / "m");
  const auto found = checkpoint_sizes({work / "m"}, {2});
  ASSERT_TRUE(found) << found.error().message;
  const auto& model = found.value()["models"][0];
  EXPECT_EQ(model["name"], "m");
  ASSERT_EQ(model["matrices"].size(), 4u);
  const auto& embedding = model["matrices"][0];
  EXPECT_EQ(embedding["name"], "model.embed_tokens.weight");
  EXPECT_EQ(embedding["rows"], 200);
  EXPECT_EQ(embedding["kind"], "embedding");
  EXPECT_GT(embedding["floor_bits"], 10.3);
  EXPECT_LT(embedding["floor_bits"], 10.7);
  EXPECT_GT(embedding["small_bits"], embedding["floor_bits"]);
  const auto& stack = model["matrices"][2];
  EXPECT_EQ(stack["stack"], 4);
  EXPECT_EQ(stack["kind"], "experts");
  EXPECT_EQ(model["carried"]["count"], 12);  // the matrix of noise too
  EXPECT_EQ(model["carried"]["dtypes"]["F16"], 512);
  uint64_t bytes = 0;
  for (const auto& kind : model["kinds"]) bytes += kind["fast_bytes"].get<uint64_t>();
  EXPECT_EQ(model["total"]["fast_bytes"], bytes);
}

TEST(Sizes, SeveralModelsAndErrorsAreNamed) {
  const TempDirectory work;
  test::write_small_model(work / "a");
  test::write_small_model(work / "b", "gpt2");
  const auto found = checkpoint_sizes({work / "a", work / "b"}, {1});
  ASSERT_TRUE(found);
  EXPECT_EQ(found.value()["models"].size(), 2u);
  EXPECT_EQ(found.value()["models"][0]["matrices"][0]["rows"], 64);
  EXPECT_EQ(found.value()["models"][1]["matrices"][0]["rows"], 96);  // [in, out]
  EXPECT_THAT(checkpoint_sizes({work / "a", work / "none/x"}, {1}).error().message,
              HasSubstr("none/x: no such file or directory"));
}

}  // namespace
}  // namespace glyd
