#include "codec/planes/floats.hpp"

#include <algorithm>
#include <array>

#include "codec/entropy/fixed_log2.hpp"
#include "codec/kernels/basics.hpp"

namespace glyd::codec {
namespace {

// A sample of 1,024 values tells: noise in the low byte of sign and mantissa, little of it in the exponent.
constexpr uint32_t kLeastValues = 2048, kSampleValues = 1024;
// In 1/256 bit. 1,024 draws from 256 equal symbols show 7.8 bits. fp16 values are taken as bf16: five bits of exponent
// and three of mantissa come to 5.7.
constexpr uint32_t kMostExponentBits[2] = {6 << kLogFraction, 5 << kLogFraction},
                   kLeastNoiseBits = 74 * (1 << kLogFraction) / 10;
constexpr int kLeastNoiseSymbols = 160;  // fewer cannot have them
constexpr uint32_t kWindowAbove = 12;    // exponents above the sample's largest that the symbols can say

constexpr size_t packed_bytes(size_t count) { return (6 * count + 7) / 8; }

uint32_t entropy(const std::array<uint16_t, 256>& counts) {
  uint32_t sum = 0;
  for (const uint16_t c : counts) {
    if (c != 0) sum += c * (fixed_log2(kSampleValues) - fixed_log2(c));
  }
  return sum / kSampleValues;
}

struct Shape {
  int width = 0;         // bytes of a value, 0: not floats
  size_t phase = 0;      // bytes before the first whole value
  uint32_t largest = 0;  // exponent in the sample
};

// `float_bytes`, if it is known: floats of that width are looked for alone, and may save less.
Shape recognise(ByteSpan raw, std::optional<int> float_bytes) {
  Shape best;
  uint32_t best_saving = float_bytes ? 5 : 20;  // of 256: of the bytes
  for (const int width : {2, 4}) {
    if (float_bytes && *float_bytes != width) continue;
    const auto w = static_cast<size_t>(width);
    const size_t values = raw.size() / w;
    if (values < kLeastValues) continue;
    // Sixteen runs of neighbours, spread over the block.
    const size_t run = kSampleValues / 16, stride = (values - 1 - run) / 15;
    for (size_t phase = 0; phase < w; ++phase) {
      std::array<uint16_t, 256> exponents{}, noise{};
      for (size_t i = 0; i < kSampleValues; ++i) {
        const uint8_t* const p = raw.data() + phase + (i / run * stride + i % run) * w;
        const uint32_t v = width == 2 ? load16(p) : load32(p);
        ++exponents[(v >> (width == 2 ? 7 : 23)) & 255];
        ++noise[width == 2 ? (v << 1 | v >> 15) & 255 : (v >> 15) & 255];
      }
      if (std::count(noise.begin(), noise.end(), 0) > 256 - kLeastNoiseSymbols) continue;
      const uint32_t exponent_bits = entropy(exponents);
      if ((!float_bytes && exponent_bits > kMostExponentBits[width / 4]) || entropy(noise) < kLeastNoiseBits) continue;
      if (const uint32_t saving = ((8u << kLogFraction) - exponent_bits) / static_cast<uint32_t>(8 * width);
          saving > best_saving) {
        best_saving = saving;
        uint32_t largest = 255;
        while (exponents[largest] == 0) --largest;
        best = {width, phase, largest};
      }
    }
  }
  return best;
}

}  // namespace

size_t FloatsWriter::write(ByteSpan raw, std::optional<int> float_bytes, SymbolEncoder& symbols, uint8_t* out) {
  const Shape shape = recognise(raw, float_bytes);
  if (shape.width == 0) return 0;
  const size_t width = static_cast<size_t>(shape.width);
  const size_t count = (raw.size() - shape.phase) / width;
  exponents_.resize(count);
  rest_.resize(count + 16);
  const Kernels& kernel = kernels();
  const uint8_t* const values = raw.data() + shape.phase;
  const uint8_t* highs = values;
  if (width == 4) {
    highs_.resize(2 * count);
    low_.resize(2 * count);
    kernel.split_halves(values, count, highs_.data(), low_.data(), low_.data() + count);
    highs = highs_.data();
  }
  const auto base = static_cast<uint8_t>(shape.largest + kWindowAbove + 1 - kExponentZero);
  const bool joint = kernel.split_floats_joint(highs, count, base, exponents_.data(), rest_.data());
  if (!joint) kernel.split_floats(highs, count, exponents_.data(), rest_.data());
  const size_t rest_bytes = joint ? packed_bytes(count) : count;
  uint8_t* to = out;
  *to++ = static_cast<uint8_t>(width << 4 | shape.phase);
  *to++ = joint ? kFloatsJoint : 0;
  if (joint) *to++ = base;
  to = std::copy_n(raw.data(), shape.phase, to);
  to += symbols.write(StreamKind::kPlane, exponents_, to);
  if (width == 4) {
    to += symbols.write(StreamKind::kLowBytes, {low_.data(), count}, to);
    to += symbols.write(StreamKind::kLowBytes, {low_.data() + count, count}, to);
  }
  to = std::copy_n(rest_.data(), rest_bytes, to);
  to = std::copy(values + count * width, raw.data() + raw.size(), to);
  return static_cast<size_t>(to - out);
}

Result<void> read_floats(ByteSpan payload, const uint8_t* readable, SymbolDecoder& symbols, FloatsScratch& scratch,
                         MutableByteSpan out) {
  const uint8_t* at = payload.data();
  const uint8_t* const end = at + payload.size();
  if (payload.size() < 2) return corrupt("float block: cut short");
  const size_t width = *at >> 4, phase = *at & 15;
  const uint8_t mantissa_bits = at[1];
  at += 2;
  if ((width != 2 && width != 4) || phase >= width || phase > out.size() ||
      (mantissa_bits != 0 && mantissa_bits != kFloatsJoint))
    return corrupt("float block: width {}, phase {}, {} bits of mantissa", width, phase, mantissa_bits);
  const bool joint = mantissa_bits == kFloatsJoint;
  const size_t count = (out.size() - phase) / width;
  const size_t tail = out.size() - phase - count * width;
  if (static_cast<size_t>(end - at) < phase + joint) return corrupt("float block: cut short");
  const uint32_t base = joint ? *at++ : 0;
  std::copy_n(at, phase, out.data());
  at += phase;
  const auto read_stream = [&](StreamKind kind, uint8_t* to) -> Result<void> {
    GLYD_TRY(const size_t symbols_read, symbols.read(kind, at, end, readable, to, count));
    if (symbols_read != count) return corrupt("float block: {} symbols for {} values", symbols_read, count);
    return {};
  };
  if (scratch.exponents.size() < count) scratch.exponents.resize(count);
  GLYD_CHECK(read_stream(StreamKind::kPlane, scratch.exponents.data()));
  if (width == 4) {
    if (scratch.low.size() < 2 * count) scratch.low.resize(2 * count), scratch.highs.resize(2 * count);
    GLYD_CHECK(read_stream(StreamKind::kLowBytes, scratch.low.data()));
    GLYD_CHECK(read_stream(StreamKind::kLowBytes, scratch.low.data() + count));
  }
  const size_t rest_bytes = joint ? packed_bytes(count) : count;
  if (static_cast<size_t>(end - at) != rest_bytes + tail) return corrupt("float block: rests of wrong size");
  const Kernels& kernel = kernels();
  uint8_t* const values = out.data() + phase;
  uint8_t* const highs = width == 4 ? scratch.highs.data() : values;
  if (joint)
    kernel.join_floats_joint(scratch.exponents.data(), at, count, base, highs);
  else
    kernel.join_floats(scratch.exponents.data(), at, count, highs);
  if (width == 4) kernel.join_halves(highs, scratch.low.data(), scratch.low.data() + count, count, values);
  std::copy_n(at + rest_bytes, tail, values + count * width);
  return {};
}

}  // namespace glyd::codec
