// cpu_bench.hpp - the groups of glyd_bench_cpu. Each prints JSON lines by `print` as it goes.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "weights/weights.hpp"

namespace glyd::bench {

struct Options {
  int rounds = 9;
  uint64_t rows = 12800, cols = 4096;           // of the matrix that products read: 100 MiB
  uint64_t pack_rows = 8192, pack_cols = 4096;  // of the matrix that is packed and decoded: 64 MiB
  int matrices = 3;                             // that products rotate through
  std::vector<int> threads = {1, 2};
  std::vector<uint64_t> tokens = {1, 8, 64};
  std::vector<Layout> layouts = {Layout::kFast, Layout::kSmall};
};
using Print = std::function<void(const nlohmann::ordered_json&)>;

const char* layout_text(Layout layout);
std::string shape_text(uint64_t rows, uint64_t cols);

void bench_decode(const Options& options, const Print& print);
void bench_pack(const Options& options, const Print& print);
void bench_verify(const Options& options, const Print& print);
void bench_products(const Options& options, const Print& print);
void bench_parts(const Options& options, const Print& print);  // only where it is asked for

}  // namespace glyd::bench
