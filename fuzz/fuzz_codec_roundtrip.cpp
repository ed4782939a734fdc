// fuzz_codec_roundtrip.cpp - contents out of any bytes: at every level the frame is the same from every instruction
// set, at any number of threads and from any pieces; is within its bound; and gives the content back, also by the
// reference.
#include <algorithm>
#include <vector>

#include "codec/frame/reader.hpp"
#include "codec/frame/writer.hpp"
#include "codec_reference.hpp"
#include "common/guarded_buffer.hpp"
#include "common/isas.hpp"
#include "format/safetensors.hpp"

namespace {

namespace codec = glyd::codec;
using glyd::fuzz::check;
using glyd::fuzz::GuardedBuffer;
using Bytes = std::vector<std::uint8_t>;

constexpr std::size_t kHeadBytes = 4;
// Sanitized and traced, the search for classes at `ultra` takes seconds: few inputs are long enough for it.
constexpr std::size_t kMostContent = 12000;
constexpr std::size_t kMostUltra = 1000;
constexpr std::size_t kMostClasses = 3000;
constexpr std::size_t kMostTensors = 9000;  // several runs of a safetensors file
constexpr std::size_t kMostLong = 300000;   // three units, never at `ultra`

// The fourth byte says how long the content may be, and with that whether it is written at `ultra` too.
bool seeks_classes(glyd::ByteSpan input) { return input[3] == 255; }
bool is_long(glyd::ByteSpan input) { return input[3] == 1; }
std::uint8_t kind_of(glyd::ByteSpan input) { return input[0] % 7; }
std::size_t most_at_ultra(glyd::ByteSpan input) {
  if (kind_of(input) == 6 && input[3] % 8 == 2) return kMostTensors;
  return seeks_classes(input) ? kMostClasses : input[3] % 4 == 0 ? kMostUltra : 0;
}

// A safetensors header whose tensors' sizes and dtypes are made of `text`, for `count` bytes of data: some of them past
// the content's end, most of them too small for a run of their own.
Bytes make_header(glyd::ByteSpan text, std::size_t count) {
  std::vector<glyd::TensorEntry> entries;
  std::uint64_t end = 0;
  for (std::size_t i = 0; end < count && entries.size() < 40; ++i) {
    constexpr const char* kNames[] = {"BF16", "F32", "U8", "F16", "I64", "C64"};
    const std::uint8_t byte = text[i % text.size()];
    const glyd::Dtype* const dtype = glyd::find_dtype(kNames[byte % 6]);
    const std::uint64_t values = std::uint64_t{byte} << (byte / 6 % 12), bytes = values * (dtype->bits / 8);
    entries.push_back({std::to_string(i), dtype, {values}, end, end + bytes});
    end += bytes;
  }
  const std::string header = glyd::write_safetensors_header({}, entries);
  return {header.begin(), header.end()};
}

// The first bytes say what is made of the rest: the bytes themselves, or more of the kind.
Bytes make_content(glyd::ByteSpan input) {
  const glyd::ByteSpan text = input.subspan(kHeadBytes);
  const std::uint8_t kind = kind_of(input);
  if (kind == 0 || text.empty()) return {text.begin(), text.end()};
  const std::size_t ultra = most_at_ultra(input);
  const std::size_t most = ultra != 0 ? ultra : is_long(input) ? kMostLong : kMostContent;
  const std::size_t count = (input[1] | std::size_t{input[2]} << 8) * 8 % most;
  Bytes content = kind == 6 ? make_header(text, count) : Bytes{};
  std::uint32_t noise = input[3];
  const auto next = [&noise] { return (noise = noise * 1664525 + 1013904223) >> 8; };
  while (content.size() < count) {
    const std::size_t at = content.size();
    const std::uint8_t byte = text[at % text.size()];
    if (kind == 1) {  // copies from all distances
      const std::size_t length = 1 + byte % 64, distance = 1 + next() % (at + 1);
      for (std::size_t i = 0; i < length; ++i)
        content.push_back(content.size() < distance ? byte : content[content.size() - distance]);
    } else if (kind == 2 || kind == 6) {  // bf16
      content.push_back(static_cast<std::uint8_t>(next()));
      content.push_back(static_cast<std::uint8_t>((next() & 0x80) | (0x3c + byte % 4)));
    } else if (kind == 3) {  // fp32
      for (int i = 0; i < 3; ++i) content.push_back(static_cast<std::uint8_t>(next()));
      content.push_back(static_cast<std::uint8_t>(0x3d + byte % 2));
    } else if (kind == 4) {  // a field that counts up
      for (const std::uint32_t word : {static_cast<std::uint32_t>(at / 8), static_cast<std::uint32_t>(byte)})
        for (int i = 0; i < 4; ++i) content.push_back(static_cast<std::uint8_t>(word >> (8 * i)));
    } else {  // runs
      content.insert(content.end(), 1 + next() % 400, byte);
    }
  }
  content.resize(count);
  return content;
}

Bytes write(glyd::ByteSpan content, codec::Level level, int threads, std::size_t piece) {
  Bytes frame;
  codec::WriterOptions options;
  options.level = level;
  options.unit_log = codec::kMinUnitLog;
  options.threads = threads;
  options.content_bytes = content.size();
  codec::FrameWriter writer(options, [&](glyd::ByteSpan bytes) -> glyd::Result<void> {
    frame.insert(frame.end(), bytes.begin(), bytes.end());
    return {};
  });
  check(static_cast<bool>(writer.begin()));
  for (glyd::ByteSpan rest = content; piece != 0 && !rest.empty(); rest = rest.subspan(std::min(piece, rest.size())))
    check(static_cast<bool>(writer.write(rest.first(std::min(piece, rest.size())))));
  check(static_cast<bool>(writer.finish(piece == 0 ? content : glyd::ByteSpan{})));
  return frame;
}

void expect_round_trip(glyd::ByteSpan content, codec::Level level) {
  Bytes first;
  for (const glyd::Isa isa : glyd::fuzz::isas()) {
    const glyd::ScopedIsa scoped(isa);
    for (const int threads : {1, 2}) {
      const Bytes frame = write(content, level, threads, threads == 1 ? 0 : 7777);
      if (first.empty()) first = frame;
      check(frame == first);
    }
    GuardedBuffer stored{glyd::ByteSpan(first)}, out(content.size());
    stored.seal();
    const codec::MemorySource source(stored.bytes());
    const auto reader = codec::FrameReader::open(source);
    check(static_cast<bool>(reader) && reader.value().content_bytes() == content.size());
    const auto target = out.as<std::uint8_t>();
    check(static_cast<bool>(reader.value().read_all(target, {.threads = 2, .progress = nullptr})));
    check(std::equal(content.begin(), content.end(), target.begin()));
  }
  check(first.size() <= codec::frame_bound(content.size(), codec::kMinUnitLog, 0));
  check(glyd::reference::decode_frames(first) == Bytes(content.begin(), content.end()));  // a throw is a finding too
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < kHeadBytes) return 0;
  GuardedBuffer content{glyd::ByteSpan(make_content({data, size}))};
  content.seal();
  expect_round_trip(content.bytes(), codec::Level::kDefault);
  expect_round_trip(content.bytes(), codec::Level::kMax);
  if (content.bytes().size() <= most_at_ultra({data, size})) expect_round_trip(content.bytes(), codec::Level::kUltra);
  return 0;
}
