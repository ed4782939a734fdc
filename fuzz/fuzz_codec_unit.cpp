// fuzz_codec_unit.cpp - any bytes as a unit's payload: a status, never a crash, and always the reference's verdict and
// content, whatever the instruction set.
//
// The input is three bytes of size and the payload. No checksum stands before it, so that every rule of the blocks is
// reached; the mutator also makes payloads of its own, which the encoder writes.
#include <algorithm>
#include <vector>

#include "codec/unit.hpp"
#include "codec_reference.hpp"
#include "common/guarded_buffer.hpp"
#include "common/isas.hpp"

namespace {

using glyd::fuzz::check;
using glyd::fuzz::GuardedBuffer;

constexpr std::size_t kHeadBytes = 3;
constexpr std::size_t kMostContent = std::size_t{3} << 17;  // a block and a half

std::size_t content_size(const std::uint8_t* data) {
  return (data[0] | std::size_t{data[1]} << 8 | std::size_t{data[2]} << 16) % (kMostContent + 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size <= kHeadBytes) return 0;
  const std::size_t raw = content_size(data);
  if (raw == 0) return 0;
  GuardedBuffer payload(glyd::ByteSpan{data + kHeadBytes, size - kHeadBytes});
  payload.seal();
  const glyd::ByteSpan bytes = payload.bytes();
  bool expected = true;
  std::vector<std::uint8_t> content;
  try {
    content = glyd::reference::decode_blocks(bytes.data(), bytes.size(), raw);
  } catch (const glyd::reference::BadFrame&) {
    expected = false;
  }
  for (const glyd::Isa isa : glyd::fuzz::isas()) {
    const glyd::ScopedIsa scoped(isa);
    GuardedBuffer out(raw);
    glyd::codec::UnitDecoder decoder;
    const auto target = out.as<std::uint8_t>();
    const bool accepted = static_cast<bool>(decoder.read(bytes, bytes.data() + bytes.size(), target));
    check(accepted == expected);
    if (expected) check(std::equal(content.begin(), content.end(), target.begin(), target.end()));
  }
  return 0;
}

#ifdef GLYD_LIBFUZZER
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  if (size > kHeadBytes && seed % 16 != 0) {
    if (seed % 16 == 1) return LLVMFuzzerMutate(data, size, max_size);
    return kHeadBytes + LLVMFuzzerMutate(data + kHeadBytes, size - kHeadBytes, max_size - kHeadBytes);
  }
  // The bytes as content: what the encoder makes of them, and of their repetition.
  std::vector<std::uint8_t> content(data, data + size);
  const std::size_t wanted = 1 + (seed / 16) % 20000;
  if (content.empty()) content.push_back(static_cast<std::uint8_t>(seed));
  for (std::size_t i = content.size(); i < wanted; ++i) {
    const std::uint8_t change = i * 2654435761u % 97 == 0 ? static_cast<std::uint8_t>(i) : std::uint8_t{0};
    content.push_back(static_cast<std::uint8_t>(content[i / 2] ^ change));
  }
  // Kept: the tables of ultra take longer to make than an input to run.
  static glyd::codec::UnitEncoder encoders[3] = {glyd::codec::UnitEncoder(glyd::codec::Level::kDefault),
                                                 glyd::codec::UnitEncoder(glyd::codec::Level::kMax),
                                                 glyd::codec::UnitEncoder(glyd::codec::Level::kUltra)};
  glyd::codec::UnitEncoder& encoder = encoders[seed / 64 % 3];
  std::vector<std::uint8_t> payload(glyd::codec::UnitEncoder::bound(content.size()));
  const std::size_t stored = encoder.write(content, payload.data());
  if (stored == 0 || kHeadBytes + stored > max_size) return LLVMFuzzerMutate(data, size, max_size);
  for (int byte = 0; byte < 3; ++byte) data[byte] = static_cast<std::uint8_t>(content.size() >> (8 * byte));
  std::copy_n(payload.begin(), stored, data + kHeadBytes);
  return kHeadBytes + stored;
}
#endif
