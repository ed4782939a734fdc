#include "codec/planes/tensors.hpp"

#include <gtest/gtest.h>

#include <array>

#include "codec/frame/frame.hpp"
#include "format/safetensors.hpp"
#include "frames.hpp"

namespace glyd::codec {
namespace {

using test::Bytes;

struct Tensor {
  const char* dtype;
  Bytes bytes;
};

// The header of a safetensors file whose one-dimensional tensors have these dtypes and sizes.
Bytes header_of(const std::vector<std::pair<const char*, uint64_t>>& sizes) {
  std::vector<TensorEntry> entries;
  uint64_t end = 0;
  for (const auto& [name, bytes] : sizes) {
    const Dtype* const dtype = find_dtype(name);
    entries.push_back({"t" + std::to_string(entries.size()), dtype, {bytes * 8 / dtype->bits}, end, end + bytes});
    end += bytes;
  }
  const std::string text = write_safetensors_header({}, entries);
  return {text.begin(), text.end()};
}

Bytes file_of(const std::vector<Tensor>& tensors) {
  std::vector<std::pair<const char*, uint64_t>> sizes;
  for (const Tensor& t : tensors) sizes.emplace_back(t.dtype, t.bytes.size());
  Bytes file = header_of(sizes);
  for (const Tensor& t : tensors) file.insert(file.end(), t.bytes.begin(), t.bytes.end());
  return file;
}

// "0@128 2@1152": floats of so many bytes ("?" if not known) up to there.
std::string runs_of(const Bytes& first) {
  const TensorMap map = TensorMap::of(first);
  std::string text;
  for (const TensorMap::Run& run : map.runs()) {
    text += fmt::format("{}{}@{}", text.empty() ? "" : " ", run.float_bytes ? std::to_string(*run.float_bytes) : "?",
                        run.end);
  }
  return text;
}

TEST(TensorMap, LargeTensorsHaveRunsOfTheirOwn) {
  const uint64_t large = 1 << 20;
  EXPECT_EQ(runs_of(header_of({{"BF16", large}, {"BF16", large}, {"F32", large}, {"I64", large}, {"F16", large}})),
            "0@384 2@1048960 2@2097536 4@3146112 0@4194688 2@5243264");
  EXPECT_EQ(runs_of(header_of({{"C64", large}, {"F64", large}, {"F8_E4M3", large}})),
            "0@256 4@1048832 0@2097408 0@3145984");
}

TEST(TensorMap, SmallNeighboursOfOneKindShareARun) {
  EXPECT_EQ(runs_of(header_of({{"BF16", 1 << 20}, {"BF16", 8192}, {"BF16", 8192}, {"F16", 1 << 20}})),
            "0@384 2@1065344 2@2113920");
}

TEST(TensorMap, TinyTensorsBelongToTheRunBefore) {
  EXPECT_EQ(runs_of(header_of({{"U8", 100}, {"BF16", 8192}, {"I64", 4088}, {"F32", 0}, {"F32", 4096}})),
            "0@484 2@12764 4@16860");
}

TEST(TensorMap, KnowsNothingWithoutAValidHeader) {
  const Bytes good = header_of({{"BF16", 8192}});
  EXPECT_EQ(runs_of({}), "");
  EXPECT_EQ(runs_of(test::text(5000, 1)), "");
  EXPECT_EQ(runs_of({good.begin(), good.end() - 1}), "");  // cut within
  Bytes bad = good;
  bad[20] = 0;
  EXPECT_EQ(runs_of(bad), "");
  // No tensor ends past what a content can hold, though its header is whole: places are sums of these sizes.
  const auto huge = [](const char* size) {
    const std::string json = fmt::format(R"({{"t":{{"dtype":"U8","shape":[{0}],"data_offsets":[0,{0}]}}}})", size);
    Bytes bytes(8);
    store_le<uint64_t>(bytes.data(), json.size());
    bytes.insert(bytes.end(), json.begin(), json.end());
    return bytes;
  };
  EXPECT_EQ(runs_of(huge("281474976710655")), "0@281474976710744");
  EXPECT_EQ(runs_of(huge("281474976710656")), "");
  EXPECT_EQ(runs_of(huge("2305843009213693951")), "");
  EXPECT_FALSE(TensorMap::of(good).at(1 << 20).float_bytes) << "past its last tensor";
}

struct Block {
  BlockType type;
  size_t bytes;
  bool operator==(const Block&) const = default;
};

// The blocks of a frame of one unit.
std::vector<Block> blocks_of(const Bytes& frame) {
  std::vector<Block> blocks;
  const auto chunk = parse_chunk_header({frame.data() + kFrameHeaderBytes, kChunkHeaderBytes}, kMaxUnitLog);
  const uint8_t* at = frame.data() + kFrameHeaderBytes + kChunkHeaderBytes;
  for (const uint8_t* const end = at + chunk.value().stored_bytes; at < end;) {
    const auto size = [&](int k) { return size_t{at[k]} | size_t{at[k + 1]} << 8 | size_t{at[k + 2]} << 16; };
    blocks.push_back({static_cast<BlockType>(at[0]), size(1)});
    at += kBlockHeaderBytes + size(4);
  }
  return blocks;
}

void PrintTo(const Block& block, std::ostream* out) { *out << static_cast<int>(block.type) << ":" << block.bytes; }

TEST(TensorsOfAFrame, BlocksEndWhereTensorsDo) {
  const Bytes file = file_of({{"BF16", test::floats(300000, 2, 1)},
                              {"I64", test::records(100000, 2)},
                              {"F32", test::floats(90000, 4, 3)},
                              {"BF16", test::floats(70000, 2, 4)}});
  for (const Level level : {Level::kMax, Level::kUltra}) {
    WriterOptions options;
    options.level = level;
    const Bytes frame = test::write_frame(file, options).value();
    std::vector<Block> planes;
    for (const Block& b : blocks_of(frame))
      if (b.type == BlockType::kPlanes) planes.push_back(b);
    const std::vector<Block> wanted = {{BlockType::kPlanes, 1 << 18},
                                       {BlockType::kPlanes, 300000 - (1 << 18)},
                                       {BlockType::kPlanes, 90000},
                                       {BlockType::kPlanes, 70000}};
    EXPECT_EQ(planes, wanted);
    EXPECT_EQ(test::read_frame(frame).value(), file);
  }
}

// Noise of a narrow range of bf16 exponents, which statistics alone would call floats.
TEST(TensorsOfAFrame, OnlyFloatsAreTakenForFloats) {
  const Bytes values = test::floats(100000, 2, 5);
  WriterOptions options;
  const auto has_planes = [&](const char* dtype) {
    const std::vector<Block> blocks = blocks_of(test::write_frame(file_of({{dtype, values}}), options).value());
    return std::any_of(blocks.begin(), blocks.end(), [](const Block& b) { return b.type == BlockType::kPlanes; });
  };
  EXPECT_TRUE(has_planes("BF16"));
  EXPECT_FALSE(has_planes("U16"));
}

// Units begin within tensors and within values; small ones of odd sizes shift what follows in their run.
TEST(TensorsOfAFrame, TheSameBytesFromAnyPiecesAndThreads) {
  const Bytes file = file_of({{"U8", test::random_bytes(3, 1)},
                              {"BF16", test::floats(400001 / 2 * 2, 2, 1)},
                              {"U8", test::random_bytes(5, 2)},
                              {"BF16", test::floats(60000, 2, 2)},
                              {"F32", test::floats(200000, 4, 3)}});
  for (const Level level : {Level::kMax, Level::kUltra}) {
    WriterOptions options = test::small_units(level);
    options.content_bytes = file.size();
    options.threads = 1;
    const Bytes whole = test::write_frame(file, options).value();
    EXPECT_LT(whole.size(), file.size() * 85 / 100);
    for (const int threads : {1, 3}) {
      for (const size_t piece : {size_t{1000}, size_t{131072}, file.size()}) {
        Bytes frame;
        options.threads = threads;
        FrameWriter writer(options, [&](ByteSpan bytes) -> Result<void> {
          frame.insert(frame.end(), bytes.begin(), bytes.end());
          return {};
        });
        ASSERT_TRUE(writer.begin());
        for (size_t at = 0; at < file.size(); at += piece)
          ASSERT_TRUE(writer.write(ByteSpan(file).subspan(at, std::min(piece, file.size() - at))));
        ASSERT_TRUE(writer.finish());
        EXPECT_TRUE(frame == whole) << threads << " threads, pieces of " << piece;
      }
    }
    EXPECT_TRUE(test::write_frame(file, options).value() == whole);  // several threads, at once
    EXPECT_EQ(test::read_frame(whole, 2).value(), file);
  }
}

// 2,048 values of any exponent, each as often as the others, so that planes save nothing; but those that a block's
// sample reads have half of them, which promises a bit of sixteen.
Bytes sampled_as_floats(size_t width, uint32_t seed) {
  constexpr size_t kValues = 2048, kRun = 64, kStride = (kValues - 1 - kRun) / 15;
  Bytes content = test::random_bytes(kValues * width, seed);
  std::array<int, 256> left;
  left.fill(8);
  const auto place = [&](size_t value, uint32_t exponent) {
    --left[exponent];
    uint8_t* const high = content.data() + value * width + width - 2;
    high[0] = static_cast<uint8_t>((high[0] & 0x7f) | (exponent & 1) << 7);
    high[1] = static_cast<uint8_t>((high[1] & 0x80) | exponent >> 1);
  };
  std::vector<bool> sampled(kValues);
  for (size_t i = 0; i < 16 * kRun; ++i) {
    const size_t value = i / kRun * kStride + i % kRun;
    sampled[value] = true;
    place(value, static_cast<uint32_t>(i * 7 % 128));
  }
  uint32_t exponent = 0;
  for (size_t value = 0; value < kValues; ++value) {
    while (!sampled[value] && left[exponent] == 0) ++exponent;
    if (!sampled[value]) place(value, exponent);
  }
  return content;
}

// In the second unit no header makes up for it; kinds take turns, so that every run is a block.
TEST(TensorsOfAFrame, BlocksThatOnlySampleAsFloatsDoNotGrow) {
  std::vector<Tensor> tensors = {{"U8", test::random_bytes(1 << 17, 1)}};
  for (uint32_t i = 0; i < 40; ++i) {
    const bool half = i % 2 == 0;
    tensors.push_back({half ? "BF16" : "F32", sampled_as_floats(half ? 2 : 4, i)});
  }
  const Bytes file = file_of(tensors);
  WriterOptions options = test::small_units();
  const Bytes frame = test::write_frame(file, options).value();
  EXPECT_LE(frame.size(), frame_bound(file.size(), kMinUnitLog, 0));
  EXPECT_EQ(test::read_frame(frame).value(), file);
  // The unit encoder's own output, before a unit that gained nothing is stored.
  const TensorMap map = TensorMap::of(file);
  UnitEncoder encoder(Level::kMax);
  const ByteSpan unit = ByteSpan(file).subspan(1 << 17);
  Bytes payload(UnitEncoder::bound(unit.size()));
  const size_t stored = encoder.write(unit, payload.data(), map, 1 << 17);
  ASSERT_EQ(stored, 0u) << "if it gains, this test shows nothing";
  size_t blocks = 0;
  for (const uint8_t* at = payload.data(); blocks < 40; ++blocks) {
    const auto size = [&](int k) { return size_t{at[k]} | size_t{at[k + 1]} << 8 | size_t{at[k + 2]} << 16; };
    ASSERT_LE(size(4), size(1)) << "block " << blocks;
    at += kBlockHeaderBytes + size(4);
  }
}

}  // namespace
}  // namespace glyd::codec
