// fuzz_pack_roundtrip.cpp - a matrix and a layout out of any bytes: packed it is valid, comes back bit for bit (also
// from the reference) and is the same bytes at any number of threads and from any instruction set.
#include <algorithm>

#include "common/guarded_buffer.hpp"
#include "common/isas.hpp"
#include "glyd_reference.hpp"
#include "weights/weights.hpp"

namespace {

using glyd::fuzz::check;
using glyd::fuzz::GuardedBuffer;

// The first bytes choose shape, layout and kind of matrix; the rest are its values, again and again.
struct Input {
  glyd::Grid grid;
  bool transposed = false;
  glyd::Layout layout = glyd::Layout::kRaw;
  std::vector<std::uint16_t> values;
};

constexpr std::size_t kHeadBytes = 6;

std::uint16_t value_of(std::uint8_t kind, std::uint8_t low, std::uint8_t high, std::uint32_t noise) {
  const auto bits = static_cast<std::uint16_t>(high << 8 | low);
  const auto with_exponent = [&](unsigned exponent) {
    return static_cast<std::uint16_t>((noise & 0x807f) | (exponent & 255) << 7);
  };
  switch (kind % 4) {
    case 0:
      return bits;
    case 1:
      return with_exponent(120u + low % 8);  // in a window
    case 2:
      return with_exponent(low % 32 == 0 ? high : 118u + low % 8);  // few outside
    default:
      return low % 4 != 0 ? std::uint16_t{0} : with_exponent(116u + high % 10);  // pruned
  }
}

Input read_input(glyd::ByteSpan bytes) {
  Input input;
  const std::uint8_t* p = bytes.data();
  // Small, so that many run in a second: two strips, two records of `small`. One layout a run, for the same reason.
  constexpr glyd::Layout kLayouts[] = {glyd::Layout::kFast, glyd::Layout::kSmall, glyd::Layout::kFast,
                                       glyd::Layout::kSmall, glyd::Layout::kRaw};
  input.layout = kLayouts[p[0] / 2 % std::size(kLayouts)];
  input.grid = {1u + p[0] % 2, std::uint64_t{p[1]} % 34, (std::uint64_t{p[2]} | std::uint64_t{p[3]} << 8) % 300};
  input.transposed = (p[4] & 1) != 0;
  const glyd::ByteSpan text = bytes.subspan(kHeadBytes);
  input.values.resize(input.grid.stack * input.grid.rows * input.grid.cols);
  std::uint32_t noise = p[5];
  for (std::size_t i = 0; i < input.values.size(); ++i) {
    noise = noise * 1664525 + 1013904223;
    input.values[i] = value_of(p[4] >> 1, text[2 * i % text.size()], text[(2 * i + 1) % text.size()], noise >> 16);
  }
  return input;
}

void expect_round_trip(const Input& input, const GuardedBuffer& source) {
  const std::span<const std::uint16_t> values{reinterpret_cast<const std::uint16_t*>(source.bytes().data()),
                                              input.values.size()};
  std::vector<std::uint8_t> first;
  for (const glyd::Isa isa : glyd::fuzz::isas()) {
    const glyd::ScopedIsa scoped(isa);
    for (const int threads : {1, 2}) {
      auto packed = glyd::pack_tensor(values, input.grid, input.transposed, input.layout, threads);
      check(static_cast<bool>(packed));
      const auto bytes = packed.value().bytes();
      if (first.empty()) first.assign(bytes.begin(), bytes.end());
      check(std::equal(bytes.begin(), bytes.end(), first.begin(), first.end()));
    }
    GuardedBuffer pack{glyd::ByteSpan(first)}, out(2 * values.size());
    check(static_cast<bool>(glyd::validate_pack(pack.bytes(), 1)));
    check(static_cast<bool>(glyd::decode_tensor(pack.bytes(), 1, out.as<std::uint16_t>())));
    check(std::equal(values.begin(), values.end(), out.as<std::uint16_t>().begin()));
  }
  check(first.size() % 128 == 0 && first.size() <= glyd::pack_bound(input.grid));
  check(glyd_reference::decode_pack(first).values == input.values);  // a Corrupt that escapes is a finding too
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < kHeadBytes + 1) return 0;
  const Input input = read_input({data, size});
  GuardedBuffer source(
      glyd::ByteSpan{reinterpret_cast<const std::uint8_t*>(input.values.data()), 2 * input.values.size()});
  source.seal();
  expect_round_trip(input, source);
  return 0;
}
