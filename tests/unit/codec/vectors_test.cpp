// The golden frames of tests/vectors/codec: what was written once must be read for ever, by the library and by the
// reference alike; what breaks a rule must be refused by both. With GLYD_WRITE_VECTORS=1 in the environment the files
// are made anew (after a change of the format, which bumps its version).
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

#include "base/crc32c.hpp"
#include "codec_reference.hpp"
#include "frames.hpp"

namespace glyd::codec {
namespace {

using test::Bytes;

const std::filesystem::path kFolder = GLYD_CODEC_VECTORS;

Bytes load(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return Bytes((std::istreambuf_iterator<char>(file)), {});
}

void save(const std::string& name, const Bytes& bytes) {
  std::filesystem::create_directories((kFolder / name).parent_path());
  std::ofstream(kFolder / name, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

// A long content whose frame is short.
Bytes repeated(size_t count, uint32_t seed) {
  const Bytes line = test::text(700, seed);
  Bytes bytes;
  while (bytes.size() < count) bytes.insert(bytes.end(), line.begin(), line.end());
  bytes.resize(count);
  return bytes;
}

std::map<std::string, Bytes> valid_frames() {
  std::map<std::string, Bytes> frames;
  const std::pair<const char*, Level> levels[] = {
      {"default", Level::kDefault}, {"max", Level::kMax}, {"ultra", Level::kUltra}};
  for (const auto& [name, level] : levels) {
    WriterOptions options = test::small_units(level);
    const auto put = [&](const std::string& what, const Bytes& content) {
      frames[what + "-" + name + ".glyd"] = test::write_frame(content, options).value();
    };
    put("text", test::text(6000, 1));
    put("periods", test::periods(5000, 2));
    put("three-units", repeated(300000, 3));
  }
  frames["classes-ultra.glyd"] = test::write_frame(test::chained(6000, 9), test::small_units(Level::kUltra)).value();
  const Bytes metadata = test::text(40, 4);
  WriterOptions options = test::small_units();
  frames["empty.glyd"] = test::write_frame({}, options).value();
  frames["one-byte.glyd"] = test::write_frame(Bytes{42}, options).value();
  frames["fill.glyd"] = test::write_frame(Bytes(70000, 0), options).value();
  frames["bf16-odd.glyd"] = test::write_frame(test::join({{9}, test::floats(8000, 2, 5)}), options).value();
  frames["fp16.glyd"] = test::write_frame(test::halves(8000, 7), options).value();
  frames["fp32-wide.glyd"] = test::write_frame(test::wide_floats(9000, 8), options).value();
  frames["fp32.glyd"] = test::write_frame(test::floats(9000, 4, 6), options).value();
  options.metadata = metadata;
  options.content_bytes = 200;
  frames["metadata.glyd"] = test::write_frame(test::text(200, 7), options).value();
  frames["two-frames.glyd"] = test::join({frames["one-byte.glyd"], frames["text-max.glyd"]});
  return frames;
}

// The text frame with one byte of the unit's payload changed and both its checks and the content's put right, as far as
// they can be.
Bytes with_payload_byte(const Bytes& frame, size_t at, uint8_t value) {
  Bytes changed = frame;
  uint8_t* const chunk = changed.data() + kFrameHeaderBytes;
  ChunkHeader header = parse_chunk_header({chunk, kChunkHeaderBytes}, kMinUnitLog).value();
  chunk[kChunkHeaderBytes + at] = value;
  header.payload_check = check32({chunk + kChunkHeaderBytes, header.stored_bytes});
  write_chunk_header(header, chunk);
  return changed;
}

std::map<std::string, Bytes> invalid_frames() {
  std::map<std::string, Bytes> frames;
  const Bytes text = test::write_frame(test::text(6000, 1), test::small_units()).value();
  const Bytes units = test::write_frame(repeated(300000, 3), test::small_units()).value();
  frames["invalid/no-footer.glyd"] = Bytes(text.begin(), text.end() - kFrameFooterBytes);
  frames["invalid/trailing-byte.glyd"] = test::join({text, {0}});
  frames["invalid/version-1.glyd"] = text;
  frames["invalid/version-1.glyd"][4] = 1;
  frames["invalid/block-type.glyd"] = with_payload_byte(text, 0, 9);
  frames["invalid/block-too-long.glyd"] = with_payload_byte(text, 3, 0xff);
  frames["invalid/low-bits.glyd"] = with_payload_byte(text, kBlockHeaderBytes, 4);
  frames["invalid/stream-mode.glyd"] = with_payload_byte(text, kBlockHeaderBytes + 1, 7);
  frames["invalid/repeat-of-no-code.glyd"] = with_payload_byte(text, kBlockHeaderBytes + 1, 3);
  frames["invalid/wrong-content.glyd"] =
      with_payload_byte(text, 400, text[kFrameHeaderBytes + kChunkHeaderBytes + 400] ^ 1);
  Bytes index = units;
  index.at(units.size() - kFrameFooterBytes - 1) ^= 1;
  frames["invalid/index.glyd"] = index;
  Bytes whole = units;
  whole.at(units.size() - 1) ^= 1;
  frames["invalid/whole-check.glyd"] = whole;
  return frames;
}

std::string line_of(const std::string& name, const Bytes& content) {
  return name + " " + std::to_string(content.size()) + " " + std::to_string(crc32c(content)) + "\n";
}

TEST(CodecVectors, AreReadByTheLibraryAndTheReference) {
  if (std::getenv("GLYD_WRITE_VECTORS") != nullptr) {
    std::string contents;
    for (const auto& [name, frame] : valid_frames()) {
      save(name, frame);
      contents += line_of(name, test::read_frame(frame).value());
    }
    save("contents.txt", Bytes(contents.begin(), contents.end()));
  }
  std::ifstream contents(kFolder / "contents.txt");
  std::string name, bytes, crc;
  int read = 0;
  for (; contents >> name >> bytes >> crc; ++read) {
    const Bytes frame = load(kFolder / name);
    const auto content = test::read_frame(frame);
    ASSERT_TRUE(content) << name << ": " << content.error().message;
    EXPECT_EQ(line_of(name, content.value()), name + " " + bytes + " " + crc + "\n");
    EXPECT_TRUE(reference::decode_frames(frame) == content.value()) << name;
  }
  EXPECT_GE(read, 15);
}

TEST(CodecVectors, InvalidOnesAreRefusedByBoth) {
  if (std::getenv("GLYD_WRITE_VECTORS") != nullptr) {
    for (const auto& [name, frame] : invalid_frames()) save(name, frame);
  }
  int refused = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder / "invalid")) {
    const Bytes frame = load(entry.path());
    const auto content = test::read_frame(frame);
    EXPECT_FALSE(content) << entry.path();
    EXPECT_THROW(reference::decode_frames(frame), reference::BadFrame) << entry.path();
    ++refused;
  }
  EXPECT_GE(refused, 11);
}

}  // namespace
}  // namespace glyd::codec
