// fuzz_codec_frame.cpp - any bytes as frames: whole, as a stream of odd pieces, from the reference, by ranges and
// salvaged; the verdicts agree and so does the content.
//
// The mutator puts positions, checks, index and footer right after most mutations, so that the code behind them is
// reached.
#include <algorithm>
#include <optional>
#include <vector>

#include "codec/frame/reader.hpp"
#include "codec/frame/salvage.hpp"
#include "codec/frame/stream.hpp"
#include "codec_reference.hpp"
#include "common/guarded_buffer.hpp"

namespace {

namespace codec = glyd::codec;
using glyd::fuzz::check;
using glyd::fuzz::GuardedBuffer;
using Bytes = std::vector<std::uint8_t>;

constexpr std::size_t kMostInput = std::size_t{1} << 16;
constexpr std::uint64_t kMostContent = std::uint64_t{4} << 20;

std::optional<Bytes> from_reference(glyd::ByteSpan frame) {
  try {
    return glyd::reference::decode_frames(Bytes(frame.begin(), frame.end()));
  } catch (const glyd::reference::BadFrame&) {
    return std::nullopt;
  }
}

// What a stream gives before its end or its error, and whether it was the end.
bool stream(glyd::ByteSpan frame, int threads, Bytes& content) {
  std::size_t at = 0, piece = 1;
  codec::StreamDecoder decoder(
      [&](glyd::MutableByteSpan out) -> glyd::Result<std::size_t> {
        const std::size_t count = std::min({out.size(), frame.size() - at, piece});
        std::copy_n(frame.data() + at, count, out.data());
        at += count;
        piece = piece * 7 % 4093 + 1;
        return count;
      },
      {.threads = threads, .memory_limit = std::uint64_t{64} << 20, .progress = nullptr});
  Bytes part(5000);
  for (;;) {
    const auto got = decoder.read(part);
    if (!got) return false;
    if (got.value() == 0) return true;
    content.insert(content.end(), part.begin(), part.begin() + static_cast<std::ptrdiff_t>(got.value()));
    if (content.size() > kMostContent) return false;
  }
}

// Salvage gives pieces in ascending places; of a whole frame all of it.
void salvage(glyd::ByteSpan frame, const Bytes* whole) {
  std::uint64_t end = 0, given = 0;
  const auto report = codec::salvage(frame, [&](std::uint64_t position, glyd::ByteSpan content) -> glyd::Result<void> {
    check(position >= end);
    end = position + content.size();
    given += content.size();
    if (whole != nullptr)
      check(end <= whole->size() &&
            std::equal(content.begin(), content.end(), whole->begin() + static_cast<std::ptrdiff_t>(position)));
    return {};
  });
  check(static_cast<bool>(report) && report.value().recovered_bytes == given && report.value().content_end >= end);
}

void read_parts(const codec::FrameReader& reader, const Bytes& whole) {
  std::uint64_t dice = whole.size() * 2654435761u + 12345;
  for (int i = 0; i < 3; ++i) {
    dice = dice * 6364136223846793005u + 1442695040888963407u;
    const std::uint64_t begin = (dice >> 20) % (whole.size() + 1);
    const std::uint64_t count = std::min<std::uint64_t>((dice >> 40) % 3000, whole.size() - begin);
    GuardedBuffer out(count);
    const auto target = out.as<std::uint8_t>();
    check(static_cast<bool>(reader.read(begin, target, {})));
    check(std::equal(target.begin(), target.end(), whole.begin() + static_cast<std::ptrdiff_t>(begin)));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > kMostInput) return 0;
  GuardedBuffer copy(glyd::ByteSpan{data, size});
  copy.seal();
  const glyd::ByteSpan frame = copy.bytes();
  const codec::MemorySource source(frame);
  const auto reader = codec::FrameReader::open(source);
  if (reader && reader.value().content_bytes() > kMostContent) return 0;  // bombs cost time, and nothing else
  Bytes streamed;
  const bool ended = stream(frame, 1 + static_cast<int>(size % 2), streamed);
  if (streamed.size() > kMostContent) return 0;
  const std::optional<Bytes> expected = from_reference(frame);
  check(ended == expected.has_value());
  if (expected) check(streamed == *expected);
  check(reader || !expected);
  if (reader) {
    GuardedBuffer out(reader.value().content_bytes());
    const auto target = out.as<std::uint8_t>();
    const bool good = static_cast<bool>(reader.value().read_all(target, {.threads = 2, .progress = nullptr}));
    check(good == expected.has_value());
    check(static_cast<bool>(reader.value().verify({})) == good);
    if (good) check(std::equal(target.begin(), target.end(), expected->begin(), expected->end()));
    if (good) read_parts(reader.value(), *expected);
  }
  salvage(frame, expected ? &*expected : nullptr);
  return 0;
}

#ifdef GLYD_LIBFUZZER
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

struct Chunk {
  codec::ChunkHeader header;
  Bytes payload;
};

// The chunks that can still be told apart, broken checks and all.
std::vector<Chunk> take_apart(glyd::ByteSpan frame) {
  std::vector<Chunk> chunks;
  std::size_t at = codec::kFrameHeaderBytes;
  while (at + codec::kChunkHeaderBytes <= frame.size() && !codec::is_footer(frame.subspan(at))) {
    const std::uint8_t* p = frame.data() + at;
    Chunk chunk;
    chunk.header.kind = static_cast<codec::ChunkKind>(p[3]);
    chunk.header.raw_bytes = glyd::load_le<std::uint32_t>(p + 12);
    at += codec::kChunkHeaderBytes;
    const auto stored = std::min<std::size_t>(glyd::load_le<std::uint32_t>(p + 16), frame.size() - at);
    chunk.payload.assign(frame.begin() + static_cast<std::ptrdiff_t>(at),
                         frame.begin() + static_cast<std::ptrdiff_t>(at + stored));
    at += stored;
    if (chunk.header.kind != codec::ChunkKind::kIndex) chunks.push_back(std::move(chunk));
  }
  return chunks;
}

Bytes put_together(std::vector<Chunk>& chunks, bool size_known, int unit_log) {
  Bytes frame(codec::kFrameHeaderBytes);
  codec::WholeCheck whole;
  std::vector<codec::IndexEntry> entries;
  std::uint64_t position = 0;
  for (Chunk& chunk : chunks) {
    codec::ChunkHeader& h = chunk.header;
    h.position = position;
    h.stored_bytes = static_cast<std::uint32_t>(chunk.payload.size());
    h.payload_check = codec::check32(chunk.payload);
    if (h.kind == codec::ChunkKind::kStored) {
      h.raw_bytes = h.stored_bytes;
      h.content_check = h.payload_check;
    }
    if (h.kind == codec::ChunkKind::kBlocks) {
      h.raw_bytes %= 1u << 18;
      Bytes content(h.raw_bytes);
      codec::UnitDecoder decoder;
      if (decoder.read(chunk.payload, chunk.payload.data() + chunk.payload.size(), content))
        h.content_check = codec::check32(content);
    }
    std::uint8_t bytes[codec::kChunkHeaderBytes];
    codec::write_chunk_header(h, bytes);
    frame.insert(frame.end(), bytes, bytes + sizeof bytes);
    frame.insert(frame.end(), chunk.payload.begin(), chunk.payload.end());
    entries.push_back({h.raw_bytes, h.stored_bytes});
    if (h.is_unit()) whole.add(h.raw_bytes, h.content_check);
    position += h.raw_bytes;
  }
  codec::FrameFooter footer{.whole_check = whole.value()};
  if (entries.size() > 1) {
    const Bytes index = codec::write_index(frame.size(), position, entries);
    frame.insert(frame.end(), index.begin(), index.end());
    footer.index_bytes = static_cast<std::uint32_t>(index.size());
  }
  std::uint8_t bytes[codec::kFrameFooterBytes];
  codec::write_footer(footer, bytes);
  frame.insert(frame.end(), bytes, bytes + sizeof bytes);
  codec::write_frame_header(
      {.unit_log = unit_log, .level = 1, .content_bytes = size_known ? position : codec::kUnknownSize}, frame.data());
  return frame;
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  if (seed % 4 == 0 || size < codec::kFrameHeaderBytes) return LLVMFuzzerMutate(data, size, max_size);
  std::vector<Chunk> chunks = take_apart({data, size});
  if (chunks.empty() || seed % 32 == 1)
    chunks.push_back({{.kind = codec::ChunkKind::kStored}, Bytes(data, data + std::min<std::size_t>(size, 100))});
  if (seed % 32 == 2) chunks.push_back(chunks[seed / 32 % chunks.size()]);
  Chunk& chosen = chunks[seed / 4 % chunks.size()];
  if (seed % 32 == 3) chosen.header.kind = static_cast<codec::ChunkKind>(seed / 64 % 2);
  if (seed % 32 == 5) chosen.header.raw_bytes = seed / 64 % 5000;
  const std::size_t before = chosen.payload.size();
  chosen.payload.resize(before + 32);
  chosen.payload.resize(LLVMFuzzerMutate(chosen.payload.data(), before, before + 32));
  Bytes frame = put_together(chunks, seed % 2 == 0, codec::kMinUnitLog + 1);
  if (seed % 32 == 6) frame.insert(frame.end(), frame.begin(), frame.end());
  if (seed % 32 == 7) frame[seed / 32 % frame.size()] ^= 1;
  if (frame.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::copy(frame.begin(), frame.end(), data);
  return frame.size();
}
#endif
