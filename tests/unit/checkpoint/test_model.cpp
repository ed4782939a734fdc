#include "unit/checkpoint/test_model.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <random>
#include <sstream>

namespace glyd::test {
namespace {

namespace fs = std::filesystem;

std::string config(const std::string& model_type) {
  return "{\n  \"model_type\": \"" + model_type +
         "\",\n  \"hidden_size\": 64,\n  \"num_attention_heads\": 4,\n  \"num_key_value_heads\": 2,\n  "
         "\"num_hidden_layers\": 2,\n"
         "  \"rms_norm_eps\": 1e-06,\n  \"time_step_limit\": [0.0, Infinity]\n}\n";
}

std::string index_text(const std::vector<std::pair<std::string, std::vector<TestTensor>>>& shards) {
  std::string text = "{\"metadata\": {\"total_size\": 1}, \"weight_map\": {";
  const char* comma = "";
  for (const auto& [file, tensors] : shards) {
    for (const auto& tensor : tensors) {
      text += comma + ("\"" + tensor.name) + "\": \"" + file + "\"";
      comma = ", ";
    }
  }
  return text + "}}\n";
}

}  // namespace

TempDirectory::TempDirectory() {
  std::string pattern = (fs::path(::testing::TempDir()) / "glyd_test_XXXXXX").string();
  path_ = fs::canonical(::mkdtemp(pattern.data()));
}

TempDirectory::~TempDirectory() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string trained_bf16(uint64_t values, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0.0f, 0.02f);
  std::string bytes(values * 2, '\0');
  for (uint64_t i = 0; i < values; ++i) {
    const float value = normal(random);
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    const auto bf16 = static_cast<uint16_t>(bits >> 16);
    std::memcpy(bytes.data() + 2 * i, &bf16, sizeof bf16);
  }
  return bytes;
}

std::string random_bytes(uint64_t bytes, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string text(bytes, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

TestTensor make_tensor(const std::string& name, const std::string& dtype, const std::vector<uint64_t>& shape,
                       uint64_t seed) {
  const uint64_t bytes = tensor_bytes(*find_dtype(dtype), shape).value();
  return {name, dtype, shape, dtype == "BF16" ? trained_bf16(bytes / 2, seed) : random_bytes(bytes, seed)};
}

std::string safetensors_bytes(const std::string& header, const std::string& data) {
  std::string bytes(8, '\0');
  const uint64_t length = header.size();
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes + header + data;
}

std::string safetensors_bytes(const std::vector<TestTensor>& tensors) {
  std::string header = "{\"__metadata__\":{\"format\":\"pt\"}", data;
  for (const auto& tensor : tensors) {
    header += fmt::format(",\"{}\":{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}", tensor.name,
                          tensor.dtype, fmt::join(tensor.shape, ","), data.size(), data.size() + tensor.data.size());
    data += tensor.data;
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  return safetensors_bytes(header, data);
}

void write_file(const fs::path& path, const std::string& bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string read_file(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

std::map<std::string, std::string> read_tree(const fs::path& root) {
  std::map<std::string, std::string> tree;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    const std::string name = fs::relative(entry.path(), root).string();
    if (entry.is_regular_file()) tree[name] = read_file(entry.path());
    if (entry.is_directory() && fs::is_empty(entry.path())) tree[name + "/"] = "";
  }
  return tree;
}

void write_sharded_model(const fs::path& directory) {
  const std::string layer = "model.layers.0.";
  const std::vector<TestTensor> first = {make_tensor("model.embed_tokens.weight", "BF16", {200, 64}, 1),
                                         make_tensor(layer + "input_layernorm.weight", "BF16", {64}, 2),
                                         make_tensor(layer + "self_attn.q_proj.weight", "BF16", {64, 64}, 3),
                                         make_tensor(layer + "self_attn.q_proj.bias", "BF16", {64}, 4),
                                         make_tensor(layer + "scale", "F32", {}, 5),
                                         make_tensor(layer + "nothing", "BF16", {0, 64}, 6),
                                         make_tensor(layer + "mlp.experts.gate_up_proj", "BF16", {4, 48, 64}, 7)};
  const std::vector<TestTensor> second = {make_tensor("half", "F16", {16, 16}, 8),
                                          make_tensor("single", "F32", {16, 16}, 9),
                                          make_tensor("byte", "I8", {7}, 10),
                                          make_tensor("flag", "BOOL", {3}, 11),
                                          make_tensor("tiny", "F8_E4M3", {5, 3}, 12),
                                          make_tensor("nibbles", "F4", {2, 4}, 13),
                                          make_tensor("empty", "I64", {0}, 14),
                                          make_tensor("lm_head.weight", "BF16", {200, 64}, 15),
                                          {"noise", "BF16", {32, 32}, random_bytes(2048, 16)}};
  write_file(directory / "model-00001-of-00002.safetensors", safetensors_bytes(first));
  write_file(directory / "model-00002-of-00002.safetensors", safetensors_bytes(second));
  write_file(directory / "model.safetensors.index.json",
             index_text({{"model-00001-of-00002.safetensors", first}, {"model-00002-of-00002.safetensors", second}}));
  write_file(directory / "config.json", config("llama"));
  write_file(directory / "README.md", "# A model\n");
  write_file(directory / "tokenizer" / "vocab.json", "{}");
  write_file(directory / "original" / "params" / "deep.bin", random_bytes(5000, 17));
  write_file(directory / "original" / "consolidated.safetensors",
             safetensors_bytes({make_tensor("x", "BF16", {16, 16}, 18)}));
  write_file(directory / "empty.txt", "");
  write_file(directory / "na\xc3\xafve \"name\".txt", "quotes and accents");
  fs::create_directories(directory / "runs" / "nothing here");
}

void write_small_model(const fs::path& directory, const std::string& model_type) {
  write_file(directory / "model.safetensors",
             safetensors_bytes({make_tensor("transformer.h.0.attn.c_attn.weight", "BF16", {64, 96}, 21),
                                make_tensor("transformer.wte.weight", "BF16", {128, 64}, 22),
                                make_tensor("transformer.ln_f.weight", "BF16", {64}, 23)}));
  write_file(directory / "config.json", config(model_type));
}

}  // namespace glyd::test
