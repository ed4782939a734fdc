// Read off the model classes of transformers 5.24. nn.Linear stores [out, in]; the exceptions among classes that keep
// their tensors as checkpoints have them are
//  - Conv1D of pytorch_utils ([in, out], y = x W + b): gpt2, openai-gpt, imagegpt, decision_transformer, and the MLPs
//  of CLVP's decoder (its attention is nn.Linear);
//  - expert stacks multiplied by bmm/matmul as [experts, in, out]: gpt_oss, openai_privacy_filter, aria
//  (use_experts_implementation(is_transposed=True)), llama4;
//  - dbrx's w2, stored [experts * ffn, hidden] and multiplied as x.matmul(w2) for each expert's rows (w1 and v1 go
//  transposed, as nn.Linear's).
// qwen3_vl_moe's published checkpoints hold [experts, in, out] stacks which transformers transposes while loading, when
// the shapes show it: they are packed along the last axis and the loader, which knows the module's shape, packs anew
// where it must.
#include "checkpoint/axis.hpp"

#include <algorithm>
#include <array>
#include <iterator>

namespace glyd {
namespace {

struct Rule {
  std::string_view model_type;
  size_t dimensions;
  std::array<std::string_view, 4> endings;  // of the tensor's name, after a '.' or at its start; empty: none
};

constexpr std::array<std::string_view, 4> kConv1d = {"c_attn.weight", "c_proj.weight", "c_fc.weight", "q_attn.weight"};
constexpr std::array<std::string_view, 4> kExperts = {"experts.gate_up_proj", "experts.down_proj", "", ""};
constexpr std::array<std::string_view, 4> kAriaExperts = {"experts.gate_up_proj", "experts.down_proj",
                                                          "experts.fc1.weight", "experts.fc2.weight"};

constexpr Rule kRules[] = {
    {"gpt2", 2, kConv1d},
    {"openai-gpt", 2, kConv1d},
    {"imagegpt", 2, kConv1d},
    {"decision_transformer", 2, kConv1d},
    {"clvp", 2, {"mlp.c_fc.weight", "mlp.c_proj.weight", "", ""}},
    {"clvp_decoder", 2, {"mlp.c_fc.weight", "mlp.c_proj.weight", "", ""}},
    {"gpt_oss", 3, kExperts},
    {"openai_privacy_filter", 3, kExperts},
    {"llama4", 3, kExperts},
    {"llama4_text", 3, kExperts},
    {"aria", 3, kAriaExperts},
    {"aria_text", 3, kAriaExperts},
    {"dbrx", 2, {"experts.mlp.w2", "", "", ""}},
};

bool has_ending(std::string_view name, std::string_view ending) {
  if (ending.empty() || !name.ends_with(ending)) return false;
  return name.size() == ending.size() || name[name.size() - ending.size() - 1] == '.';
}

}  // namespace

bool is_stored_in_out(std::string_view model_type, std::string_view tensor, size_t dimensions) {
  return std::any_of(std::begin(kRules), std::end(kRules), [&](const Rule& rule) {
    return rule.model_type == model_type && rule.dimensions == dimensions &&
           std::any_of(rule.endings.begin(), rule.endings.end(),
                       [&](std::string_view ending) { return has_ending(tensor, ending); });
  });
}

}  // namespace glyd
