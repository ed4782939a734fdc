#include "codec/lz/byte_block.hpp"
#include "codec/lz/coded.hpp"
#include "codec/planes/floats.hpp"
#include "codec/unit.hpp"

namespace glyd::codec {

struct UnitDecoder::State {
  SymbolDecoder symbols;
  CodedScratch coded;
  FloatsScratch floats;
  HashState hash;
};

UnitDecoder::UnitDecoder() : state_(std::make_unique<State>()) {}
UnitDecoder::~UnitDecoder() = default;
UnitDecoder::UnitDecoder(UnitDecoder&&) noexcept = default;

uint64_t UnitDecoder::content_hash() const { return kernels().hash_value(state_->hash); }

Result<void> UnitDecoder::read(ByteSpan payload, const uint8_t* readable, MutableByteSpan out) {
  for (bool& has : state_->symbols.has_table) has = false;
  const Kernels& kernel = kernels();
  kernel.hash_start(state_->hash);
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
    switch (type) {
      case BlockType::kRaw:
        if (stored != raw) return corrupt("raw block: {} bytes for {}", stored, raw);
        std::memcpy(to, at, raw);
        break;
      case BlockType::kFill:
        if (stored != 1) return corrupt("fill block: {} bytes", stored);
        std::memset(to, *at, raw);
        break;
      case BlockType::kBytes:
        GLYD_CHECK(read_bytes(body, readable, out.data(), to, raw, to_end));
        break;
      case BlockType::kCoded:
        GLYD_CHECK(read_coded(body, readable, state_->symbols, state_->coded, out.data(), to, raw, to_end));
        break;
      case BlockType::kPlanes:
        GLYD_CHECK(read_floats(body, readable, state_->symbols, state_->floats, {to, raw}));
        break;
      default:
        return corrupt("block: type {}", static_cast<int>(type));
    }
    kernel.hash_add(state_->hash, to, raw);
    at += stored;
    to += raw;
  }
  if (to != to_end) return corrupt("unit: {} bytes missing", to_end - to);
  return {};
}

}  // namespace glyd::codec
