#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "glyd/codec.h"

namespace {

std::string sample(size_t count) {
  std::string text;
  for (int i = 0; text.size() < count; ++i) text += "line " + std::to_string(i * 7919 % 1000) + " of the sample\n";
  text.resize(count);
  return text;
}

std::vector<char> compress(const std::string& content, const glyd_compress_options* options = nullptr) {
  uint64_t bound = 0;
  EXPECT_EQ(glyd_compress_bound(content.size(), options, &bound), GLYD_OK);
  std::vector<char> frame(bound);
  size_t bytes = 0;
  EXPECT_EQ(glyd_compress(content.data(), content.size(), options, frame.data(), frame.size(), &bytes), GLYD_OK)
      << glyd_last_error();
  frame.resize(bytes);
  return frame;
}

TEST(CodecC, OneCallEachWay) {
  const std::string content = sample(1000000);
  for (const char* name : {"default", "max", "ultra"}) {
    glyd_compress_options options{};
    options.struct_size = sizeof options;
    ASSERT_EQ(glyd_level_from_name(name, &options.level), GLYD_OK);
    const std::vector<char> frame = compress(content, &options);
    EXPECT_LT(frame.size(), content.size() / 3);
    EXPECT_EQ(glyd_is_frame(frame.data(), frame.size()), 1);
    glyd_frame_info info{};
    info.struct_size = sizeof info;
    ASSERT_EQ(glyd_frame_read_info(frame.data(), frame.size(), &info), GLYD_OK) << glyd_last_error();
    EXPECT_EQ(info.content_bytes, content.size());
    EXPECT_EQ(info.level, options.level);
    std::string out(content.size(), 0);
    size_t bytes = 0;
    ASSERT_EQ(glyd_decompress(frame.data(), frame.size(), nullptr, out.data(), out.size(), &bytes), GLYD_OK)
        << glyd_last_error();
    EXPECT_EQ(out, content);
    EXPECT_EQ(glyd_frame_verify(frame.data(), frame.size(), nullptr), GLYD_OK);
    ASSERT_EQ(glyd_decompress_range(frame.data(), frame.size(), nullptr, 500, out.data(), 100), GLYD_OK);
    EXPECT_EQ(out.substr(0, 100), content.substr(500, 100));
    EXPECT_EQ(glyd_decompress(frame.data(), frame.size(), nullptr, out.data(), out.size() - 1, &bytes),
              GLYD_ERROR_BUFFER_TOO_SMALL);
  }
}

TEST(CodecC, BadCallsAreNamed) {
  glyd_level level;
  EXPECT_EQ(glyd_level_from_name("best", &level), GLYD_ERROR_INVALID_ARGUMENT);
  EXPECT_NE(std::string(glyd_last_error()).find("default, max or ultra"), std::string::npos);
  glyd_compress_options options{};
  uint64_t bound;
  EXPECT_EQ(glyd_compress_bound(1, &options, &bound), GLYD_ERROR_INVALID_ARGUMENT);  // no struct_size
  options.struct_size = sizeof options;
  options.unit_bytes = 100000;
  EXPECT_EQ(glyd_compress_bound(1, &options, &bound), GLYD_ERROR_INVALID_ARGUMENT);
  options.unit_bytes = 0;
  options.threads = -1;
  EXPECT_EQ(glyd_compress_bound(1, &options, &bound), GLYD_ERROR_INVALID_ARGUMENT);
  char byte;
  size_t bytes;
  EXPECT_EQ(glyd_compress(nullptr, 5, nullptr, &byte, 1, &bytes), GLYD_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(glyd_compress("abc", 3, nullptr, &byte, 1, &bytes), GLYD_ERROR_BUFFER_TOO_SMALL);
  EXPECT_EQ(glyd_decompress(nullptr, 0, nullptr, &byte, 1, &bytes), GLYD_ERROR_CORRUPT);  // empty is no frame
}

glyd_status append(void* context, const void* bytes, size_t count) {
  auto& out = *static_cast<std::string*>(context);
  out.append(static_cast<const char*>(bytes), count);
  return GLYD_OK;
}

struct Input {
  const std::string& bytes;
  size_t at = 0;
};

glyd_status take(void* context, void* bytes, size_t capacity, size_t* count) {
  auto& in = *static_cast<Input*>(context);
  *count = std::min<size_t>({capacity, 1000, in.bytes.size() - in.at});
  std::memcpy(bytes, in.bytes.data() + in.at, *count);
  in.at += *count;
  return GLYD_OK;
}

glyd_status take_at(void* context, uint64_t offset, void* bytes, size_t count) {
  const auto& in = *static_cast<const std::string*>(context);
  if (offset + count > in.size()) return GLYD_ERROR_IO;
  std::memcpy(bytes, in.data() + offset, count);
  return GLYD_OK;
}

TEST(CodecC, StreamsInAndOut) {
  const std::string content = sample(700000);
  glyd_compress_options options{};
  options.struct_size = sizeof options;
  options.unit_bytes = 131072;
  std::string frame;
  glyd_compressor* compressor = nullptr;
  ASSERT_EQ(glyd_compressor_create(&options, append, &frame, &compressor), GLYD_OK);
  for (size_t at = 0; at < content.size(); at += 10007)
    ASSERT_EQ(glyd_compressor_write(compressor, content.data() + at, std::min<size_t>(10007, content.size() - at)),
              GLYD_OK);
  ASSERT_EQ(glyd_compressor_finish(compressor), GLYD_OK);
  EXPECT_EQ(glyd_compressor_write(compressor, "x", 1), GLYD_ERROR_INVALID_ARGUMENT);
  glyd_compressor_free(compressor);

  Input input{frame};
  glyd_decompressor* decompressor = nullptr;
  ASSERT_EQ(glyd_decompressor_create(nullptr, take, &input, &decompressor), GLYD_OK);
  std::string out;
  char part[5000];
  for (size_t got = 1; got != 0;) {
    ASSERT_EQ(glyd_decompressor_read(decompressor, part, sizeof part, &got), GLYD_OK) << glyd_last_error();
    out.append(part, got);
  }
  glyd_decompressor_free(decompressor);
  EXPECT_EQ(out, content);

  glyd_reader* reader = nullptr;
  ASSERT_EQ(glyd_reader_open(take_at, &frame, frame.size(), &reader), GLYD_OK) << glyd_last_error();
  char range[1000];
  ASSERT_EQ(glyd_reader_read(reader, nullptr, 300000, range, sizeof range), GLYD_OK) << glyd_last_error();
  EXPECT_EQ(std::string(range, sizeof range), content.substr(300000, sizeof range));
  glyd_unit_info unit{};
  unit.struct_size = sizeof unit;
  ASSERT_EQ(glyd_reader_unit(reader, 1, &unit), GLYD_OK);
  EXPECT_EQ(unit.content_begin, 131072u);
  EXPECT_EQ(glyd_reader_unit(reader, 100, &unit), GLYD_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(glyd_reader_verify(reader, nullptr), GLYD_OK);
  glyd_reader_free(reader);
}

glyd_status keep(void* context, uint64_t, const void*, size_t bytes) {
  *static_cast<size_t*>(context) += bytes;
  return GLYD_OK;
}

TEST(CodecC, SalvageGivesTheRest) {
  const std::string content = sample(600000);
  glyd_compress_options options{};
  options.struct_size = sizeof options;
  options.unit_bytes = 131072;
  std::vector<char> frame = compress(content, &options);
  frame[100] = static_cast<char>(frame[100] ^ 1);
  size_t recovered = 0;
  glyd_salvage_report report{};
  report.struct_size = sizeof report;
  ASSERT_EQ(glyd_salvage(frame.data(), frame.size(), keep, &recovered, &report), GLYD_OK);
  EXPECT_EQ(recovered, content.size() - 131072);
  EXPECT_EQ(report.recovered_bytes, recovered);
  EXPECT_EQ(report.lost_ranges, 1u);
  EXPECT_EQ(report.complete, 0u);
}

// A source of a whole GiB that is never held: zeros, whose frame is small, and what is read of it is noted.
struct Watched {
  std::string frame;
  uint64_t bytes_read = 0;
  std::vector<uint64_t> offsets;
};

glyd_status take_watched(void* context, uint64_t offset, void* bytes, size_t count) {
  auto& in = *static_cast<Watched*>(context);
  if (offset > in.frame.size() || count > in.frame.size() - offset) return GLYD_ERROR_IO;
  in.bytes_read += count;
  in.offsets.push_back(offset);
  std::memcpy(bytes, in.frame.data() + offset, count);
  return GLYD_OK;
}

TEST(CodecC, ARangeOfAGibibyteTouchesTwoUnits) {
  glyd_compress_options options{};
  options.struct_size = sizeof options;
  Watched in;
  glyd_compressor* compressor = nullptr;
  ASSERT_EQ(glyd_compressor_create(&options, append, &in.frame, &compressor), GLYD_OK);
  // Noise now and then, so that units differ in size.
  std::string mebibyte(1 << 20, 0);
  for (uint32_t i = 0; i < 1024; ++i) {
    for (uint32_t k = 0; k < 64; ++k) mebibyte[k * 16001] = static_cast<char>(i * 2654435761u >> (k % 24));
    ASSERT_EQ(glyd_compressor_write(compressor, mebibyte.data(), mebibyte.size()), GLYD_OK);
  }
  ASSERT_EQ(glyd_compressor_finish(compressor), GLYD_OK);
  glyd_compressor_free(compressor);

  glyd_reader* reader = nullptr;
  ASSERT_EQ(glyd_reader_open(take_watched, &in, in.frame.size(), &reader), GLYD_OK) << glyd_last_error();
  glyd_frame_info info{};
  info.struct_size = sizeof info;
  ASSERT_EQ(glyd_reader_info(reader, &info), GLYD_OK);
  EXPECT_EQ(info.content_bytes, uint64_t{1} << 30);
  EXPECT_EQ(info.units, 128u);
  EXPECT_LT(in.bytes_read, 4096u) << "the index";
  in.bytes_read = 0;
  in.offsets.clear();
  std::string range(1 << 20, 1);
  const uint64_t begin = (uint64_t{512} << 20) - 1000;  // across two units
  ASSERT_EQ(glyd_reader_read(reader, nullptr, begin, range.data(), range.size()), GLYD_OK) << glyd_last_error();
  EXPECT_EQ(in.offsets.size(), 2u);
  EXPECT_LT(in.bytes_read, 3 * in.frame.size() / 128);
  EXPECT_EQ(range[1000], static_cast<char>(512u * 2654435761u));
  glyd_reader_free(reader);
}

// The progress function stops each call, and the status says so.
TEST(CodecC, ProgressCanStop) {
  const std::string content = sample(600000);
  const std::vector<char> frame = compress(content);
  const auto stop = [](void*, uint64_t) { return 1; };
  glyd_compress_options writing{};
  writing.struct_size = sizeof writing;
  writing.progress = stop;
  std::vector<char> out(content.size());
  size_t bytes = 0;
  EXPECT_EQ(glyd_compress(content.data(), content.size(), &writing, out.data(), out.size(), &bytes),
            GLYD_ERROR_CANCELLED);
  glyd_decompress_options reading{};
  reading.struct_size = sizeof reading;
  reading.progress = stop;
  EXPECT_EQ(glyd_decompress(frame.data(), frame.size(), &reading, out.data(), out.size(), &bytes),
            GLYD_ERROR_CANCELLED);
  EXPECT_EQ(glyd_frame_verify(frame.data(), frame.size(), &reading), GLYD_ERROR_CANCELLED);
}

// A frame may ask for much; the ceiling refuses it and says what it takes, and raising it is all it takes.
TEST(CodecC, TheMemoryCeilingIsHonoured) {
  const std::string content = sample(3000000);
  const std::vector<char> frame = compress(content);
  glyd_decompress_options options{};
  options.struct_size = sizeof options;
  options.memory_limit = 1 << 20;
  std::string out(content.size(), 0);
  size_t bytes = 0;
  EXPECT_EQ(glyd_decompress(frame.data(), frame.size(), &options, out.data(), out.size(), &bytes),
            GLYD_ERROR_OUT_OF_MEMORY);
  EXPECT_NE(std::string(glyd_last_error()).find("raise it"), std::string::npos);
  glyd_frame_info info{};
  info.struct_size = sizeof info;
  ASSERT_EQ(glyd_frame_read_info(frame.data(), frame.size(), &info), GLYD_OK);
  options.memory_limit = info.memory_bytes;
  EXPECT_EQ(glyd_decompress(frame.data(), frame.size(), &options, out.data(), out.size(), &bytes), GLYD_OK);
  EXPECT_EQ(out, content);
}

}  // namespace
