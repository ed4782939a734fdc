#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codec/frame/stream.hpp"
#include "frames.hpp"

namespace glyd::codec {
namespace {

using test::Bytes;
using ::testing::HasSubstr;

constexpr Level kLevels[] = {Level::kDefault, Level::kMax, Level::kUltra};

TEST(Frame, GivesBackEverySampleAndStaysWithinItsBound) {
  for (const Level level : kLevels) {
    for (const test::Sample& sample : test::samples()) {
      WriterOptions options;
      options.level = level;
      const auto frame = test::write_frame(sample.bytes, options);
      ASSERT_TRUE(frame) << frame.error().message;
      EXPECT_LE(frame.value().size(), sample.bytes.size() + sample.bytes.size() / 2000 + 64) << sample.name;
      EXPECT_LE(frame.value().size(), frame_bound(sample.bytes.size(), default_unit_log(level), 0));
      const auto out = test::read_frame(frame.value());
      ASSERT_TRUE(out) << sample.name << ": " << out.error().message;
      EXPECT_TRUE(out.value() == sample.bytes) << sample.name;
    }
  }
}

TEST(Frame, HasTheSameBytesAtAnyNumberOfThreadsAndPieces) {
  const Bytes content = test::join({test::text(500000, 1), test::random_bytes(200000, 2), test::records(300001, 3)});
  for (const Level level : kLevels) {
    WriterOptions options = test::small_units(level);
    const Bytes one = test::write_frame(content, options).value();
    options.threads = 3;
    EXPECT_EQ(test::write_frame(content, options).value(), one);
    for (const size_t piece : {1000, 131072, 400000}) {
      Bytes frame;
      FrameWriter writer(options, [&](ByteSpan bytes) -> Result<void> {
        frame.insert(frame.end(), bytes.begin(), bytes.end());
        return {};
      });
      ASSERT_TRUE(writer.begin());
      for (size_t at = 0; at < content.size(); at += piece)
        ASSERT_TRUE(writer.write(ByteSpan(content).subspan(at, std::min(piece, content.size() - at))));
      ASSERT_TRUE(writer.finish());
      EXPECT_EQ(frame, one) << piece;
    }
    const auto out = test::read_frame(one, 3);
    ASSERT_TRUE(out) << out.error().message;
    EXPECT_TRUE(out.value() == content);
  }
}

TEST(Frame, ReadsAnyRangeFromTheUnitsItTouches) {
  class Counting final : public Source {
   public:
    explicit Counting(ByteSpan bytes) : inner(bytes) {}
    uint64_t size() const override { return inner.size(); }
    Result<ByteSpan> view(uint64_t offset, size_t bytes, std::vector<uint8_t>& buffer) const override {
      taken += bytes;
      return inner.view(offset, bytes, buffer);
    }
    MemorySource inner;
    mutable uint64_t taken = 0;
  };
  const Bytes content = test::join({test::text(600000, 4), test::random_bytes(300000, 5), test::text(400000, 6)});
  const Bytes frame = test::write_frame(content, test::small_units()).value();
  const Counting source(frame);
  const auto reader = FrameReader::open(source);
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_LT(source.taken, 400u);  // tail, index and head
  EXPECT_EQ(reader.value().content_bytes(), content.size());
  EXPECT_EQ(reader.value().units().size(), ceil_div<size_t>(content.size(), 131072));
  test::Random random(7);
  for (int trial = 0; trial < 50; ++trial) {
    const size_t begin = random() % content.size(),
                 count = random() % std::min<size_t>(content.size() - begin + 1, 200000);
    Bytes out(count);
    source.taken = 0;
    ASSERT_TRUE(reader.value().read(begin, out, {}));
    EXPECT_TRUE(std::equal(out.begin(), out.end(), content.begin() + static_cast<ptrdiff_t>(begin)));
    EXPECT_LE(source.taken, 3u * (131072 + kChunkHeaderBytes + kFrameFooterBytes));
  }
  Bytes none;
  EXPECT_TRUE(reader.value().read(content.size(), none, {}));
  Bytes one(1);
  EXPECT_EQ(reader.value().read(content.size(), one, {}).error().status, GLYD_ERROR_INVALID_ARGUMENT);
}

TEST(Frame, FramesInARowHoldTheirContentsInARow) {
  const Bytes a = test::text(300000, 8), b = test::random_bytes(1000, 9), c, d = test::text(200000, 10);
  const Bytes row =
      test::join({test::write_frame(a, test::small_units()).value(), test::write_frame(b, {}).value(),
                  test::write_frame(c, {}).value(), test::write_frame(d, test::small_units(Level::kDefault)).value()});
  const auto out = test::read_frame(row);
  ASSERT_TRUE(out) << out.error().message;
  EXPECT_TRUE(out.value() == test::join({a, b, c, d}));
  const Bytes trailing = test::join({row, {1, 2, 3}});
  EXPECT_THAT(test::read_frame(trailing).error().message, HasSubstr("no frame"));
}

TEST(Frame, CarriesMetadata) {
  const Bytes metadata = test::text(5000, 11), content = test::text(10000, 12);
  WriterOptions options;
  options.metadata = metadata;
  const Bytes frame = test::write_frame(content, options).value();
  const MemorySource source(frame);
  const auto reader = FrameReader::open(source);
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_EQ(reader.value().metadata(0).value(), metadata);
  EXPECT_EQ(test::read_frame(frame).value(), content);
}

TEST(Frame, AnAnnouncedSizeMustCome) {
  WriterOptions options;
  options.content_bytes = 5;
  EXPECT_EQ(test::write_frame(test::text(6, 1), options).error().status, GLYD_ERROR_INVALID_ARGUMENT);
}

TEST(Frame, MemoryStaysBelowTheLimitOrIsRefused) {
  const Bytes content = test::text(1000000, 13);
  const Bytes frame = test::write_frame(content, test::small_units()).value();
  const MemorySource source(frame);
  const FrameReader reader = FrameReader::open(source).value();
  Bytes out(content.size());
  ReaderOptions options;
  options.threads = 4;
  options.memory_limit = reader.memory_bytes(1);
  EXPECT_TRUE(reader.read_all(out, options));
  options.memory_limit -= 1;
  const auto refused = reader.read_all(out, options);
  EXPECT_EQ(refused.error().status, GLYD_ERROR_OUT_OF_MEMORY);
  EXPECT_THAT(refused.error().message, HasSubstr("raise it"));
}

TEST(Frame, ProgressCanStopIt) {
  const Bytes content = test::text(1000000, 14);
  WriterOptions options = test::small_units();
  options.progress = [](uint64_t bytes) { return bytes < 300000; };
  EXPECT_EQ(test::write_frame(content, options).error().status, GLYD_ERROR_CANCELLED);
}

Result<Bytes> read_stream(const Bytes& frame, size_t piece, size_t want, int threads) {
  size_t at = 0;
  ReaderOptions options;
  options.threads = threads;
  StreamDecoder decoder(
      [&](MutableByteSpan bytes) -> Result<size_t> {
        const size_t count = std::min({bytes.size(), piece, frame.size() - at});
        std::copy_n(frame.begin() + static_cast<ptrdiff_t>(at), count, bytes.begin());
        at += count;
        return count;
      },
      options);
  Bytes all, part(want);
  for (;;) {
    GLYD_TRY(const size_t got, decoder.read(part));
    if (got == 0) return all;
    all.insert(all.end(), part.begin(), part.begin() + static_cast<ptrdiff_t>(got));
  }
}

TEST(FrameStream, GivesTheContentOfFramesInARow) {
  const Bytes a = test::text(700000, 15), b = test::random_bytes(1000, 16);
  const Bytes row = test::join({test::write_frame(a, test::small_units()).value(), test::write_frame({}, {}).value(),
                                test::write_frame(b, {}).value()});
  for (const int threads : {1, 3}) {
    for (const size_t piece : {7u, 5000u, 1000000u}) {
      const auto out = read_stream(row, piece, 33333, threads);
      ASSERT_TRUE(out) << out.error().message;
      EXPECT_TRUE(out.value() == test::join({a, b}));
    }
  }
}

// Whole units before an error go out first, however many are decoded side by side.
TEST(FrameStream, GivesWhatLiesBeforeAnError) {
  const Bytes content = test::text(5 * (128 << 10), 21);
  const Bytes frame = test::write_frame(content, test::small_units()).value();
  const MemorySource source(frame);
  const auto reader = FrameReader::open(source);
  ASSERT_TRUE(reader);
  const UnitPlace& fourth = reader.value().units()[3];
  Bytes cut(frame.begin(), frame.begin() + static_cast<ptrdiff_t>(fourth.chunk_offset + 100)), damaged = frame;
  damaged[fourth.chunk_offset + 100] ^= 1;
  for (const Bytes& broken : {cut, damaged}) {
    for (const int threads : {1, 2, 3, 8}) {
      size_t at = 0;
      ReaderOptions options;
      options.threads = threads;
      StreamDecoder decoder(
          [&](MutableByteSpan bytes) -> Result<size_t> {
            const size_t count = std::min(bytes.size(), broken.size() - at);
            std::copy_n(broken.begin() + static_cast<ptrdiff_t>(at), count, bytes.begin());
            at += count;
            return count;
          },
          options);
      Bytes given, part(100000);
      auto got = decoder.read(part);
      for (; got && got.value() != 0; got = decoder.read(part))
        given.insert(given.end(), part.begin(), part.begin() + static_cast<ptrdiff_t>(got.value()));
      EXPECT_FALSE(got);
      EXPECT_FALSE(decoder.read(part)) << "the error stays";
      EXPECT_TRUE(given == Bytes(content.begin(), content.begin() + 3 * (128 << 10))) << given.size();
    }
  }
}

TEST(FrameStream, ACutIsAnErrorThatSaysSo) {
  const Bytes frame = test::write_frame(test::text(300000, 17), test::small_units()).value();
  for (size_t cut = 0; cut < frame.size(); cut += cut < 60 || cut + 60 > frame.size() ? 1 : 997) {
    const auto out = read_stream(Bytes(frame.begin(), frame.begin() + static_cast<ptrdiff_t>(cut)), 4096, 10000, 1);
    ASSERT_FALSE(out) << cut;
    EXPECT_EQ(out.error().status, GLYD_ERROR_CORRUPT) << cut << out.error().message;
  }
}

}  // namespace
}  // namespace glyd::codec
