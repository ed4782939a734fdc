// test_model.hpp - small checkpoints made on the spot, and directory trees read back to be compared.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "format/safetensors.hpp"

namespace glyd::test {

// A fresh directory that goes with the object.
class TempDirectory {
 public:
  TempDirectory();
  ~TempDirectory();
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

struct TestTensor {
  std::string name;
  std::string dtype;
  std::vector<uint64_t> shape;
  std::string data;
};

// Bytes of bf16 values that look trained: normal, so that their exponents have about 2.6 bits of entropy.
std::string trained_bf16(uint64_t values, uint64_t seed);
// Bytes without any pattern.
std::string random_bytes(uint64_t bytes, uint64_t seed);

// A tensor of that dtype and shape: trained values for BF16, random bytes else.
TestTensor make_tensor(const std::string& name, const std::string& dtype, const std::vector<uint64_t>& shape,
                       uint64_t seed);

// A safetensors file's bytes; headers are padded to 8 bytes, as the public library does.
std::string safetensors_bytes(const std::vector<TestTensor>& tensors);
// The same from a header as text.
std::string safetensors_bytes(const std::string& header, const std::string& data);

void write_file(const std::filesystem::path& path, const std::string& bytes);
std::string read_file(const std::filesystem::path& path);

// Every file below a directory by relative path; empty directories as "name/" -> "".
std::map<std::string, std::string> read_tree(const std::filesystem::path& root);

// A directory with most of what real ones hold: two shards with an index, biases, an untied head, a stack of experts,
// tensors of other dtypes, empty and scalar ones, a tokenizer, subfolders, an empty folder, foreign files.
void write_sharded_model(const std::filesystem::path& directory);
// One file of a few small matrices, with a config of that model type.
void write_small_model(const std::filesystem::path& directory, const std::string& model_type = "llama");

}  // namespace glyd::test
