#include "checkpoint/model_config.hpp"

#include <array>
#include <nlohmann/json.hpp>

#include "checkpoint/manifest.hpp"

namespace glyd {
namespace {

// Where models of several parts say what the language model is.
constexpr const char* kNestedConfigs[] = {"text_config", "llm_config", "language_config", "thinker_config"};

// Marks that no config holds by itself: a control character may not stand unescaped in JSON.
constexpr std::array<std::string_view, 3> kPythonNumbers = {"-Infinity", "Infinity", "NaN"};

std::string marked(std::string_view number, const char* control) {
  return fmt::format("\"{}glyd:{}\"", control, number);
}

std::string mark_python_numbers(std::string_view text) {
  std::string out;
  bool in_string = false;
  for (size_t i = 0; i < text.size();) {
    if (in_string && text[i] == '\\' && i + 1 < text.size()) {
      out.append(text.substr(i, 2));
      i += 2;
      continue;
    }
    if (text[i] == '"') in_string = !in_string;
    std::string_view number;
    for (const auto candidate : kPythonNumbers) {
      if (!in_string && text.substr(i).starts_with(candidate)) number = candidate;
    }
    if (number.empty()) {
      out.push_back(text[i++]);
      continue;
    }
    out += marked(number, "\\u0001");
    i += number.size();
  }
  return out;
}

// The first of the names that is an unsigned number.
std::optional<uint64_t> number_of(const OrderedJson& config, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const auto found = config.find(name);
    if (found != config.end() && found->is_number_unsigned()) return found->get<uint64_t>();
  }
  return std::nullopt;
}

// Depth without recursion, before the parser builds anything.
bool nested_too_deep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (in_string && text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      in_string = !in_string;
    } else if (!in_string && (text[i] == '{' || text[i] == '[')) {
      if (++depth > kMostJsonDepth) return true;
    } else if (!in_string && (text[i] == '}' || text[i] == ']')) {
      --depth;
    }
  }
  return false;
}

}  // namespace

Result<OrderedJson> parse_config(std::string_view text, std::string_view where) {
  if (nested_too_deep(text)) return corrupt("{}: nested more than {} levels deep", where, kMostJsonDepth);
  OrderedJson config = OrderedJson::parse(mark_python_numbers(text), nullptr, false);
  if (config.is_discarded()) return corrupt("{}: not valid JSON", where);
  if (!config.is_object()) return corrupt("{}: not a JSON object", where);
  return config;
}

std::string config_text(const OrderedJson& config) {
  std::string text = config.dump(2) + "\n";
  for (const auto number : kPythonNumbers) {
    const std::string mark = marked(number, "\\u0001");
    for (size_t place = text.find(mark); place != std::string::npos; place = text.find(mark, place))
      text.replace(place, mark.size(), number);
  }
  return text;
}

std::string model_type_of(const OrderedJson& config) {
  const auto found = config.find("model_type");
  return found != config.end() && found->is_string() ? found->get<std::string>() : "";
}

OrderedJson quantization_config(Layout layout, std::string_view glyd_version) {
  return {{"quant_method", "glyd"},
          {"format", kCheckpointFormat},
          {"layout", layout_text(layout)},
          {"glyd_version", std::string(glyd_version)}};
}

Result<std::string> edited_config(std::string_view text, std::string_view where, Layout layout,
                                  std::string_view glyd_version) {
  GLYD_TRY(OrderedJson config, parse_config(text, where));
  const auto found = config.find("quantization_config");
  if (found != config.end() && !found->is_null()) {
    const bool named = found->is_object() && found->contains("quant_method") && (*found)["quant_method"].is_string();
    return unsupported(
        "{}: the model is quantized already (quantization_config{}); pack the bf16 model that it was made from", where,
        named ? ", quant_method " + json_quote((*found)["quant_method"].get<std::string>()) : "");
  }
  config["quantization_config"] = quantization_config(layout, glyd_version);
  return config_text(config);
}

std::optional<uint64_t> max_context(const OrderedJson& config) {
  for (const char* nested : kNestedConfigs) {
    const auto found = config.find(nested);
    if (found == config.end() || !found->is_object()) continue;
    if (auto tokens = max_context(*found)) return tokens;
  }
  return number_of(config, {"max_position_embeddings", "n_positions", "n_ctx", "max_seq_len"});
}

std::optional<CacheShape> cache_shape(const OrderedJson& config) {
  for (const char* nested : kNestedConfigs) {
    const auto found = config.find(nested);
    if (found == config.end() || !found->is_object()) continue;
    if (auto shape = cache_shape(*found)) return shape;
  }
  CacheShape shape;
  const auto layers = number_of(config, {"num_hidden_layers", "n_layer", "num_layers", "n_layers"});
  if (!layers) return std::nullopt;
  shape.layers = *layers;
  // Multi-head latent attention keeps one compressed vector and the rotary keys.
  if (const auto rank = number_of(config, {"kv_lora_rank"})) {
    shape.values_a_token = *rank + number_of(config, {"qk_rope_head_dim"}).value_or(0);
    return shape;
  }
  const auto heads = number_of(config, {"num_attention_heads", "n_head", "num_heads", "n_heads"});
  const auto hidden = number_of(config, {"hidden_size", "n_embd", "d_model"});
  if (!heads || *heads == 0) return std::nullopt;
  auto head_dim = number_of(config, {"head_dim"});
  if (!head_dim && hidden) head_dim = *hidden / *heads;
  if (!head_dim) return std::nullopt;
  uint64_t kv_heads = number_of(config, {"num_key_value_heads", "num_kv_heads", "n_head_kv"}).value_or(*heads);
  if (const auto multi_query = config.find("multi_query"); multi_query != config.end() && *multi_query == true)
    kv_heads = 1;
  if (!checked_mul(kv_heads, *head_dim, shape.values_a_token) ||
      !checked_mul<uint64_t>(shape.values_a_token, 2, shape.values_a_token))
    return std::nullopt;
  return shape;
}

}  // namespace glyd
