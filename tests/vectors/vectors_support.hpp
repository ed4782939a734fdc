// vectors_support.hpp - files of tests/vectors and the run's instruction set.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "glyd/weights.h"

namespace vectors {

inline std::vector<std::uint8_t> read_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

// The packs of v1/`folder`, by name.
inline std::vector<std::filesystem::path> packs_in(const char* folder) {
  std::vector<std::filesystem::path> packs;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(GLYD_VECTORS) / folder)) {
    if (entry.path().extension() == ".glydpack") packs.push_back(entry.path());
  }
  std::sort(packs.begin(), packs.end());
  return packs;
}

// Skips the test where the instruction set that ctest asks for by GLYD_CPU is not there: its run would be another's
// again.
#define SKIP_UNLESS_ISA_RUNS_HERE()                                                                             \
  if (const char* wanted = std::getenv("GLYD_CPU"); wanted != nullptr && glyd_cpu_isa() != std::string(wanted)) \
  GTEST_SKIP() << "this CPU has no " << wanted

}  // namespace vectors
