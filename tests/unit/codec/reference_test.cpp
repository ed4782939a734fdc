// The library against the decoder that was written from the specification.
#include <gtest/gtest.h>

#include "codec_reference.hpp"
#include "frames.hpp"

namespace glyd::codec {
namespace {

using test::Bytes;

TEST(CodecReference, DecodesWhatTheLibraryWrites) {
  for (const Level level : {Level::kDefault, Level::kMax, Level::kUltra}) {
    for (const test::Sample& sample : test::samples()) {
      WriterOptions options = test::small_units(level);
      const Bytes metadata = test::text(10, 1);
      if (sample.bytes.size() % 2 == 0) options.metadata = metadata;
      const Bytes frame = test::write_frame(sample.bytes, options).value();
      try {
        EXPECT_TRUE(reference::decode_frames(frame) == sample.bytes) << sample.name;
      } catch (const reference::BadFrame& bad) {
        ADD_FAILURE() << sample.name << " breaks section " << bad.what();
      }
    }
  }
}

// Payloads changed at random, where both decoders must give the same bytes or both an error.
TEST(CodecReference, AgreesOnDamagedUnits) {
  test::Random random(2);
  int decoded = 0;
  for (const Level level : {Level::kDefault, Level::kMax, Level::kUltra}) {
    for (const Bytes& raw : {test::text(3000, 3), test::periods(6000, 4), test::floats(5000, 2, 5),
                             test::records(3000, 6), test::chained(5000, 7)}) {
      UnitEncoder encoder(level);
      Bytes payload(UnitEncoder::bound(raw.size()));
      payload.resize(encoder.write(raw, payload.data()));
      for (int trial = 0; trial < 300 && !payload.empty(); ++trial) {
        Bytes damaged = payload;
        damaged[random() % damaged.size()] ^= static_cast<uint8_t>(1u << (random() % 8));
        UnitDecoder decoder;
        Bytes out(raw.size());
        const bool good = static_cast<bool>(decoder.read(damaged, damaged.data() + damaged.size(), out));
        try {
          const Bytes expected = reference::decode_blocks(damaged.data(), damaged.size(), raw.size());
          ASSERT_TRUE(good) << trial;
          ASSERT_TRUE(out == expected) << trial;
          ++decoded;
        } catch (const reference::BadFrame& bad) {
          ASSERT_FALSE(good) << trial << ": breaks section " << bad.what();
        }
      }
    }
  }
  EXPECT_GT(decoded, 100);
}

}  // namespace
}  // namespace glyd::codec
