// samples.hpp - contents of every sort for the codec's tests, the same on every run.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace glyd::codec::test {

using Bytes = std::vector<uint8_t>;

// 32 bits at a time, the same on every machine.
class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  uint32_t operator()() { return static_cast<uint32_t>(engine_()); }

 private:
  std::mt19937 engine_;
};

inline Bytes random_bytes(size_t count, uint32_t seed) {
  Random random(seed);
  Bytes bytes(count);
  for (uint8_t& b : bytes) b = static_cast<uint8_t>(random());
  return bytes;
}

// Words of a small vocabulary, Zipf-like.
inline Bytes text(size_t count, uint32_t seed) {
  Random random(seed);
  std::vector<std::string> words;
  for (int i = 0; i < 600; ++i) {
    std::string word;
    for (uint32_t k = 0, n = 2 + random() % 8; k < n; ++k) word += static_cast<char>('a' + random() % 26);
    words.push_back(word + " ");
  }
  Bytes bytes;
  while (bytes.size() < count) {
    const double u = (random() % 10000 + 1) / 10000.0;
    const std::string& word = words[static_cast<size_t>(std::pow(600.0, u) - 1) % 600];
    bytes.insert(bytes.end(), word.begin(), word.end());
  }
  bytes.resize(count);
  return bytes;
}

// Records of fixed length whose fields count up: repeat offsets and near matches.
// Noise, but each byte's low bits say which quarter of the values the next one is from.
inline Bytes chained(size_t count, uint32_t seed) {
  Random random(seed);
  Bytes bytes(count);
  uint32_t before = 0;
  for (uint8_t& b : bytes) {
    before = before % 4 * 64 + random() % 40;
    b = static_cast<uint8_t>(before);
  }
  return bytes;
}

inline Bytes records(size_t count, uint32_t seed) {
  Random random(seed);
  Bytes bytes;
  for (uint32_t i = 0; bytes.size() < count; ++i) {
    uint32_t fields[6] = {i, i * 7, 0xdead0000u + random() % 16, static_cast<uint32_t>(random()), 0, 42};
    const auto* p = reinterpret_cast<const uint8_t*>(fields);
    bytes.insert(bytes.end(), p, p + sizeof fields);
  }
  bytes.resize(count);
  return bytes;
}

inline Bytes floats(size_t count, int width, uint32_t seed) {
  Random random(seed);
  Bytes bytes;
  while (bytes.size() < count) {
    float f = 0;  // nearly normal, whatever the standard library
    for (int k = 0; k < 6; ++k) f += static_cast<float>(random() >> 8) / (1 << 24) - 0.5f;
    f *= 0.03f;
    uint32_t bits;
    std::memcpy(&bits, &f, 4);
    if (width == 2) bits >>= 16;
    for (int k = 0; k < width; ++k) bytes.push_back(static_cast<uint8_t>(bits >> (8 * k)));
  }
  bytes.resize(count);
  return bytes;
}

// The same as fp16, where they are large enough for it.
inline Bytes halves(size_t count, uint32_t seed) {
  const Bytes singles = floats(2 * count, 4, seed);
  Bytes bytes;
  for (size_t i = 0; i + 4 <= singles.size(); i += 4) {
    uint32_t bits;
    std::memcpy(&bits, singles.data() + i, 4);
    const uint32_t exponent = (bits >> 23) & 255, mantissa = (bits >> 13) & 1023;
    const uint32_t half = bits >> 31 << 15 | (exponent > 112 ? (exponent - 112) << 10 | mantissa : 0);
    bytes.push_back(static_cast<uint8_t>(half));
    bytes.push_back(static_cast<uint8_t>(half >> 8));
  }
  return bytes;
}

// fp32 values of which a few are so small that no window of exponents holds all.
inline Bytes wide_floats(size_t count, uint32_t seed) {
  Bytes bytes = floats(count, 4, seed);
  for (size_t i = 3; i < bytes.size(); i += 4096) bytes[i] = static_cast<uint8_t>((bytes[i] & 0x80) | 0x08);
  return bytes;
}

// Runs of every short period, long and short matches mixed with noise.
inline Bytes periods(size_t count, uint32_t seed) {
  Random random(seed);
  Bytes bytes;
  while (bytes.size() < count) {
    const size_t period = 1 + random() % 40, length = random() % 4 == 0 ? random() % 3000 : random() % 60;
    for (size_t k = 0; k < length; ++k)
      bytes.push_back(k < period || bytes.size() < period ? static_cast<uint8_t>(random())
                                                          : bytes[bytes.size() - period]);
  }
  bytes.resize(count);
  return bytes;
}

// A short text over and over, each time from another place to another: strings that are equal up to where a block ends.
inline Bytes quotations(size_t count, uint32_t seed) {
  Random random(seed);
  const Bytes source = text(40000, seed);
  Bytes bytes;
  while (bytes.size() < count) {
    const size_t length = 1 + random() % 3000, begin = random() % (source.size() - length);
    bytes.insert(bytes.end(), source.begin() + static_cast<ptrdiff_t>(begin),
                 source.begin() + static_cast<ptrdiff_t>(begin + length));
  }
  bytes.resize(count);
  return bytes;
}

struct Sample {
  std::string name;
  Bytes bytes;
};

inline Bytes join(std::initializer_list<Bytes> parts) {
  Bytes all;
  for (const Bytes& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

inline std::vector<Sample> samples() {
  return {{"empty", {}},
          {"one", {7}},
          {"two", {7, 7}},
          {"fifteen", text(15, 1)},
          {"short-text", text(200, 2)},
          {"text", text(300000, 3)},
          {"zeros", Bytes(200000, 0)},
          {"random", random_bytes(150000, 4)},
          {"records", records(200000, 5)},
          {"chained", chained(30000, 6)},
          {"bf16", floats(300000, 2, 6)},
          {"fp32", floats(300000, 4, 7)},
          {"fp16", halves(200000, 18)},
          {"fp32-wide", wide_floats(300000, 19)},
          {"bf16-odd", join({{1}, floats(200001, 2, 8)})},
          {"periods", periods(300000, 9)},
          {"mixture", join({text(90000, 10), random_bytes(70000, 11), floats(150000, 2, 12), Bytes(5000, 'x'),
                            periods(100000, 13)})},
          {"quotations", quotations(900000, 17)},
          {"block-1", text((128 << 10) - 1, 14)},
          {"block", text(128 << 10, 15)},
          {"block+1", text((128 << 10) + 1, 16)}};
}

}  // namespace glyd::codec::test
