#include <algorithm>

#include "codec/lz/bytes.hpp"
#include "codec/lz/coded.hpp"
#include "codec/lz/match_finder.hpp"
#include "codec/planes/floats.hpp"
#include "codec/unit.hpp"

namespace glyd::codec {
namespace {

constexpr size_t kBlockBytes = 128 << 10;

std::unique_ptr<MatchFinder> make_finder(Level level) {
  switch (level) {
    case Level::kDefault:
      return make_single_finder();
    case Level::kMax:
      return make_double_finder();
    case Level::kUltra:
      break;
  }
  return make_optimal_finder();
}

void put_header(uint8_t* out, BlockType type, size_t raw_bytes, size_t stored_bytes) {
  out[0] = static_cast<uint8_t>(type);
  for (size_t k = 0; k < 3; ++k) {
    out[1 + k] = static_cast<uint8_t>(raw_bytes >> (8 * k));
    out[4 + k] = static_cast<uint8_t>(stored_bytes >> (8 * k));
  }
}

}  // namespace

struct UnitEncoder::State {
  explicit State(Level l) : level(l), finder(make_finder(l)) {}
  Level level;
  std::unique_ptr<MatchFinder> finder;
  Sequences sequences;
  CodedWriter coded;
  BytesWriter bytes;
  FloatsWriter floats;
  SymbolEncoder symbols;

  // One block at unit[begin, end); gives its bytes, header and all.
  size_t write_block(ByteSpan unit, size_t begin, size_t end, uint8_t* out) {
    const ByteSpan raw = unit.subspan(begin, end - begin);
    uint8_t* const payload = out + kBlockHeaderBytes;
    const auto finish = [&](BlockType type, size_t stored) {
      put_header(out, type, raw.size(), stored);
      return kBlockHeaderBytes + stored;
    };
    if (std::all_of(raw.begin(), raw.begin() + static_cast<ptrdiff_t>(std::min<size_t>(raw.size(), 16)),
                    [&](uint8_t b) { return b == raw[0]; }) &&
        (raw.size() == 1 || std::memcmp(raw.data(), raw.data() + 1, raw.size() - 1) == 0)) {
      payload[0] = raw[0];
      return finish(BlockType::kFill, 1);
    }
    if (level != Level::kDefault) {
      if (const size_t stored = floats.write(raw, symbols, payload); stored != 0)
        return finish(BlockType::kPlanes, stored);
    }
    finder->find(begin, end, sequences);
    if (level == Level::kDefault) {
      if (const size_t stored = bytes.write(raw, sequences, payload); stored < raw.size() - raw.size() / 64)
        return finish(BlockType::kBytes, stored);
    } else {
      const SymbolEncoder before = symbols;
      if (const size_t stored = coded.write(raw, sequences, symbols, payload); stored < raw.size() - raw.size() / 256)
        return finish(BlockType::kCoded, stored);
      symbols = before;
    }
    std::memcpy(payload, raw.data(), raw.size());
    return finish(BlockType::kRaw, raw.size());
  }
};

UnitEncoder::UnitEncoder(Level level) : state_(std::make_unique<State>(level)) {}
UnitEncoder::~UnitEncoder() = default;
UnitEncoder::UnitEncoder(UnitEncoder&&) noexcept = default;

size_t UnitEncoder::bound(size_t raw_bytes) {
  return raw_bytes + (raw_bytes / kBlockBytes + 1) * kBlockHeaderBytes + CodedWriter::bound(kBlockBytes);
}

size_t UnitEncoder::write(ByteSpan raw, uint8_t* out) {
  state_->symbols = {};
  state_->finder->start(raw);
  uint8_t* to = out;
  for (size_t begin = 0; begin < raw.size(); begin += kBlockBytes)
    to += state_->write_block(raw, begin, std::min(begin + kBlockBytes, raw.size()), to);
  const size_t stored = static_cast<size_t>(to - out);
  return stored < raw.size() ? stored : 0;
}

}  // namespace glyd::codec
