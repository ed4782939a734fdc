#include "codec/unit.hpp"

#include <gtest/gtest.h>

#include "base/cpu.hpp"
#include "samples.hpp"

namespace glyd::codec {
namespace {

using test::Bytes;

Bytes encode(Level level, const Bytes& raw) {
  UnitEncoder encoder(level);
  Bytes out(UnitEncoder::bound(raw.size()));
  out.resize(encoder.write(raw, out.data()));
  return out;
}

Result<Bytes> decode(const Bytes& payload, size_t raw_bytes) {
  UnitDecoder decoder;
  Bytes out(raw_bytes);
  GLYD_CHECK(decoder.read(payload, payload.data() + payload.size(), out));
  return out;
}

class Units : public ::testing::TestWithParam<std::tuple<Level, Isa>> {
 protected:
  void SetUp() override {
    if (isa() > cpu_isa_detected()) GTEST_SKIP() << "this CPU has no " << isa_name(isa());
  }
  Level level() const { return std::get<0>(GetParam()); }
  Isa isa() const { return std::get<1>(GetParam()); }
};

TEST_P(Units, GiveBackEverySampleAndTheSameBytesAsTheScalarKernels) {
  for (const test::Sample& sample : test::samples()) {
    if (sample.bytes.empty()) continue;
    Bytes scalar;
    {
      const ScopedIsa plain(Isa::kScalar);
      scalar = encode(level(), sample.bytes);
    }
    const ScopedIsa forced(isa());
    const Bytes payload = encode(level(), sample.bytes);
    EXPECT_EQ(payload, scalar) << sample.name;
    EXPECT_LT(payload.size(), sample.bytes.size()) << sample.name;
    if (payload.empty()) continue;  // stored
    const auto out = decode(payload, sample.bytes.size());
    ASSERT_TRUE(out) << sample.name << ": " << out.error().message;
    EXPECT_TRUE(out.value() == sample.bytes) << sample.name;
  }
}

TEST_P(Units, AUnitsBytesDoNotDependOnTheUnitBefore) {
  const ScopedIsa forced(isa());
  const Bytes first = test::text(200000, 1), second = test::periods(150000, 2);
  UnitEncoder encoder(level());
  Bytes out(UnitEncoder::bound(first.size()));
  encoder.write(first, out.data());
  out.resize(encoder.write(second, out.data()));
  EXPECT_EQ(out, encode(level(), second));
}

// Damage that the checks of the frame would find first: the decoder by itself must stay within its buffers and come
// back.
TEST_P(Units, SurviveDamage) {
  const ScopedIsa forced(isa());
  test::Random random(3);
  for (const Bytes& raw :
       {test::text(40000, 4), test::periods(40000, 5), test::floats(40000, 2, 6), test::records(40000, 7)}) {
    const Bytes payload = encode(level(), raw);
    if (payload.empty()) continue;
    for (int trial = 0; trial < 400; ++trial) {
      Bytes damaged = payload;
      for (uint32_t k = 0, n = 1 + random() % 3; k < n; ++k) {
        const size_t at = random() % (trial % 2 == 0 ? std::min<size_t>(damaged.size(), 200) : damaged.size());
        damaged[at] = static_cast<uint8_t>(random());
      }
      if (trial % 5 == 0) damaged.resize(random() % damaged.size());
      const auto out = decode(damaged, raw.size());
      if (out) {
        EXPECT_EQ(out.value().size(), raw.size());
      }
    }
  }
}

std::string name_of(const ::testing::TestParamInfo<std::tuple<Level, Isa>>& p) {
  const char* const names[] = {"default", "max", "ultra"};
  return std::string(names[static_cast<int>(std::get<0>(p.param))]) + "_" + isa_name(std::get<1>(p.param));
}

INSTANTIATE_TEST_SUITE_P(All, Units,
                         ::testing::Combine(::testing::Values(Level::kDefault, Level::kMax, Level::kUltra),
                                            ::testing::Values(Isa::kScalar, Isa::kAvx2, Isa::kAvx512)),
                         name_of);

TEST(FloatPlanes, CostTheirExponentsEntropy) {
  const Bytes bf16 = test::floats(1 << 20, 2, 8), fp32 = test::floats(1 << 20, 4, 9), fp16 = test::halves(1 << 20, 10);
  EXPECT_LT(encode(Level::kMax, bf16).size(), bf16.size() * 665 / 1000);
  EXPECT_LT(encode(Level::kMax, fp32).size(), fp32.size() * 835 / 1000);
  EXPECT_LT(encode(Level::kMax, fp16).size(), fp16.size() * 87 / 100);
}

}  // namespace
}  // namespace glyd::codec
