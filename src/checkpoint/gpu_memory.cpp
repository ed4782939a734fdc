#include "checkpoint/gpu_memory.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <string_view>
#include <vector>

namespace glyd {
namespace {

struct Gpu {
  std::string_view name;  // compared without case, spaces and dashes
  uint64_t mib;           // as the driver reports it (nvidia-smi), which is less than the box says
};

constexpr Gpu kGpus[] = {
    {"T4", 15360},          {"V100-16GB", 16384}, {"V100-32GB", 32768},    {"A10", 23028},
    {"A10G", 23028},        {"A30", 24576},       {"A40", 46068},          {"A100-40GB", 40960},
    {"A100-80GB", 81920},   {"L4", 23034},        {"L40", 46068},          {"L40S", 46068},
    {"H100", 81559},        {"H100-80GB", 81559}, {"H100 NVL", 95830},     {"H200", 143771},
    {"GH200", 97871},       {"B200", 183359},     {"RTX 3060", 12288},     {"RTX 3070", 8192},
    {"RTX 3080", 10240},    {"RTX 3090", 24576},  {"RTX 4060", 8188},      {"RTX 4060 Ti 16GB", 16380},
    {"RTX 4070", 12282},    {"RTX 4080", 16376},  {"RTX 4090", 24564},     {"RTX 5070", 12227},
    {"RTX 5070 Ti", 16303}, {"RTX 5080", 16303},  {"RTX 5090", 32607},     {"RTX A4000", 16376},
    {"RTX A5000", 24564},   {"RTX A6000", 49140}, {"RTX 6000 Ada", 49140}, {"RTX PRO 6000", 97887},
};

constexpr double kLeastBytes = 1e8;  // less is a slip: "24" for "24GB"

struct Unit {
  std::string_view name;
  double bytes;
};
// As in the options of the codec's verbs: a letter alone is a power of 1024.
constexpr Unit kUnits[] = {{"", 1},
                           {"B", 1},
                           {"KB", 1e3},
                           {"MB", 1e6},
                           {"GB", 1e9},
                           {"TB", 1e12},
                           {"K", 1024.0},
                           {"M", 1048576.0},
                           {"G", 1073741824.0},
                           {"T", 1099511627776.0},
                           {"KIB", 1024.0},
                           {"MIB", 1048576.0},
                           {"GIB", 1073741824.0},
                           {"TIB", 1099511627776.0}};

// What drivers write after a GPU's name, without which it is the same one.
constexpr std::string_view kVariants[] = {"HBM3E", "HBM3", "HBM2E", "PCIE",      "SXM4",
                                          "SXM5",  "SXM2", "SXM",   "GENERATION"};

std::string upper_without(const std::string& text, std::string_view dropped) {
  std::string name;
  for (const char c : text) {
    if (dropped.find(c) == std::string_view::npos) {
      name.push_back(c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c);
    }
  }
  return name;
}

std::string plain_name(const std::string& text) {
  std::string name = upper_without(text, " -_");
  for (const std::string_view prefix : {"NVIDIA", "GEFORCE", "TESLA"}) {
    if (name.starts_with(prefix)) name.erase(0, prefix.size());
  }
  for (const std::string_view variant : kVariants) {
    if (const size_t at = name.find(variant); at != std::string::npos && at > 0) name.erase(at, variant.size());
  }
  return name;
}

}  // namespace

Result<uint64_t> gpu_memory_bytes(const std::string& text) {
  const std::string name = plain_name(text);
  for (const Gpu& gpu : kGpus) {
    const std::string known = plain_name(std::string(gpu.name));
    if (known == name || known == "RTX" + name) return gpu.mib << 20;  // "4090" says enough
  }
  const std::string amount = upper_without(text, " ");
  double number = 0;
  const auto [end, failed] = std::from_chars(amount.data(), amount.data() + amount.size(), number);
  if (failed == std::errc() && number > 0 && std::isfinite(number)) {
    const std::string_view unit(end, static_cast<size_t>(amount.data() + amount.size() - end));
    const auto* found =
        std::find_if(std::begin(kUnits), std::end(kUnits), [&](const Unit& known) { return known.name == unit; });
    const double bytes = found == std::end(kUnits) ? 0 : number * found->bytes;
    if (bytes >= 1 && bytes < kLeastBytes) {
      return invalid_argument(
          "GPU memory \"{}\" is {:.0f} bytes{}", text, bytes,
          unit.empty() && number < 10000 ? fmt::format("; did you mean {}GB?", amount) : ", less than any GPU has");
    }
    if (bytes > 0 && bytes < 1e18) return static_cast<uint64_t>(bytes);
  }
  std::vector<std::string_view> alike;
  for (const Gpu& gpu : kGpus) {
    if (!name.empty() && plain_name(std::string(gpu.name)).starts_with(name)) alike.push_back(gpu.name);
  }
  if (!alike.empty())
    return invalid_argument("GPU \"{}\": there are several: give one of {}, or its memory (\"48GB\")", text,
                            fmt::join(alike, ", "));
  std::vector<std::string_view> names;
  for (const Gpu& gpu : kGpus) names.push_back(gpu.name);
  return invalid_argument("unknown GPU \"{}\": give its memory (\"48GB\", \"44.9GiB\", or bytes) or one of {}", text,
                          fmt::join(names, ", "));
}

}  // namespace glyd
