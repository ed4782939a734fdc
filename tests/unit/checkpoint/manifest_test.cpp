#include "checkpoint/manifest.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "base/sha256.hpp"

namespace glyd {
namespace {

using ::testing::HasSubstr;

const std::string kHash(64, 'b');

Manifest sample() {
  Manifest manifest;
  manifest.glyd_version = "0.1.0";
  manifest.layout = Layout::kSmall;
  manifest.name = "tiny";
  manifest.repo = "org/tiny";
  const std::string header =
      R"({"w":{"dtype":"BF16","shape":[16,64],"data_offsets":[0,2048]},"b":{"dtype":"F32","shape":[],)"
      R"("data_offsets":[2048,2052]}})";
  manifest.source_files.push_back(
      {"model.safetensors", 8 + header.size() + 2052, 0644, header, std::nullopt, shard_name(0, 1), 1000, kHash});
  PackedTensor packed;
  packed.layout = Layout::kFast;
  packed.bytes = 1536;
  packed.base = 115;
  packed.slot_bytes = 32;
  manifest.tensors["w"] = {0, find_dtype("BF16"), {16, 64}, kHash, packed};
  manifest.tensors["b"] = {0, find_dtype("F32"), {}, kHash, std::nullopt};
  manifest.files = {{"README.md", 3, kHash, 0644}, {"sub/x", 0, kHash, 0755}};
  manifest.directories = {"runs"};
  manifest.config = ManifestConfig{kHash, kHash, 10, 0644};
  manifest.index_sha256 = kHash;
  return manifest;
}

std::string error_of(const std::string& text, Status status = GLYD_ERROR_CORRUPT) {
  std::vector<SafetensorsHeader> headers;
  const auto parsed = parse_manifest(text, "dir/glyd.json", headers);
  if (parsed) return "";
  EXPECT_EQ(parsed.error().status, status) << parsed.error().message;
  EXPECT_THAT(parsed.error().message, HasSubstr("dir/glyd.json"));
  return parsed.error().message;
}

// A sample with a change to its JSON and its own hash made right again.
std::string changed(const std::function<void(OrderedJson&)>& change) {
  auto document = OrderedJson::parse(write_manifest(sample()));
  change(document);
  document["document_sha256"] = std::string(64, '0');
  std::string text = document.dump();
  const std::string digits = sha256_hex(ByteSpan(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
  return text.replace(text.rfind(std::string(64, '0')), 64, digits);
}

TEST(Manifest, IsReadAsWritten) {
  const std::string text = write_manifest(sample());
  std::vector<SafetensorsHeader> headers;
  const auto parsed = parse_manifest(text, "glyd.json", headers);
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(write_manifest(parsed.value()), text);
  EXPECT_EQ(headers.at(0).tensors.size(), 2u);
  EXPECT_EQ(parsed.value().tensors.at("w").packed->slot_bytes, 32u);
}

TEST(Manifest, AnyChangedByteIsFound) {
  const std::string text = write_manifest(sample());
  for (size_t i = 0; i < text.size(); ++i) {
    std::string damaged = text;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    std::vector<SafetensorsHeader> headers;
    EXPECT_FALSE(parse_manifest(damaged, "glyd.json", headers)) << i;
  }
}

TEST(Manifest, ForeignAndNewerFormatsAreRefusedByName) {
  for (const char* format : {"glyd-v1", "glyd-v2", "glyd-v3"}) {
    EXPECT_THAT(error_of(fmt::format(R"({{"format": "{}", "anything": 1}})", format), GLYD_ERROR_FOREIGN_FORMAT),
                HasSubstr(fmt::format("format {} belongs to another program", format)));
  }
  EXPECT_THAT(error_of(R"({"format": "glyd-x2"})", GLYD_ERROR_FOREIGN_FORMAT),
              HasSubstr("\"glyd-x2\" is not the one that this version reads (glyd-x1)"));
  EXPECT_THAT(error_of(R"({"format": "zip"})", GLYD_ERROR_FOREIGN_FORMAT), HasSubstr("unknown format \"zip\""));
  EXPECT_THAT(error_of(R"({"form": "zip"})"), HasSubstr("no \"format\""));
}

TEST(Manifest, TextThatIsNoDocumentIsRefused) {
  EXPECT_THAT(error_of(""), HasSubstr("not valid JSON"));
  EXPECT_THAT(error_of("[]"), HasSubstr("not a JSON object"));
  EXPECT_THAT(error_of(R"({"format": "glyd-x1", "format": "glyd-x1"})"), HasSubstr("duplicate key \"format\""));
  EXPECT_THAT(error_of(std::string(40, '[')), HasSubstr("nested more than 32 levels deep"));
  EXPECT_THAT(error_of(R"({"format": "glyd-x1"})"), HasSubstr("\"document_sha256\" is missing"));
}

struct Change {
  const char* name;
  std::function<void(OrderedJson&)> change;
  const char* message;
};
class ManifestRefusal : public ::testing::TestWithParam<Change> {};
TEST_P(ManifestRefusal, SaysWhy) { EXPECT_THAT(error_of(changed(GetParam().change)), HasSubstr(GetParam().message)); }

INSTANTIATE_TEST_SUITE_P(
    All, ManifestRefusal,
    ::testing::Values(
        Change{"UnknownMember", [](OrderedJson& d) { d["extra"] = 1; }, "unknown member \"extra\""},
        Change{"MissingMember", [](OrderedJson& d) { d.erase("files"); }, "\"files\" is missing"},
        Change{"UnknownLayout", [](OrderedJson& d) { d["layout"] = "raw"; }, "unknown layout \"raw\""},
        Change{"UnknownKind", [](OrderedJson& d) { d["source"]["kind"] = "tape"; }, "unknown kind \"tape\""},
        Change{"UnknownTensorMember", [](OrderedJson& d) { d["tensors"]["w"]["x"] = 1; },
               "tensor \"w\": unknown member \"x\""},
        Change{"WrongDtype", [](OrderedJson& d) { d["tensors"]["w"]["dtype"] = "F16"; },
               "has another file, dtype or shape"},
        Change{"WrongShape",
               [](OrderedJson& d) {
                 d["tensors"]["w"]["shape"] = {64, 16};
               },
               "has another file, dtype or shape"},
        Change{"NegativeShape",
               [](OrderedJson& d) {
                 d["tensors"]["w"]["shape"] = {-1, 16};
               },
               "shape: not a list of unsigned integers"},
        Change{"OverflowingShape",
               [](OrderedJson& d) {
                 d["tensors"]["w"]["shape"] = {1ull << 40, 1ull << 40};
               },
               "overflows"},
        Change{"WrongFile", [](OrderedJson& d) { d["tensors"]["w"]["file"] = 1; }, "has another file, dtype or shape"},
        Change{"BadHash", [](OrderedJson& d) { d["tensors"]["w"]["sha256"] = "xyz"; }, "is not a sha256"},
        Change{"MissingTensor", [](OrderedJson& d) { d["tensors"].erase("b"); }, "tensor \"b\" is missing"},
        Change{"ExtraTensor", [](OrderedJson& d) { d["tensors"]["c"] = d["tensors"]["b"]; },
               "3 tensors in the manifest, 2 in the kept headers"},
        Change{"PackedVector", [](OrderedJson& d) { d["tensors"]["b"]["packed"] = d["tensors"]["w"]["packed"]; },
               "cannot be packed"},
        Change{"PackNotSmaller", [](OrderedJson& d) { d["tensors"]["w"]["packed"]["bytes"] = 2048; }, "not smaller"},
        Change{"PackNotAligned", [](OrderedJson& d) { d["tensors"]["w"]["packed"]["bytes"] = 100; },
               "not a multiple of 128"},
        Change{"BadAxis", [](OrderedJson& d) { d["tensors"]["w"]["packed"]["reduction_axis"] = 0; },
               "neither -1 nor -2"},
        Change{"ForeignParameter", [](OrderedJson& d) { d["tensors"]["w"]["packed"]["parameters"]["symbols"] = 3; },
               "unknown member \"symbols\""},
        Change{"LargeParameter", [](OrderedJson& d) { d["tensors"]["w"]["packed"]["parameters"]["base"] = 300; },
               "\"base\" is 300, more than 247"},
        Change{"ClimbingPath", [](OrderedJson& d) { d["files"][0]["path"] = "../../etc/passwd"; },
               "is not a plain relative path"},
        Change{"AbsolutePath", [](OrderedJson& d) { d["files"][0]["path"] = "/etc/passwd"; },
               "is not a plain relative path"},
        Change{"ClimbingSourceFile", [](OrderedJson& d) { d["source_files"][0]["path"] = "a/../../b"; },
               "is not a plain relative path"},
        Change{"ClimbingDirectory", [](OrderedJson& d) { d["directories"][0] = ".."; },
               "not a list of plain relative paths"},
        Change{"PathTwice", [](OrderedJson& d) { d["files"][1]["path"] = "README.md"; }, "is named twice"},
        Change{"PathOfShard", [](OrderedJson& d) { d["files"][0]["path"] = "glyd-00001-of-00001.safetensors"; },
               "is named twice"},
        Change{"PathOfManifest", [](OrderedJson& d) { d["files"][1]["path"] = "glyd.json"; }, "a name of glyd's own"},
        Change{"PathInsideFile", [](OrderedJson& d) { d["files"][1]["path"] = "README.md/x"; }, "which is a file"},
        Change{"Unsorted", [](OrderedJson& d) { std::swap(d["files"][0], d["files"][1]); }, "not sorted"},
        Change{"StrangeMode", [](OrderedJson& d) { d["files"][0]["mode"] = 04755; }, "\"mode\" is 2541, more than 511"},
        Change{"WrongShardName", [](OrderedJson& d) { d["source_files"][0]["shard"] = "model.safetensors"; },
               "is named twice"},
        Change{"OtherShardName", [](OrderedJson& d) { d["source_files"][0]["shard"] = "x.safetensors"; },
               "is not named glyd-00001-of-00001"},
        Change{"BrokenHeader", [](OrderedJson& d) { d["source_files"][0]["header"] = "{"; },
               "header of model.safetensors: header is not valid JSON"},
        Change{"WrongSourceBytes", [](OrderedJson& d) { d["source_files"][0]["bytes"] = 100000; },
               "behind the last tensor"},
        Change{"NoSourceFiles", [](OrderedJson& d) { d["source_files"] = OrderedJson::array(); }, "0 source files"},
        Change{"OtherConfig", [](OrderedJson& d) { d["config"]["original"] = "../config.json"; },
               "\"original\" is not"},
        Change{"FileKindWithMore", [](OrderedJson& d) { d["source"]["kind"] = "file"; },
               "has one file and nothing else"}),
    [](const auto& test) { return test.param.name; });

TEST(PlainPath, KeepsToTheDirectory) {
  for (const char* good : {"a", "a/b", ".hidden", "a..b", "..."}) EXPECT_TRUE(is_plain_path(good)) << good;
  for (const char* bad : {"", "/a", "a/", "a//b", ".", "..", "a/../b", "a/.", "\xff"})
    EXPECT_FALSE(is_plain_path(bad)) << bad;
  EXPECT_FALSE(is_plain_path(std::string_view("a\0b", 3)));
}

TEST(JsonText, KnowsUtf8) {
  for (const char* good : {"", "plain", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"}) EXPECT_TRUE(is_utf8(good));
  for (const char* bad : {"\x80", "\xc3", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                          "\xf8\x88\x80\x80\x80", "\xe2\x82"})
    EXPECT_FALSE(is_utf8(bad));
}

}  // namespace
}  // namespace glyd
