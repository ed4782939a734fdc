#include "checkpoint/axis.hpp"

#include <gtest/gtest.h>

#include "checkpoint/kinds.hpp"

namespace glyd {
namespace {

TEST(Axis, Conv1dOfTheGptFamilyIsInOut) {
  for (const char* type : {"gpt2", "openai-gpt", "imagegpt", "decision_transformer"}) {
    EXPECT_TRUE(is_stored_in_out(type, "transformer.h.3.attn.c_attn.weight", 2)) << type;
    EXPECT_TRUE(is_stored_in_out(type, "h.3.mlp.c_proj.weight", 2)) << type;
    EXPECT_TRUE(is_stored_in_out(type, "c_fc.weight", 2)) << type;
    EXPECT_FALSE(is_stored_in_out(type, "transformer.wte.weight", 2)) << type;
    EXPECT_FALSE(is_stored_in_out(type, "lm_head.weight", 2)) << type;
    EXPECT_FALSE(is_stored_in_out(type, "h.3.mlp.xc_proj.weight", 2)) << type;
  }
  // GPTBigCode uses the same names with nn.Linear.
  EXPECT_FALSE(is_stored_in_out("gpt_bigcode", "transformer.h.3.attn.c_attn.weight", 2));
}

TEST(Axis, ClvpHasConv1dInItsMlpOnly) {
  EXPECT_TRUE(is_stored_in_out("clvp", "speech_decoder_model.model.decoder.layers.0.mlp.c_fc.weight", 2));
  EXPECT_FALSE(is_stored_in_out("clvp", "speech_decoder_model.model.decoder.layers.0.attn.c_proj.weight", 2));
}

TEST(Axis, ExpertStacksOfSomeModelsAreInOut) {
  for (const char* type : {"gpt_oss", "llama4", "llama4_text", "aria", "openai_privacy_filter"}) {
    EXPECT_TRUE(is_stored_in_out(type, "model.layers.0.mlp.experts.gate_up_proj", 3)) << type;
    EXPECT_TRUE(is_stored_in_out(type, "model.layers.0.mlp.experts.down_proj", 3)) << type;
    EXPECT_FALSE(is_stored_in_out(type, "model.layers.0.mlp.experts.gate_up_proj", 2)) << type;
    EXPECT_FALSE(is_stored_in_out(type, "model.layers.0.self_attn.q_proj.weight", 2)) << type;
  }
  EXPECT_FALSE(is_stored_in_out("qwen3_moe", "model.layers.0.mlp.experts.gate_up_proj", 3));
  EXPECT_TRUE(is_stored_in_out("dbrx", "transformer.blocks.0.ffn.experts.mlp.w2", 2));
  EXPECT_FALSE(is_stored_in_out("dbrx", "transformer.blocks.0.ffn.experts.mlp.w1", 2));
  EXPECT_FALSE(is_stored_in_out("", "model.layers.0.mlp.experts.gate_up_proj", 3));
}

TEST(Kinds, GoByTheName) {
  EXPECT_EQ(kind_of("model.embed_tokens.weight"), "embedding");
  EXPECT_EQ(kind_of("transformer.wte.weight"), "embedding");
  EXPECT_EQ(kind_of("lm_head.weight"), "head");
  EXPECT_EQ(kind_of("embed_out.weight"), "head");
  EXPECT_EQ(kind_of("model.layers.0.self_attn.o_proj.weight"), "attention");
  EXPECT_EQ(kind_of("bert.encoder.layer.0.attention.self.query.weight"), "attention");
  EXPECT_EQ(kind_of("model.layers.0.mlp.down_proj.weight"), "mlp");
  EXPECT_EQ(kind_of("bert.encoder.layer.0.intermediate.dense.weight"), "mlp");
  EXPECT_EQ(kind_of("model.layers.0.mlp.experts.7.down_proj.weight"), "experts");
  EXPECT_EQ(kind_of("vision.conv1.weight"), "other");
}

}  // namespace
}  // namespace glyd
