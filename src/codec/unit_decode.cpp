#include <algorithm>

#include "codec/lz/byte_block.hpp"
#include "codec/lz/coded.hpp"
#include "codec/planes/floats.hpp"
#include "codec/unit.hpp"

namespace glyd::codec {
namespace {

// Copies piece by piece, with calls before and after each: what they do with it finds it in the nearest cache.
template <class Before, class After>
void copy_pieces(ByteSpan from, uint8_t* to, const Before& before, const After& after) {
  constexpr size_t kPiece = 8 << 10;
  for (size_t at = 0; at < from.size(); at += kPiece) {
    const size_t bytes = std::min(kPiece, from.size() - at);
    before(bytes);
    std::memcpy(to + at, from.data() + at, bytes);
    after(to + at, bytes);
  }
}

}  // namespace

struct UnitDecoder::State {
  SymbolDecoder symbols;
  CodedScratch coded;
  FloatsScratch floats;
  HashState payload_hash, content_hash;
  ByteSpan unhashed;  // of the payload

  // The next bytes of the payload, which are about to be read.
  void hash_payload(size_t bytes) {
    kernels().hash_add(payload_hash, unhashed.data(), bytes);
    unhashed = unhashed.subspan(bytes);
  }
  Result<void> read(ByteSpan payload, const uint8_t* readable, MutableByteSpan out);
};

UnitDecoder::UnitDecoder() : state_(std::make_unique<State>()) {}
UnitDecoder::~UnitDecoder() = default;
UnitDecoder::UnitDecoder(UnitDecoder&&) noexcept = default;

uint64_t UnitDecoder::payload_hash() {
  state_->hash_payload(state_->unhashed.size());
  return kernels().hash_value(state_->payload_hash);
}
uint64_t UnitDecoder::content_hash() const { return kernels().hash_value(state_->content_hash); }

void UnitDecoder::read_stored(ByteSpan payload, MutableByteSpan out) {
  kernels().hash_start(state_->payload_hash);
  state_->unhashed = payload;
  copy_pieces(
      payload, out.data(), [&](size_t bytes) { state_->hash_payload(bytes); }, [](const uint8_t*, size_t) {});
  state_->content_hash = state_->payload_hash;
}

Result<void> UnitDecoder::read(ByteSpan payload, const uint8_t* readable, MutableByteSpan out) {
  kernels().hash_start(state_->payload_hash);
  kernels().hash_start(state_->content_hash);
  state_->unhashed = payload;
  return state_->read(payload, readable, out);
}

Result<void> UnitDecoder::State::read(ByteSpan payload, const uint8_t* readable, MutableByteSpan out) {
  for (bool& has : symbols.has_table) has = false;
  const Kernels& kernel = kernels();
  const uint8_t* at = payload.data();
  const uint8_t* const end = at + payload.size();
  uint8_t* to = out.data();
  uint8_t* const to_end = to + out.size();
  while (at != end) {
    if (static_cast<size_t>(end - at) < kBlockHeaderBytes) return corrupt("block header: cut short");
    const auto type = static_cast<BlockType>(at[0]);
    const size_t raw = at[1] | size_t{at[2]} << 8 | size_t{at[3]} << 16;
    const size_t stored = at[4] | size_t{at[5]} << 8 | size_t{at[6]} << 16;
    at += kBlockHeaderBytes;
    if (raw == 0 || raw > kMaxBlockBytes || raw > static_cast<size_t>(to_end - to))
      return corrupt("block: {} bytes do not fit the unit", raw);
    if (stored > static_cast<size_t>(end - at)) return corrupt("block: cut short");
    const ByteSpan body{at, stored};
    if (type != BlockType::kRaw) hash_payload(kBlockHeaderBytes + stored);
    switch (type) {
      case BlockType::kRaw:
        if (stored != raw) return corrupt("raw block: {} bytes for {}", stored, raw);
        hash_payload(kBlockHeaderBytes);
        copy_pieces(
            body, to, [&](size_t bytes) { hash_payload(bytes); },
            [&](const uint8_t* piece, size_t bytes) { kernel.hash_add(content_hash, piece, bytes); });
        at += stored;
        to += raw;
        continue;
      case BlockType::kFill:
        if (stored != 1) return corrupt("fill block: {} bytes", stored);
        std::memset(to, *at, raw);
        break;
      case BlockType::kBytes:
        GLYD_CHECK(read_bytes(body, readable, out.data(), to, raw, to_end));
        break;
      case BlockType::kCoded:
        GLYD_CHECK(read_coded(body, readable, symbols, coded, out.data(), to, raw, to_end));
        break;
      case BlockType::kPlanes:
        GLYD_CHECK(read_floats(body, readable, symbols, floats, {to, raw}));
        break;
      default:
        return corrupt("block: type {}", static_cast<int>(type));
    }
    kernel.hash_add(content_hash, to, raw);
    at += stored;
    to += raw;
  }
  if (to != to_end) return corrupt("unit: {} bytes missing", to_end - to);
  return {};
}

}  // namespace glyd::codec
