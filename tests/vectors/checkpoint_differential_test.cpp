// checkpoint_differential_test.cpp - what the library packs, the reference takes for whole and unpacks to the source;
// what the reference refuses because a byte was changed, the library refuses too.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/manifest.hpp"
#include "glyd_reference.hpp"
#include "temporary_tree.hpp"
#include "unit/checkpoint/test_model.hpp"

namespace glyd {
namespace {

namespace fs = std::filesystem;
using test::TempDirectory;
using vectors::difference;
using vectors::tree_of;

class CheckpointDifferential : public ::testing::TestWithParam<Layout> {
 protected:
  void pack(const fs::path& source, bool hash_files = false) {
    PackOptions options;
    options.layout = GetParam();
    options.glyd_version = "0.1.0";
    options.hash_files = hash_files;
    const auto packed = pack_checkpoint(source, work_ / "packed", options);
    ASSERT_TRUE(packed) << packed.error().message;
  }
  void expect_the_reference_unpacks(const fs::path& source) {
    ASSERT_NO_THROW(glyd_reference::verify_checkpoint(work_ / "packed"));
    ASSERT_NO_THROW(glyd_reference::unpack_checkpoint(work_ / "packed", work_ / "back"));
    EXPECT_EQ(difference(tree_of(work_ / "back"), tree_of(source)), "");
  }
  const TempDirectory work_;
};
INSTANTIATE_TEST_SUITE_P(Layouts, CheckpointDifferential, ::testing::Values(Layout::kFast, Layout::kSmall),
                         [](const auto& test) { return std::string(layout_text(test.param)); });

TEST_P(CheckpointDifferential, ShardedModel) {
  test::write_sharded_model(work_ / "model");
  pack(work_ / "model", true);
  expect_the_reference_unpacks(work_ / "model");
}

TEST_P(CheckpointDifferential, ModelStoredInOut) {
  test::write_small_model(work_ / "model", "gpt2");
  pack(work_ / "model");
  expect_the_reference_unpacks(work_ / "model");
}

TEST_P(CheckpointDifferential, OneFile) {
  test::write_small_model(work_ / "model");
  pack(work_ / "model/model.safetensors");
  expect_the_reference_unpacks(work_ / "model/model.safetensors");
}

// Shapes, dtypes and file names at random; names and sides that no real model has.
TEST_P(CheckpointDifferential, RandomModels) {
  constexpr const char* kDtypes[] = {"BF16", "BF16", "BF16", "F32", "F16", "I8"};
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const fs::path model = work_ / "model";
    const std::uint64_t files = 1 + random() % 3;
    for (std::uint64_t file = 0; file < files; ++file) {
      std::vector<test::TestTensor> tensors;
      for (std::uint64_t i = random() % 5; i > 0; --i) {
        std::vector<std::uint64_t> shape(random() % 4);
        for (auto& side : shape) side = random() % 8 == 0 ? 0 : 1 + random() % 90;
        tensors.push_back(test::make_tensor("t" + std::to_string(file) + "." + std::to_string(i),
                                            kDtypes[random() % std::size(kDtypes)], shape, random()));
      }
      test::write_file(model / (std::string(1, static_cast<char>('z' - file)) + ".safetensors"),
                       test::safetensors_bytes(tensors));
    }
    test::write_file(model / "deep" / std::to_string(seed), test::random_bytes(random() % 3000, seed));
    pack(model);
    expect_the_reference_unpacks(model);
    for (const char* made : {"model", "packed", "back"}) fs::remove_all(work_ / made);
  }
}

// One bit of any file changed: neither takes it.
TEST_P(CheckpointDifferential, BothRefuseAChangedBit) {
  test::write_small_model(work_ / "model");
  pack(work_ / "model");
  std::mt19937_64 random(7);
  for (const auto& [path, bytes] : tree_of(work_ / "packed")) {
    for (int i = 0; i < 12 && !bytes.empty(); ++i) {
      std::string damaged = bytes;
      const std::size_t at = random() % bytes.size();
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << random() % 8));
      test::write_file(work_ / "packed" / path, damaged);
      SCOPED_TRACE(path + " byte " + std::to_string(at));
      EXPECT_FALSE(verify_checkpoint(work_ / "packed", {}));
      EXPECT_THROW(glyd_reference::verify_checkpoint(work_ / "packed"), glyd_reference::Corrupt);
    }
    test::write_file(work_ / "packed" / path, bytes);
  }
  EXPECT_TRUE(verify_checkpoint(work_ / "packed", {}));
}

}  // namespace
}  // namespace glyd
