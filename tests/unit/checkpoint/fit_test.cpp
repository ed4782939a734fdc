#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/gpu_memory.hpp"
#include "unit/checkpoint/test_model.hpp"

namespace glyd {
namespace {

using test::TempDirectory;
using ::testing::HasSubstr;

TEST(GpuMemory, KnowsNamesAndAmounts) {
  EXPECT_EQ(gpu_memory_bytes("H200").value(), uint64_t{143771} << 20);
  EXPECT_EQ(gpu_memory_bytes("NVIDIA GeForce RTX 4090").value(), uint64_t{24564} << 20);
  EXPECT_EQ(gpu_memory_bytes("a100-80gb").value(), uint64_t{81920} << 20);
  EXPECT_EQ(gpu_memory_bytes("48GB").value(), 48'000'000'000u);
  EXPECT_EQ(gpu_memory_bytes("1.5 GiB").value(), uint64_t{3} << 29);
  EXPECT_EQ(gpu_memory_bytes("12345678901").value(), 12345678901u);
  EXPECT_EQ(gpu_memory_bytes("rtx4060ti-16gb").value(), uint64_t{16380} << 20);
}

TEST(GpuMemory, AmountsInEverySpelling) {
  for (const char* text : {"48GB", "48gb", "48 GB", "48.0gB", "48000000000", "48000 MB"})
    EXPECT_EQ(gpu_memory_bytes(text).value(), 48'000'000'000u) << text;
  for (const char* text : {"48G", "48g", "48GiB", "48gib", "48 GiB", "49152M", "49152MiB"})
    EXPECT_EQ(gpu_memory_bytes(text).value(), uint64_t{48} << 30) << text;
}

TEST(GpuMemory, NamesAsPeopleAndDriversWriteThem) {
  for (const char* text : {"4090", "RTX 4090", "rtx4090", "GeForce RTX 4090", "NVIDIA GeForce RTX 4090"})
    EXPECT_EQ(gpu_memory_bytes(text).value(), uint64_t{24564} << 20) << text;
  for (const char* text : {"H100", "NVIDIA H100 80GB HBM3", "H100 PCIe", "H100 SXM5", "H100-80GB"})
    EXPECT_EQ(gpu_memory_bytes(text).value(), uint64_t{81559} << 20) << text;
  EXPECT_EQ(gpu_memory_bytes("NVIDIA A100-SXM4-80GB").value(), uint64_t{81920} << 20);
  EXPECT_EQ(gpu_memory_bytes("A6000").value(), uint64_t{49140} << 20);
  EXPECT_EQ(gpu_memory_bytes("NVIDIA RTX 6000 Ada Generation").value(), uint64_t{49140} << 20);
  EXPECT_EQ(gpu_memory_bytes("5070 Ti").value(), uint64_t{16303} << 20);
}

TEST(GpuMemory, SlipsGetASuggestion) {
  EXPECT_THAT(gpu_memory_bytes("24").error().message, HasSubstr("24 bytes; did you mean 24GB?"));
  EXPECT_THAT(gpu_memory_bytes("24MB").error().message, HasSubstr("less than any GPU has"));
  EXPECT_THAT(gpu_memory_bytes("A100").error().message, HasSubstr("one of A100-40GB, A100-80GB, or"));
  EXPECT_THAT(gpu_memory_bytes("v100").error().message, HasSubstr("one of V100-16GB, V100-32GB, or"));
}

TEST(GpuMemory, UnknownNamesListTheKnownOnes) {
  for (const char* text : {"H9000", "", "GB", "-3GB", "0", "48XB", "nan", "1e300TB"}) {
    const auto bytes = gpu_memory_bytes(text);
    ASSERT_FALSE(bytes) << text;
    EXPECT_EQ(bytes.error().status, GLYD_ERROR_INVALID_ARGUMENT);
    EXPECT_THAT(bytes.error().message, HasSubstr("RTX 4090"));
  }
}

TEST(Fit, SourceIsEstimatedAndPackedIsMeasured) {
  const TempDirectory work;
  test::write_sharded_model(work / "m");
  FitOptions options;
  options.gpu = "2GB";
  options.context = 1000;
  options.batch = 3;
  const auto source = fit_checkpoint(work / "m", options);
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_EQ(source.value()["kv_cache_bytes"],
            2u * 2 * (2 * 2 * 16) * 1000 * 3);  // 2 bytes x 2 layers x keys and values of 2 heads of 16
  const auto& rows = source.value()["rows"];
  EXPECT_EQ(rows[0]["layout"], "bf16");
  EXPECT_EQ(rows[0]["measured"], true);
  EXPECT_EQ(rows[1]["measured"], false);
  EXPECT_LT(rows[2]["weights_bytes"], rows[1]["weights_bytes"]);
  EXPECT_EQ(rows[0]["fits"], true);
  PackOptions pack;
  pack.glyd_version = "0.1.0";
  ASSERT_TRUE(pack_checkpoint(work / "m", work / "p", pack));
  const auto packed = fit_checkpoint(work / "p", options);
  ASSERT_TRUE(packed) << packed.error().message;
  EXPECT_EQ(packed.value()["rows"][1]["measured"], true);
  EXPECT_EQ(packed.value()["rows"][0]["weights_bytes"], rows[0]["weights_bytes"]);
  options.gpu = "1GB";
  EXPECT_EQ(fit_checkpoint(work / "m", options).value()["rows"][0]["fits"], false);
}

TEST(Fit, SaysWhatItNeeds) {
  const TempDirectory work;
  test::write_file(work / "m/model.safetensors",
                   test::safetensors_bytes({test::make_tensor("w", "BF16", {64, 64}, 1)}));
  FitOptions options;
  options.gpu = "48GB";
  EXPECT_THAT(fit_checkpoint(work / "m", options).error().message, HasSubstr("config.json: missing"));
  test::write_file(work / "m/config.json", "{}");
  EXPECT_THAT(fit_checkpoint(work / "m", options).error().message, HasSubstr("names no layers and heads"));
  test::write_file(work / "m/config.json", R"({"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 64})");
  options.context = UINT64_MAX;
  EXPECT_THAT(fit_checkpoint(work / "m", options).error().message, HasSubstr("more than 2^64 bytes"));
}

}  // namespace
}  // namespace glyd
