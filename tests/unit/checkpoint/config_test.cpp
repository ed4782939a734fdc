#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "checkpoint/model_config.hpp"

namespace glyd {
namespace {

using ::testing::HasSubstr;

TEST(EditedConfig, AddsOneMemberAndKeepsOrderNumbersAndPythonNumbers) {
  const auto edited =
      edited_config(R"({"z": 1e-06, "a": [NaN, -Infinity, "Infinity"], "b": 10000.0, "quantization_config": null})",
                    "config.json", Layout::kFast, "0.1.0");
  ASSERT_TRUE(edited) << edited.error().message;
  EXPECT_EQ(edited.value(),
            "{\n  \"z\": 1e-06,\n  \"a\": [\n    NaN,\n    -Infinity,\n    \"Infinity\"\n  ],\n  \"b\": 10000.0,\n  "
            "\"quantization_config\": {\n"
            "    \"quant_method\": \"glyd\",\n    \"format\": \"glyd-x1\",\n    \"layout\": \"fast\",\n    "
            "\"glyd_version\": \"0.1.0\"\n  }\n}\n");
}

TEST(EditedConfig, QuantizedModelIsRefused) {
  const auto edited =
      edited_config(R"({"quantization_config": {"quant_method": "gptq"}})", "m/config.json", Layout::kFast, "0.1.0");
  ASSERT_FALSE(edited);
  EXPECT_EQ(edited.error().status, GLYD_ERROR_UNSUPPORTED);
  EXPECT_THAT(edited.error().message,
              HasSubstr("m/config.json: the model is quantized already (quantization_config, quant_method \"gptq\")"));
}

TEST(EditedConfig, BrokenTextIsRefused) {
  EXPECT_THAT(edited_config("{", "c", Layout::kFast, "").error().message, HasSubstr("not valid JSON"));
  EXPECT_THAT(edited_config("[]", "c", Layout::kFast, "").error().message, HasSubstr("not a JSON object"));
  EXPECT_THAT(edited_config(std::string(100'000, '['), "c", Layout::kFast, "").error().message,
              HasSubstr("nested more than"));
}

CacheShape shape_of(const char* text) {
  const auto config = parse_config(text, "c");
  EXPECT_TRUE(config);
  return cache_shape(config.value()).value_or(CacheShape{});
}

TEST(CacheShape, FollowsTheHeads) {
  const auto grouped = shape_of(R"({"num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8,)"
                                R"( "head_dim": 128, "hidden_size": 4096})");
  EXPECT_EQ(grouped.layers, 36u);
  EXPECT_EQ(grouped.values_a_token, 2u * 8 * 128);
  EXPECT_EQ(shape_of(R"({"n_layer": 12, "n_head": 12, "n_embd": 768})").values_a_token, 2u * 12 * 64);
  EXPECT_EQ(shape_of(R"({"n_layer": 12, "n_head": 12, "n_embd": 768, "multi_query": true})").values_a_token, 2u * 64);
}

TEST(CacheShape, FollowsNestedTextModelsAndLatentAttention) {
  EXPECT_EQ(shape_of(R"({"text_config": {"num_hidden_layers": 3, "num_attention_heads": 4, "hidden_size": 64},)"
                     R"( "num_hidden_layers": 99})")
                .layers,
            3u);
  const auto latent =
      shape_of(R"({"num_hidden_layers": 61, "num_attention_heads": 128, "kv_lora_rank": 512, "qk_rope_head_dim": 64})");
  EXPECT_EQ(latent.values_a_token, 576u);
  EXPECT_EQ(shape_of(R"({"hidden_size": 3})").layers, 0u);
}

}  // namespace
}  // namespace glyd
