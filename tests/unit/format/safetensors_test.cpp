#include "format/safetensors.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace glyd {
namespace {

using ::testing::HasSubstr;

// What the parser says to a header with `data_bytes` bytes of data behind it; "" if it takes it.
std::string refusal(const std::string& header, uint64_t data_bytes) {
  const auto parsed = parse_safetensors_header(header, 8 + header.size() + data_bytes, "m.safetensors");
  if (parsed) return "";
  EXPECT_EQ(parsed.error().status, GLYD_ERROR_CORRUPT);
  EXPECT_THAT(parsed.error().message, HasSubstr("m.safetensors"));
  return parsed.error().message;
}

constexpr const char* kTwo =
    R"({"a":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]},"b":{"dtype":"U8","shape":[4],)"
    R"("data_offsets":[12,16]}})";

TEST(SafetensorsHeader, ReadsTensorsInDataOrder) {
  const std::string header = R"({"b":{"dtype":"U8","shape":[4],"data_offsets":[12,16]},"__metadata__":{"format":"pt"},)"
                             R"("a":{"data_offsets":[0,12],"shape":[2,3],"dtype":"BF16"}}   )";
  const auto parsed = parse_safetensors_header(header, 8 + header.size() + 16, "m");
  ASSERT_TRUE(parsed) << parsed.error().message;
  ASSERT_EQ(parsed.value().tensors.size(), 2u);
  EXPECT_EQ(parsed.value().tensors[0].name, "a");
  EXPECT_EQ(parsed.value().tensors[0].shape, (std::vector<uint64_t>{2, 3}));
  EXPECT_EQ(parsed.value().tensors[1].begin, 12u);
  EXPECT_EQ(parsed.value().metadata, (SafetensorsMetadata{{"format", "pt"}}));
  EXPECT_EQ(parsed.value().text, header);
}

TEST(SafetensorsHeader, TakesEmptyAndScalarTensorsAndAnEmptyHeader) {
  EXPECT_EQ(refusal("{}", 0), "");
  EXPECT_EQ(refusal(R"({"e":{"dtype":"F32","shape":[0,7],"data_offsets":[0,0]},"s":{"dtype":"F32","shape":[],)"
                    R"("data_offsets":[0,4]}})",
                    4),
            "");
}

TEST(SafetensorsHeader, KnowsTheSubByteDtypes) {
  EXPECT_EQ(refusal(R"({"a":{"dtype":"F4","shape":[2,3],"data_offsets":[0,3]}})", 3), "");
  EXPECT_EQ(refusal(R"({"a":{"dtype":"F6_E2M3","shape":[4],"data_offsets":[0,3]}})", 3), "");
  EXPECT_EQ(refusal(R"({"a":{"dtype":"F8_E8M0","shape":[4],"data_offsets":[0,4]}})", 4), "");
  EXPECT_THAT(refusal(R"({"a":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}})", 2),
              HasSubstr("does not fill whole bytes"));
}

struct Refusal {
  const char* name;
  const char* header;
  uint64_t data_bytes;
  const char* message;
};

class SafetensorsRefusal : public ::testing::TestWithParam<Refusal> {};

TEST_P(SafetensorsRefusal, SaysWhy) {
  EXPECT_THAT(refusal(GetParam().header, GetParam().data_bytes), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    All, SafetensorsRefusal,
    ::testing::Values(
        Refusal{"NotJson", "{nonsense", 0, "not valid JSON"}, Refusal{"NotAnObject", "[1]", 0, "not a JSON object"},
        Refusal{"Empty", "", 0, "not a JSON object"}, Refusal{"LeadingSpace", " {}", 0, "does not begin with '{'"},
        Refusal{"TrailingText", "{} x", 0, "not valid JSON"}, Refusal{"BadUtf8", "{\"\xff\":1}", 0, "not valid JSON"},
        Refusal{"DuplicateName",
                R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"a":{"dtype":"U8","shape":[0],)"
                R"("data_offsets":[0,0]}})",
                0, "duplicate tensor name \"a\""},
        Refusal{"DuplicateMember", R"({"a":{"dtype":"U8","dtype":"U8","shape":[0],"data_offsets":[0,0]}})", 0,
                "duplicate member \"dtype\""},
        Refusal{"DuplicateMetadata", R"({"__metadata__":{"k":"1","k":"2"}})", 0, "duplicate key \"k\""},
        Refusal{"MetadataNumber", R"({"__metadata__":{"k":1}})", 0, "__metadata__: a number where it may not stand"},
        Refusal{"MetadataList", R"({"__metadata__":[]})", 0, "an array where it may not stand"},
        Refusal{"TensorNotObject", R"({"a":3})", 0, "a number where it may not stand"},
        Refusal{"UnknownMember", R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"x":1}})", 0,
                "unknown member \"x\""},
        Refusal{"MissingDtype", R"({"a":{"shape":[0],"data_offsets":[0,0]}})", 0, "tensor \"a\": \"dtype\" is missing"},
        Refusal{"MissingShape", R"({"a":{"dtype":"U8","data_offsets":[0,0]}})", 0, "\"shape\" is missing"},
        Refusal{"MissingOffsets", R"({"a":{"dtype":"U8","shape":[0]}})", 0, "\"data_offsets\" is missing"},
        Refusal{"UnknownDtype", R"({"a":{"dtype":"F12","shape":[0],"data_offsets":[0,0]}})", 0,
                "unknown dtype \"F12\""},
        Refusal{"NegativeShape", R"({"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,0]}})", 0, "a negative number"},
        Refusal{"FractionShape", R"({"a":{"dtype":"U8","shape":[1.5],"data_offsets":[0,0]}})", 0,
                "a number not of 64 bits"},
        Refusal{"NestedShape", R"({"a":{"dtype":"U8","shape":[[1]],"data_offsets":[0,0]}})", 0,
                "an array where it may not stand"},
        Refusal{"OneOffset", R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0]}})", 0, "data_offsets has 1 numbers"},
        Refusal{"ThreeOffsets", R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0,0]}})", 0, "more than 2 numbers"},
        Refusal{"Backwards", R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[4,0]}})", 4, "run backwards"},
        Refusal{"PastTheEnd", R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}})", 4,
                "past the end of the file"},
        Refusal{"Overlap",
                R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],)"
                R"("data_offsets":[2,6]}})",
                6, "tensor \"b\": overlaps"},
        Refusal{"Hole",
                R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],)"
                R"("data_offsets":[6,10]}})",
                10, "a hole of 2 bytes"},
        Refusal{"WrongSize", R"({"a":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,10]}})", 10,
                "needs 12 bytes, data_offsets give 10"},
        Refusal{"TooLong", R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 9,
                "5 bytes behind the last tensor"},
        Refusal{"ShapeOverflow", R"({"a":{"dtype":"F64","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0,
                "overflows"},
        Refusal{"NumberOverflow", R"({"a":{"dtype":"U8","shape":[99999999999999999999999],"data_offsets":[0,0]}})", 0,
                "a number not of 64 bits"},
        Refusal{"ClimbingName", R"({"x/../y":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})", 0, "component \"..\""},
        Refusal{"LeadingClimb", R"({"../y":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})", 0, "component \"..\""},
        Refusal{"NulName", R"({"x\u0000y":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})", 0, "holds a NUL"},
        Refusal{"EmptyName", R"({"":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})", 0, "empty name"}),
    [](const auto& test) { return test.param.name; });

TEST(SafetensorsHeader, RefusesTooManyDimensions) {
  std::string shape = "1";
  for (int i = 0; i < 64; ++i) shape += ",1";
  EXPECT_THAT(refusal("{\"a\":{\"dtype\":\"U8\",\"shape\":[" + shape + "],\"data_offsets\":[0,1]}}", 1),
              HasSubstr("more than 64 dimensions"));
}

TEST(SafetensorsWriter, IsReadBackAndPadded) {
  const std::vector<TensorEntry> tensors = {{"quoted \"name\"", find_dtype("BF16"), {2, 3}, 0, 12},
                                            {"b", find_dtype("U8"), {4}, 12, 16}};
  const std::string bytes = write_safetensors_header({{"format", "pt"}}, tensors);
  EXPECT_EQ(bytes.size() % 128, 0u);
  EXPECT_EQ(write_safetensors_header({{"format", "pt"}}, tensors, 1000).size(), 1024u);
  const auto parsed = parse_safetensors_header(bytes.substr(8), bytes.size() + 16, "m");
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed.value().tensors[0].name, tensors[0].name);
  EXPECT_EQ(parsed.value().tensors[1].end, 16u);
}

}  // namespace
}  // namespace glyd
