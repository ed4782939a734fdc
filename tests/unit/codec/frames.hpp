// frames.hpp - whole frames in memory, for tests.
#pragma once

#include "codec/frame/reader.hpp"
#include "codec/frame/writer.hpp"
#include "samples.hpp"

namespace glyd::codec::test {

inline Result<Bytes> write_frame(ByteSpan content, WriterOptions options) {
  Bytes frame;
  FrameWriter writer(std::move(options), [&](ByteSpan bytes) -> Result<void> {
    frame.insert(frame.end(), bytes.begin(), bytes.end());
    return {};
  });
  GLYD_CHECK(writer.begin());
  GLYD_CHECK(writer.finish(content));
  return frame;
}

// Small units, so that small contents have several.
inline WriterOptions small_units(Level level = Level::kMax) {
  WriterOptions options;
  options.level = level;
  options.unit_log = kMinUnitLog;
  return options;
}

inline Result<Bytes> read_frame(const Bytes& frame, int threads = 1) {
  // An exact copy on the heap: reads past it would be seen by a sanitizer.
  const std::unique_ptr<uint8_t[]> exact(new uint8_t[frame.size()]);
  std::copy(frame.begin(), frame.end(), exact.get());
  const MemorySource source({exact.get(), frame.size()});
  GLYD_TRY(const FrameReader reader, FrameReader::open(source));
  Bytes out(reader.content_bytes());
  ReaderOptions options;
  options.threads = threads;
  GLYD_CHECK(reader.read_all(out, options));
  return out;
}

}  // namespace glyd::codec::test
