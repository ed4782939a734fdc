#include "checkpoint/kinds.hpp"

#include <algorithm>
#include <array>
#include <iterator>

namespace glyd {
namespace {

struct Kind {
  std::string_view kind;
  std::array<std::string_view, 22> words;  // any of them in the name; "" ends the list
};

// The first kind with a word in the name. Experts come before mlp, whose words their names also hold; heads before
// embeddings ("embed_out").
constexpr Kind kKinds[] = {
    {"experts", {"expert", "block_sparse_moe", "moe."}},
    {"head", {"lm_head", "embed_out", "output_projection", "classifier", "score.weight"}},
    {"embedding", {"embed", "wte.", "wpe.", "shared.weight"}},
    {"attention",
     {"attn", "attention", "q_proj", "k_proj", "v_proj", "o_proj", "qkv", "query_key_value", "kv_a_proj", "kv_b_proj",
      "q_a_proj", "q_b_proj", ".query.", ".key.", ".value.", ".SelfAttention.", ".EncDecAttention."}},
    {"mlp",
     {"mlp", "feed_forward", "ffn", "gate_proj", "up_proj", "down_proj", "gate_up", "c_fc", "c_proj", "fc1", "fc2",
      "dense_h_to_4h", "dense_4h_to_h", "intermediate.", "DenseReluDense", ".output.dense."}},
};

}  // namespace

std::string_view kind_of(std::string_view tensor) {
  for (const Kind& kind : kKinds) {
    const bool found = std::any_of(kind.words.begin(), kind.words.end(), [&](std::string_view word) {
      return !word.empty() && tensor.find(word) != std::string_view::npos;
    });
    if (found) return kind.kind;
  }
  return "other";
}

}  // namespace glyd
