#include "matrix_source.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <random>

namespace glyd::bench {
namespace {

[[noreturn]] void exit_with(const Error& error) {
  std::fprintf(stderr, "glyd_bench_cpu: %s\n", error.message.c_str());
  std::exit(1);
}

uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

}  // namespace

std::vector<uint16_t> gaussian_bf16(uint64_t count, uint64_t seed, double scale) {
  // A pool of samples drawn from in random runs: a normal deviate for each of 10^8 weights would take longer than the
  // benchmark.
  constexpr uint64_t kPool = uint64_t{1} << 20, kRun = 64;
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0, static_cast<float>(scale));
  std::vector<uint16_t> pool(kPool), values(count);
  for (uint16_t& value : pool) value = to_bf16(normal(random));
  for (uint64_t i = 0; i < count; i += kRun) {
    const uint64_t from = random() % (kPool - kRun);
    std::copy_n(pool.begin() + static_cast<int64_t>(from), std::min(kRun, count - i),
                values.begin() + static_cast<int64_t>(i));
  }
  return values;
}

AlignedBuffer pack_or_exit(std::span<const uint16_t> values, const Grid& grid, Layout layout, int threads,
                           AlignedBuffer old) {
  auto pack = pack_tensor(values, grid, false, layout, threads, std::move(old));
  if (!pack) exit_with(pack.error());
  const auto header = read_pack_header(pack.value().bytes(), pack.value().size());
  if (!header || header.value().layout != layout)
    exit_with({GLYD_ERROR_INTERNAL, "the matrix was packed in another layout"});
  return std::move(pack).value();
}

void check_or_exit(const Result<void>& result) {
  if (!result) exit_with(result.error());
}

}  // namespace glyd::bench
