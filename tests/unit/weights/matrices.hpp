// matrices.hpp - matrices that packs must hold: plain, trained-like and adversarial ones. Deterministic.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "format/bf16.hpp"

namespace glyd::test {

using Values = std::vector<uint16_t>;
using Random = std::mt19937_64;

inline uint16_t to_bf16(double value) {
  const auto single = static_cast<float>(value);
  uint32_t bits;
  std::memcpy(&bits, &single, sizeof bits);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

struct MatrixKind {
  std::string name;
  std::function<uint16_t(Random&, uint64_t index, uint64_t cols)> value;
};

inline double gaussian(Random& random) { return std::normal_distribution<double>()(random); }
inline uint32_t below(Random& random, uint32_t limit) { return static_cast<uint32_t>(random() % limit); }

inline const std::vector<MatrixKind>& matrix_kinds() {
  static const std::vector<MatrixKind> kinds = {
      {"Gaussian", [](Random& r, uint64_t, uint64_t) { return to_bf16(0.02 * gaussian(r)); }},
      {"EveryValueInOrder", [](Random&, uint64_t i, uint64_t) { return static_cast<uint16_t>(i); }},
      {"EveryValueShuffled", [](Random&, uint64_t i, uint64_t) { return static_cast<uint16_t>(i * 40503u + 12345u); }},
      {"RandomBits", [](Random& r, uint64_t, uint64_t) { return static_cast<uint16_t>(r()); }},
      {"Zero", [](Random&, uint64_t, uint64_t) { return uint16_t{0}; }},
      {"NegativeZero", [](Random&, uint64_t, uint64_t) { return uint16_t{0x8000}; }},
      {"One", [](Random&, uint64_t, uint64_t) { return uint16_t{0x3f80}; }},
      {"OneExponent", [](Random& r, uint64_t, uint64_t) { return bf16_join(below(r, 2), 121, below(r, 128)); }},
      {"TwoExponents",
       [](Random& r, uint64_t, uint64_t) { return bf16_join(below(r, 2), 100 + 30 * below(r, 2), below(r, 128)); }},
      {"NanPayloads", [](Random& r, uint64_t, uint64_t) { return bf16_join(below(r, 2), 255, 1 + below(r, 127)); }},
      {"SomeNonFinite",
       [](Random& r, uint64_t, uint64_t) {
         return below(r, 50) == 0 ? bf16_join(below(r, 2), 255, below(r, 3)) : to_bf16(0.02 * gaussian(r));
       }},
      {"Subnormals", [](Random& r, uint64_t, uint64_t) { return bf16_join(below(r, 2), 0, below(r, 128)); }},
      {"SomeSubnormals",
       [](Random& r, uint64_t, uint64_t) {
         return below(r, 60) == 0 ? bf16_join(below(r, 2), 0, below(r, 128)) : to_bf16(0.02 * gaussian(r));
       }},
      {"PrunedHalf",
       [](Random& r, uint64_t, uint64_t) { return below(r, 2) == 0 ? uint16_t{0} : to_bf16(0.02 * gaussian(r)); }},
      {"PrunedNineTenths",
       [](Random& r, uint64_t, uint64_t) { return below(r, 10) != 0 ? uint16_t{0} : to_bf16(0.02 * gaussian(r)); }},
      {"HeavyTails",
       [](Random& r, uint64_t, uint64_t) { return to_bf16(0.01 * std::student_t_distribution<double>(1.2)(r)); }},
      {"ExponentsAllOver",
       [](Random& r, uint64_t, uint64_t) { return bf16_join(below(r, 2), below(r, 256), below(r, 128)); }},
      {"TwentyExponents",
       [](Random& r, uint64_t, uint64_t) { return bf16_join(below(r, 2), 110 + below(r, 20), below(r, 128)); }},
      {"ScaledRows",
       [](Random& r, uint64_t i, uint64_t cols) {
         return to_bf16(gaussian(r) * std::exp2(-4.0 * static_cast<double>(i / cols % 9)));
       }},
      {"Outliers",
       [](Random& r, uint64_t, uint64_t) {
         return below(r, 500) == 0 ? to_bf16(1e30 * gaussian(r)) : to_bf16(0.02 * gaussian(r));
       }},
      {"OutlierBlocks",
       [](Random& r, uint64_t i, uint64_t cols) {
         return i / cols % 64 < 8 && i % cols % 160 < 32 ? static_cast<uint16_t>(r()) : to_bf16(0.02 * gaussian(r));
       }},
      {"HugeExponents",
       [](Random& r, uint64_t, uint64_t) { return bf16_join(below(r, 2), 254 - below(r, 12), below(r, 128)); }},
      {"TinyExponents",
       [](Random& r, uint64_t, uint64_t) { return bf16_join(below(r, 2), below(r, 12), below(r, 128)); }},
  };
  return kinds;
}

inline Values make_values(const MatrixKind& kind, uint64_t count, uint64_t cols, uint64_t seed = 1) {
  Random random(seed);
  Values values(count);
  for (uint64_t i = 0; i < count; ++i) values[i] = kind.value(random, i, cols == 0 ? 1 : cols);
  return values;
}

inline const MatrixKind& matrix_kind(const std::string& name) {
  for (const MatrixKind& kind : matrix_kinds()) {
    if (kind.name == name) return kind;
  }
  throw std::out_of_range(name);
}

}  // namespace glyd::test
