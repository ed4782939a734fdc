// Every kind of damage to a packed directory is found by verify and by unpack, before a target appears.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/sha256.hpp"
#include "checkpoint/checkpoint.hpp"
#include "checkpoint/manifest.hpp"
#include "unit/checkpoint/test_model.hpp"

namespace glyd {
namespace {

namespace fs = std::filesystem;
using test::TempDirectory;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class Damage : public ::testing::TestWithParam<Layout> {
 protected:
  void SetUp() override {
    test::write_sharded_model(work_ / "model");
    PackOptions options;
    options.layout = GetParam();
    options.glyd_version = "0.1.0";
    options.hash_files = true;
    ASSERT_TRUE(pack_checkpoint(work_ / "model", packed(), options));
  }
  fs::path packed() const { return work_ / "packed"; }

  // Both refuse; returns what verify says.
  std::string refusal(Status status = GLYD_ERROR_CORRUPT) {
    const auto verified = verify_checkpoint(packed(), {1});
    const auto unpacked = unpack_checkpoint(packed(), work_ / "back", {1});
    EXPECT_FALSE(verified);
    EXPECT_FALSE(unpacked);
    EXPECT_FALSE(fs::exists(work_ / "back"));
    EXPECT_FALSE(fs::exists(work_ / ".back.glyd-staging"));
    if (verified || unpacked) return "";
    EXPECT_EQ(verified.error().status, status);
    EXPECT_EQ(unpacked.error().status, status);
    // verify goes on to other faults, unpack stops at the first.
    EXPECT_THAT(verified.error().message, StartsWith(unpacked.error().message));
    return verified.error().message;
  }

  const TempDirectory work_;
};
INSTANTIATE_TEST_SUITE_P(Layouts, Damage, ::testing::Values(Layout::kFast, Layout::kSmall),
                         [](const auto& test) { return std::string(layout_text(test.param)); });

TEST_P(Damage, FlippedBitsAnywhereAreFound) {
  for (const auto& [name, bytes] : test::read_tree(packed())) {
    if (bytes.empty()) continue;
    // Every place in small files, some 60 spread over large ones (with a stride that meets all parts of a pack).
    const size_t stride = std::max<size_t>(1, bytes.size() / 60);
    for (size_t i = 0; i < bytes.size(); i += stride) {
      std::string damaged = bytes;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << (i % 8)));
      test::write_file(packed() / name, damaged);
      const auto verified = verify_checkpoint(packed(), {1});
      EXPECT_FALSE(verified) << name << " byte " << i;
      if (i % (7 * stride) == 0) {
        EXPECT_FALSE(unpack_checkpoint(packed(), work_ / "back", {1})) << name << " byte " << i;
        EXPECT_FALSE(fs::exists(work_ / "back"));
      }
    }
    test::write_file(packed() / name, bytes);
  }
  EXPECT_TRUE(verify_checkpoint(packed(), {1}));
}

TEST_P(Damage, TruncatedAndLongerFilesAreFound) {
  for (const auto& [name, bytes] : test::read_tree(packed())) {
    if (name.ends_with("/")) continue;
    test::write_file(packed() / name, bytes + "x");
    EXPECT_THAT(refusal(), HasSubstr(name));
    if (!bytes.empty()) {
      test::write_file(packed() / name, bytes.substr(0, bytes.size() - 1));
      EXPECT_THAT(refusal(), HasSubstr(name));
      test::write_file(packed() / name, "");
      EXPECT_THAT(refusal(), HasSubstr(name));
    }
    test::write_file(packed() / name, bytes);
  }
}

TEST_P(Damage, MissingAndForeignFilesAreFound) {
  const std::string shard = test::read_file(packed() / "glyd-00001-of-00002.safetensors");
  fs::remove(packed() / "glyd-00001-of-00002.safetensors");
  EXPECT_THAT(refusal(), HasSubstr("glyd-00001-of-00002.safetensors: missing"));
  fs::create_directory(packed() / "glyd-00001-of-00002.safetensors");
  EXPECT_THAT(refusal(), HasSubstr("glyd-00001-of-00002.safetensors: missing"));
  fs::remove(packed() / "glyd-00001-of-00002.safetensors");
  test::write_file(packed() / "glyd-00001-of-00002.safetensors", shard);
  test::write_file(packed() / "model.safetensors", "intruder");
  EXPECT_THAT(refusal(), HasSubstr("model.safetensors: not a file of this checkpoint"));
  fs::remove(packed() / "model.safetensors");
  fs::create_symlink("/etc/hostname", packed() / "link");
  EXPECT_THAT(refusal(GLYD_ERROR_UNSUPPORTED), HasSubstr("leaves the directory"));
  fs::remove(packed() / "link");
  fs::remove(packed() / "glyd.json");
  EXPECT_THAT(refusal(GLYD_ERROR_NOT_FOUND), HasSubstr("not a packed checkpoint"));
}

TEST_P(Damage, SwappedShardsAreFound) {
  fs::rename(packed() / "glyd-00001-of-00002.safetensors", packed() / "t");
  fs::rename(packed() / "glyd-00002-of-00002.safetensors", packed() / "glyd-00001-of-00002.safetensors");
  fs::rename(packed() / "t", packed() / "glyd-00002-of-00002.safetensors");
  EXPECT_THAT(refusal(), HasSubstr("glyd-00001-of-00002.safetensors"));
}

// Whatever one flipped bit does, salvage makes a target in which everything else is as it was.
TEST_P(Damage, SalvageRestoresWhatIsIntact) {
  const auto original = test::read_tree(work_ / "model");
  UnpackOptions salvage{1};
  salvage.salvage = true;
  for (const auto& [name, bytes] : test::read_tree(packed())) {
    if (bytes.empty() || name == "glyd.json") continue;
    for (const size_t place : {size_t{0}, bytes.size() / 2, bytes.size() - 1}) {
      std::string damaged = bytes;
      damaged[place] = static_cast<char>(damaged[place] ^ 1);
      test::write_file(packed() / name, damaged);
      (void)unpack_checkpoint(packed(), work_ / "back", salvage);
      const auto back = test::read_tree(work_ / "back");
      EXPECT_EQ(back.size(), original.size()) << name << " byte " << place;
      size_t differ = 0;
      for (const auto& [path, content] : original) differ += back.contains(path) && back.at(path) == content ? 0 : 1;
      EXPECT_LE(differ, 1u) << name << " byte " << place;
      fs::remove_all(work_ / "back");
    }
    test::write_file(packed() / name, bytes);
  }
}

// A manifest whose own hash is right, but one of whose statements is not.
class Forged : public Damage {
 protected:
  void forge(const std::function<void(OrderedJson&)>& change) {
    auto document = OrderedJson::parse(original_);
    change(document);
    document["document_sha256"] = std::string(64, '0');
    std::string text = document.dump(1) + "\n";
    const std::string digits = sha256_hex(ByteSpan(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
    text.replace(text.rfind(std::string(64, '0')), 64, digits);
    test::write_file(packed() / "glyd.json", text);
  }
  void SetUp() override {
    Damage::SetUp();
    original_ = test::read_file(packed() / "glyd.json");
  }
  static constexpr const char* kEmbedding = "model.embed_tokens.weight";
  std::string original_;
};
INSTANTIATE_TEST_SUITE_P(Layouts, Forged, ::testing::Values(Layout::kFast, Layout::kSmall),
                         [](const auto& test) { return std::string(layout_text(test.param)); });

TEST_P(Forged, HashesAreCompared) {
  const std::string wrong(64, 'a');
  forge([&](OrderedJson& d) { d["tensors"][kEmbedding]["sha256"] = wrong; });
  EXPECT_THAT(refusal(), HasSubstr("tensor \"model.embed_tokens.weight\": its bytes do not have the sha256"));
  forge([&](OrderedJson& d) { d["tensors"]["half"]["sha256"] = wrong; });
  EXPECT_THAT(refusal(), HasSubstr("tensor \"half\""));
  forge([&](OrderedJson& d) { d["files"][0]["sha256"] = wrong; });
  EXPECT_THAT(refusal(), HasSubstr("does not have the sha256"));
  forge([&](OrderedJson& d) { d["config"]["sha256"] = wrong; });
  EXPECT_THAT(refusal(), HasSubstr("config.json: does not have the sha256"));
  forge([&](OrderedJson& d) { d["config"]["original_sha256"] = wrong; });
  EXPECT_THAT(refusal(), HasSubstr("glyd-source/config.json: does not have the sha256"));
  forge([&](OrderedJson& d) { d["index_sha256"] = wrong; });
  EXPECT_THAT(refusal(), HasSubstr("glyd.safetensors.index.json: does not have the sha256"));
  forge([&](OrderedJson& d) { d["source_files"][0]["shard_header_sha256"] = wrong; });
  EXPECT_THAT(refusal(), HasSubstr("its header does not have the sha256"));
  forge([&](OrderedJson& d) { d["source_files"][0]["sha256"] = wrong; });
  EXPECT_THAT(refusal(), HasSubstr("the file restored from it"));
}

TEST_P(Forged, PacksMustBeWhatTheManifestSays) {
  forge([&](OrderedJson& d) { d["tensors"][kEmbedding]["packed"]["reduction_axis"] = -2; });
  EXPECT_THAT(refusal(), HasSubstr("layout, axis or shape"));
  forge([&](OrderedJson& d) {
    auto& parameters = d["tensors"][kEmbedding]["packed"]["parameters"];
    const char* name = GetParam() == Layout::kFast ? "base" : "symbols";
    parameters[name] = parameters[name].get<int>() - 1;
  });
  EXPECT_THAT(refusal(), HasSubstr("parameters"));
  forge([&](OrderedJson& d) { d["tensors"][kEmbedding]["packed"]["bytes"] = 128; });
  EXPECT_THAT(refusal(), HasSubstr("dtype or shape"));
  forge([&](OrderedJson& d) { d["tensors"][kEmbedding]["packed"] = nullptr; });
  EXPECT_THAT(refusal(), HasSubstr("is not at its place"));
  forge([&](OrderedJson& d) { d["source_files"][0]["shard_bytes"] = 5; });
  EXPECT_THAT(refusal(), HasSubstr("bytes, but glyd.json gives 5"));
}

}  // namespace
}  // namespace glyd
