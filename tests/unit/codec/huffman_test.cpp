#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/cpu.hpp"
#include "codec/entropy/symbols.hpp"
#include "samples.hpp"

namespace glyd::codec {
namespace {

Histogram geometric(double ratio) {
  Histogram counts{};
  double count = 1e6;
  for (uint32_t& c : counts) c = static_cast<uint32_t>(count), count *= ratio;
  return counts;
}

uint32_t kraft(const CodeLengths& lengths) {
  uint32_t sum = 0;
  for (const uint8_t bits : lengths.bits) sum += bits != 0 ? 1u << (kMaxCodeBits - bits) : 0;
  return sum;
}

TEST(CodeLengths, AreCompleteAndWithinTheLimitForEverySkew) {
  for (const double ratio : {0.3, 0.5, 0.7, 0.9, 0.97, 0.999, 1.0}) {
    const Histogram counts = geometric(ratio);
    CodeLengths lengths;
    make_code_lengths(counts.data(), 256, kMaxCodeBits, lengths.bits.data());
    EXPECT_EQ(kraft(lengths), 1u << kMaxCodeBits) << ratio;
    EXPECT_LE(*std::max_element(lengths.bits.begin(), lengths.bits.end()), kMaxCodeBits);
  }
}

TEST(CodeLengths, FollowTheCountsWhereTheLimitDoesNotBind) {
  Histogram counts{};
  counts[10] = 8, counts[20] = 4, counts[30] = 2, counts[40] = 1, counts[50] = 1;
  CodeLengths lengths;
  make_code_lengths(counts.data(), 256, kMaxCodeBits, lengths.bits.data());
  EXPECT_EQ(lengths.bits[10], 1);
  EXPECT_EQ(lengths.bits[20], 2);
  EXPECT_EQ(lengths.bits[30], 3);
  EXPECT_EQ(lengths.bits[40], 4);
  EXPECT_EQ(lengths.bits[50], 4);
}

TEST(CodeLengths, SurviveTransmission) {
  for (const double ratio : {0.4, 0.8, 0.98, 1.0}) {
    const Histogram counts = geometric(ratio);
    CodeLengths lengths, read;
    make_code_lengths(counts.data(), 256, kMaxCodeBits, lengths.bits.data());
    std::rotate(lengths.bits.begin(), lengths.bits.begin() + 77, lengths.bits.end());
    uint8_t sent[256];
    const size_t bytes = write_code_lengths(lengths, sent);
    const auto taken = read_code_lengths({sent, bytes}, read);
    ASSERT_TRUE(taken) << taken.error().message;
    EXPECT_EQ(taken.value(), bytes);
    EXPECT_EQ(read.bits, lengths.bits);
    for (size_t cut = 0; cut < bytes; ++cut) {
      if (const auto short_read = read_code_lengths({sent, cut}, read)) {
        EXPECT_NE(read.bits, lengths.bits) << cut;
      }
    }
  }
}

TEST(CodeLengths, AnIncompleteCodeMakesNoTable) {
  CodeLengths lengths;
  HuffmanTable table;
  EXPECT_FALSE(make_table(lengths, nullptr, table));
  lengths.bits[0] = 1;
  EXPECT_FALSE(make_table(lengths, nullptr, table));
  lengths.bits[1] = 1;
  EXPECT_TRUE(make_table(lengths, nullptr, table));
  lengths.bits[2] = 1;
  EXPECT_FALSE(make_table(lengths, nullptr, table));
}

std::vector<uint8_t> draw(size_t count, int symbols, uint32_t seed) {
  test::Random random(seed);
  std::vector<uint8_t> bytes(count);
  for (uint8_t& b : bytes)
    b = static_cast<uint8_t>(std::min<uint32_t>(random(), random()) % static_cast<uint32_t>(symbols) *
                             (random() % 3 == 0));
  return bytes;
}

class SymbolStreams : public ::testing::TestWithParam<Isa> {};

TEST_P(SymbolStreams, RoundTripAtEveryLengthNearAChangeOfLanes) {
  if (GetParam() > cpu_isa_detected()) GTEST_SKIP() << "this CPU has no " << isa_name(GetParam());
  const ScopedIsa isa(GetParam());
  for (const size_t count :
       {0, 1, 2, 15, 16, 17, 100, 191, 192, 193, 500, 1535, 1536, 1537, 1543, 4000, 100001, 262144}) {
    for (const int symbols : {1, 2, 3, 20, 256}) {
      const std::vector<uint8_t> bytes =
          draw(count, symbols, static_cast<uint32_t>(count) + static_cast<uint32_t>(symbols));
      SymbolEncoder encoder;
      std::vector<uint8_t> coded(2 * SymbolEncoder::bound(count) + 64);
      size_t stored = encoder.write(StreamKind::kTokens, bytes, coded.data());
      ASSERT_LE(stored, SymbolEncoder::bound(count));
      stored += encoder.write(StreamKind::kTokens, bytes, coded.data() + stored);  // now with a code to repeat
      // Exactly as many bytes as there are: loads past the end would be seen by a sanitizer.
      const std::vector<uint8_t> exact(coded.begin(), coded.begin() + static_cast<ptrdiff_t>(stored));
      SymbolDecoder decoder;
      const uint8_t* at = exact.data();
      for (int again = 0; again < 2; ++again) {
        std::vector<uint8_t> out(count);
        const auto read = decoder.read(StreamKind::kTokens, at, exact.data() + exact.size(),
                                       exact.data() + exact.size(), out.data(), count);
        ASSERT_TRUE(read) << count << " " << symbols << ": " << read.error().message;
        EXPECT_EQ(read.value(), count);
        EXPECT_EQ(out, bytes) << count << " " << symbols;
      }
      EXPECT_EQ(at, exact.data() + exact.size());
    }
  }
}

TEST_P(SymbolStreams, ClassesRoundTripAndAreChosenWhereTheyPay) {
  if (GetParam() > cpu_isa_detected()) GTEST_SKIP() << "this CPU has no " << isa_name(GetParam());
  const ScopedIsa isa(GetParam());
  for (const size_t count : {4000, 4001, 4007, 20000, 262144}) {
    for (const bool few : {false, true}) {  // of the symbols: 4, else 160
      std::vector<uint8_t> bytes = test::chained(count, static_cast<uint32_t>(count));
      for (size_t i = 1; few && i < count; ++i)
        bytes[i] = static_cast<uint8_t>((bytes[i] % 8 == 0 ? bytes[i] / 8 : bytes[i - 1] + bytes[i] % 2) % 4);
      SymbolEncoder encoder, plain;
      encoder.seek_classes = true;
      std::vector<uint8_t> coded(2 * SymbolEncoder::bound(count) + 64);
      const size_t plain_stored = plain.write(StreamKind::kTokens, bytes, coded.data());
      const size_t stored = encoder.write(StreamKind::kTokens, bytes, coded.data());
      ASSERT_LT(stored, plain_stored) << count << " " << few;
      EXPECT_EQ(coded[0], static_cast<uint8_t>(StreamMode::kClasses));
      const std::vector<uint8_t> exact(coded.begin(), coded.begin() + static_cast<ptrdiff_t>(stored));
      const auto read = [&](size_t end, std::vector<uint8_t>& out) {
        SymbolDecoder decoder;
        const uint8_t* at = exact.data();
        const auto got =
            decoder.read(StreamKind::kTokens, at, exact.data() + end, exact.data() + end, out.data(), count);
        return got && got.value() == count;
      };
      std::vector<uint8_t> out(count);
      ASSERT_TRUE(read(stored, out)) << count << " " << few;
      EXPECT_EQ(out, bytes) << count << " " << few;
      for (size_t end = 0; end < stored; end += 1 + end / 8) EXPECT_FALSE(read(end, out)) << end;
    }
  }
}

TEST_P(SymbolStreams, ReadNothingOutOfBoundsWhenCutOrChanged) {
  if (GetParam() > cpu_isa_detected()) GTEST_SKIP() << "this CPU has no " << isa_name(GetParam());
  const ScopedIsa isa(GetParam());
  const std::vector<uint8_t> bytes = draw(2000, 40, 5);
  SymbolEncoder encoder;
  std::vector<uint8_t> coded(SymbolEncoder::bound(bytes.size()) + 64);
  const size_t stored = encoder.write(StreamKind::kTokens, bytes, coded.data());
  test::Random random(6);
  for (size_t trial = 0; trial < 3000; ++trial) {
    std::vector<uint8_t> exact(coded.begin(), coded.begin() + static_cast<ptrdiff_t>(trial < stored ? trial : stored));
    if (trial >= stored) exact[random() % std::min<size_t>(stored, 120)] ^= static_cast<uint8_t>(1 + random() % 255);
    SymbolDecoder decoder;
    std::vector<uint8_t> out(bytes.size());
    const uint8_t* at = exact.data();
    const auto read = decoder.read(StreamKind::kTokens, at, exact.data() + exact.size(), exact.data() + exact.size(),
                                   out.data(), out.size());
    if (trial < stored) {
      EXPECT_FALSE(read) << trial;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, SymbolStreams, ::testing::Values(Isa::kScalar, Isa::kAvx2, Isa::kAvx512),
                         [](const auto& p) { return isa_name(p.param); });

}  // namespace
}  // namespace glyd::codec
