// statistics.cpp - counts of exponents and their entropy.
#include "weights/statistics.hpp"

#include <cmath>
#include <mutex>

#include "base/bytes.hpp"
#include "base/cpu.hpp"
#include "base/parallel.hpp"
#include "format/bf16.hpp"
#include "weights/weights.hpp"

namespace glyd {
namespace {

constexpr uint64_t kCountGrain = uint64_t{1} << 18;

// Eight tables: neighbours with one exponent do not wait for each other's store. At most 2^32 values.
void count_by_tables(std::span<const uint16_t> values, ExponentCounts& counts) {
  constexpr size_t kTables = 8;
  std::array<std::array<uint32_t, 256>, kTables> tables{};
  size_t i = 0;
  for (; i + kTables <= values.size(); i += kTables) {
    for (size_t half = 0; half < 2; ++half) {
      const auto four = load_le<uint64_t>(values.data() + i + 4 * half);
      for (size_t t = 0; t < 4; ++t) ++tables[4 * half + t][four >> (16 * t + 7) & 0xff];
    }
  }
  for (; i < values.size(); ++i) ++tables[0][bf16_exponent(values[i])];
  for (const auto& table : tables) {
    for (size_t e = 0; e < 256; ++e) counts[e] += table[e];
  }
}

// Where the band that holds most of them begins.
uint8_t fullest_band(const ExponentCounts& counts) {
  uint64_t sum = 0, most = 0;
  size_t best = 0;
  for (size_t end = 0; end < 256; ++end) {
    sum += counts[end];
    if (end >= kExponentBand) sum -= counts[end - kExponentBand];
    if (sum > most && end + 1 >= kExponentBand) {
      most = sum;
      best = end + 1 - kExponentBand;
    }
  }
  return static_cast<uint8_t>(best);
}

void add_piece(std::span<const uint16_t> values, ExponentCounts& counts) {
  constexpr size_t kSample = 1024;  // values that say where the band lies
  if (cpu_isa() >= Isa::kAvx2 && values.size() > 2 * kSample) {
    count_by_tables(values.first(kSample), counts);
    values = values.subspan(kSample);
    values = values.subspan(count_exponents_avx2(values, fullest_band(counts), counts.data()));
  }
  count_by_tables(values, counts);
}

}  // namespace

void add_exponents(std::span<const uint16_t> values, ExponentCounts& counts) {
  for (; values.size() > kCountGrain; values = values.subspan(kCountGrain))
    add_piece(values.first(kCountGrain), counts);
  add_piece(values, counts);
}

std::array<uint64_t, 256> exponent_counts(std::span<const uint16_t> bf16, int threads) {
  std::array<uint64_t, 256> total{};
  std::mutex mutex;
  parallel_for(bf16.size(), kCountGrain, threads, [&](uint64_t begin, uint64_t end) {
    ExponentCounts counts{};
    add_exponents(bf16.subspan(begin, end - begin), counts);
    const std::lock_guard lock(mutex);
    for (size_t e = 0; e < 256; ++e) total[e] += counts[e];
  });
  return total;
}

double entropy_floor_bits(const std::array<uint64_t, 256>& counts) {
  double total = 0, sum = 0;
  for (const uint64_t count : counts) {
    total += static_cast<double>(count);
    if (count > 0) sum += static_cast<double>(count) * std::log2(static_cast<double>(count));
  }
  return total == 0 ? 0 : 8 + std::log2(total) - sum / total;
}

}  // namespace glyd
