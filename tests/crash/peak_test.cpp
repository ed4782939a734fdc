// Peak memory of pack, verify and unpack: the largest tensor three times and 256 MiB, whatever the model's size.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "checkpoint/checkpoint.hpp"
#include "crash/child.hpp"
#include "unit/checkpoint/test_model.hpp"

namespace glyd {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kTensorMiB = 64;
constexpr uint64_t kLimitMiB = 3 * kTensorMiB + 256;

// One file of tensors of 64 MiB, each followed by eight of 4 MiB and a vector; `mib` in all. Written in pieces: the
// file may be larger than memory.
void write_large_model(const fs::path& directory, uint64_t mib) {
  struct Planned {
    std::string name;
    uint64_t rows, cols;
  };
  std::vector<Planned> planned;
  for (uint64_t done = 0; done < mib; done += kTensorMiB + 32) {
    const std::string layer = fmt::format("layers.{}.", planned.size());
    planned.push_back({layer + "large", kTensorMiB * kMiB / 8192, 4096});
    for (int i = 0; i < 8; ++i) planned.push_back({fmt::format("{}small{}", layer, i), 512, 4096});
  }
  std::string header = "{";
  uint64_t place = 0;
  for (const auto& tensor : planned) {
    const uint64_t bytes = tensor.rows * tensor.cols * 2;
    header += fmt::format("{}\"{}\":{{\"dtype\":\"BF16\",\"shape\":[{},{}],\"data_offsets\":[{},{}]}}",
                          place == 0 ? "" : ",", tensor.name, tensor.rows, tensor.cols, place, place + bytes);
    place += bytes;
  }
  fs::create_directories(directory);
  std::ofstream file(directory / "model.safetensors", std::ios::binary);
  file << test::safetensors_bytes(header + "}", "");
  const std::string block = test::trained_bf16(kMiB / 2, 5);
  for (uint64_t done = 0; done < place; done += block.size()) file << block;
}

// The peak of the resident memory of a child that runs `body`, in MiB. Nothing is mapped from files, so all of it but
// the program itself is anonymous.
uint64_t peak_mib(const fs::path& report, const std::function<bool()>& body) {
  const int status = test::wait_for(test::start_child([&] {
    std::ofstream("/proc/self/clear_refs") << "5";  // forget the peak that came with the fork
    if (!body()) return 1;
    std::ifstream info("/proc/self/status");
    for (std::string line; std::getline(info, line);) {
      if (line.starts_with("VmHWM:")) test::write_file(report, line.substr(6));
    }
    return 0;
  }));
  EXPECT_EQ(test::exit_code(status), 0);
  return std::strtoull(test::read_file(report).c_str(), nullptr, 10) / 1024;
}

void expect_bounded(uint64_t mib, Layout layout) {
  const test::TempDirectory work;
  write_large_model(work / "model", mib);
  PackOptions options;
  options.glyd_version = "0.1.0";
  options.layout = layout;
  const uint64_t pack = peak_mib(
      work / "report", [&] { return static_cast<bool>(pack_checkpoint(work / "model", work / "out", options)); });
  const uint64_t verify =
      peak_mib(work / "report", [&] { return static_cast<bool>(verify_checkpoint(work / "out", {})); });
  const uint64_t unpack =
      peak_mib(work / "report", [&] { return static_cast<bool>(unpack_checkpoint(work / "out", work / "back", {})); });
  std::printf(
      "checkpoint of %lu MiB, largest tensor %lu MiB: peak of pack %lu, verify %lu, unpack %lu MiB (limit %lu)\n", mib,
      kTensorMiB, pack, verify, unpack, kLimitMiB);
  for (const uint64_t peak : {pack, verify, unpack}) {
    EXPECT_GT(peak, kTensorMiB);  // else it was not measured
    EXPECT_LT(peak, kLimitMiB);
  }
}

TEST(Peak, SixHundredMiB) { expect_bounded(600, Layout::kFast); }

// By hand: GLYD_TEST_PEAK=1 bin/crash_peak_test --gtest_filter='*FourGiB*' (needs 11 GiB in TMPDIR).
TEST(Peak, FourGiB) {
  if (std::getenv("GLYD_TEST_PEAK") == nullptr) GTEST_SKIP() << "set GLYD_TEST_PEAK=1 to run it";
  expect_bounded(4096, Layout::kFast);
}

}  // namespace
}  // namespace glyd
