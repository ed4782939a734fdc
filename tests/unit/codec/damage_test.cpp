#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codec/frame/salvage.hpp"
#include "frames.hpp"

namespace glyd::codec {
namespace {

using test::Bytes;

Bytes small_frame() {
  WriterOptions options = test::small_units();
  static const Bytes metadata = test::text(50, 1);
  options.metadata = metadata;
  // Highly repetitive, so that the frame is short enough to try every byte of it.
  Bytes content;
  const Bytes line = test::text(4000, 2);
  while (content.size() < 300000) content.insert(content.end(), line.begin(), line.end());
  return test::write_frame(content, options).value();
}

TEST(Damage, EveryFlippedByteIsFound) {
  const Bytes frame = small_frame();
  for (size_t at = 0; at < frame.size(); ++at) {
    Bytes damaged = frame;
    damaged[at] ^= static_cast<uint8_t>(1 << (at % 8));
    ASSERT_FALSE(test::read_frame(damaged)) << "byte " << at << " of " << frame.size();
  }
}

TEST(Damage, EveryTruncationIsFound) {
  const Bytes frame = small_frame();
  for (size_t cut = 0; cut < frame.size(); ++cut) {
    ASSERT_FALSE(test::read_frame(Bytes(frame.begin(), frame.begin() + static_cast<ptrdiff_t>(cut)))) << cut;
  }
}

// Every check holds, and the index agrees: only the order is wrong.
TEST(Damage, MetadataAfterTheFirstChunkIsRefused) {
  const Bytes text = test::text(100, 3);
  Bytes frame(kFrameHeaderBytes);
  std::vector<IndexEntry> entries;
  uint64_t position = 0;
  WholeCheck whole;
  const auto add = [&](ChunkKind kind) {
    const bool unit = kind == ChunkKind::kStored;
    const auto bytes = static_cast<uint32_t>(text.size());
    const ChunkHeader header{.kind = kind,
                             .position = position,
                             .raw_bytes = unit ? bytes : 0,
                             .stored_bytes = bytes,
                             .payload_check = check32(text),
                             .content_check = unit ? check32(text) : 0};
    uint8_t chunk[kChunkHeaderBytes];
    write_chunk_header(header, chunk);
    frame.insert(frame.end(), chunk, chunk + sizeof chunk);
    frame.insert(frame.end(), text.begin(), text.end());
    entries.push_back({header.raw_bytes, bytes});
    position += header.raw_bytes;
    if (unit) whole.add(header.raw_bytes, header.content_check);
  };
  const auto finish = [&] {
    Bytes done = frame;
    const Bytes index = write_index(done.size(), position, entries);
    done.insert(done.end(), index.begin(), index.end());
    uint8_t footer[kFrameFooterBytes];
    write_footer({.index_bytes = static_cast<uint32_t>(index.size()), .whole_check = whole.value()}, footer);
    done.insert(done.end(), footer, footer + sizeof footer);
    write_frame_header({.unit_log = kMinUnitLog, .level = 1, .content_bytes = position}, done.data());
    return done;
  };
  add(ChunkKind::kMetadata);
  add(ChunkKind::kStored);
  ASSERT_TRUE(test::read_frame(finish()));
  add(ChunkKind::kMetadata);
  EXPECT_FALSE(test::read_frame(finish()));
}

TEST(Damage, AForeignFileAndANewerVersionAreNamed) {
  EXPECT_EQ(test::read_frame(test::text(100, 3)).error().status, GLYD_ERROR_FOREIGN_FORMAT);
  Bytes frame = test::write_frame(test::text(100, 3), {}).value();
  frame[4] = 3;
  const auto newer = test::read_frame(frame);
  EXPECT_EQ(newer.error().status, GLYD_ERROR_FOREIGN_FORMAT);
  EXPECT_THAT(newer.error().message, ::testing::HasSubstr("version 3"));
}

struct Salvaged {
  SalvageReport report;
  Bytes content;
};

Salvaged salvage_all(const Bytes& damaged) {
  Salvaged s;
  auto report = salvage(damaged, [&](uint64_t position, ByteSpan content) -> Result<void> {
    s.content.resize(std::max<size_t>(s.content.size(), position + content.size()), '?');
    std::copy(content.begin(), content.end(), s.content.begin() + static_cast<ptrdiff_t>(position));
    return {};
  });
  EXPECT_TRUE(report);
  s.report = report.value();
  return s;
}

TEST(Salvage, AWholeFrameIsComplete) {
  const Bytes content = test::text(500000, 4);
  const Salvaged s = salvage_all(test::write_frame(content, test::small_units()).value());
  EXPECT_TRUE(s.report.complete);
  EXPECT_TRUE(s.report.lost.empty());
  EXPECT_EQ(s.content, content);
}

TEST(Salvage, ADamagedUnitLosesOnlyItself) {
  const Bytes content = test::text(600000, 5);
  WriterOptions options = test::small_units();
  options.content_bytes = content.size();
  const Bytes frame = test::write_frame(content, options).value();
  const MemorySource source(frame);
  const FrameReader reader = FrameReader::open(source).value();
  for (size_t u = 0; u < reader.units().size(); ++u) {
    const UnitPlace& unit = reader.units()[u];
    for (const uint64_t at :
         {unit.chunk_offset, unit.chunk_offset + 7, unit.chunk_offset + kChunkHeaderBytes + unit.stored_bytes / 2}) {
      Bytes damaged = frame;
      damaged[at] ^= 0x10;
      const Salvaged s = salvage_all(damaged);
      EXPECT_FALSE(s.report.complete);
      ASSERT_EQ(s.report.lost.size(), 1u) << u;
      EXPECT_EQ(s.report.lost[0].begin, unit.content_begin);
      EXPECT_EQ(s.report.lost[0].end, unit.content_begin + unit.raw_bytes);
      EXPECT_EQ(s.report.recovered_bytes, content.size() - unit.raw_bytes);
      for (size_t i = 0; i < s.content.size(); ++i) {
        if (i < unit.content_begin || i >= unit.content_begin + unit.raw_bytes) {
          ASSERT_EQ(s.content[i], content[i]) << i;
        }
      }
    }
  }
}

TEST(Salvage, ACutFrameGivesWhatCameBefore) {
  const Bytes content = test::text(600000, 6);
  WriterOptions options = test::small_units();
  const Bytes frame = test::write_frame(content, options).value();
  const MemorySource source(frame);
  const UnitPlace third = FrameReader::open(source).value().units()[2];
  const Salvaged s =
      salvage_all(Bytes(frame.begin(), frame.begin() + static_cast<ptrdiff_t>(third.chunk_offset + 1000)));
  EXPECT_FALSE(s.report.complete);
  EXPECT_EQ(s.report.content_end, third.content_begin);
  EXPECT_TRUE(std::equal(s.content.begin(), s.content.end(), content.begin()));
  EXPECT_EQ(s.content.size(), third.content_begin);
}

TEST(Salvage, ALostFrameHeaderIsNoLoss) {
  const Bytes content = test::text(300000, 7);
  Bytes frame = test::write_frame(content, test::small_units()).value();
  frame[1] ^= 1;
  const Salvaged s = salvage_all(frame);
  EXPECT_EQ(s.content, content);
  EXPECT_FALSE(s.report.complete);
}

}  // namespace
}  // namespace glyd::codec
