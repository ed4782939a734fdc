#include <algorithm>
#include <optional>

#include "codec/entropy/fixed_log2.hpp"
#include "codec/lz/byte_block.hpp"
#include "codec/lz/coded.hpp"
#include "codec/lz/match_finder.hpp"
#include "codec/lz/split.hpp"
#include "codec/planes/floats.hpp"
#include "codec/unit.hpp"

namespace glyd::codec {
namespace {

// Codes adapt to their block; blocks of levels with codes are cut where that pays.
constexpr size_t kLargestBlock = 256 << 10;
constexpr size_t block_bytes(Level level) { return level == Level::kDefault ? 128 << 10 : kLargestBlock; }
// What blocks are cut at: a finer cut is found more slowly.
constexpr size_t piece_bytes(Level level) { return level == Level::kUltra ? 32 << 10 : 64 << 10; }

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

bool all_equal(ByteSpan bytes) {
  return bytes[0] == bytes[bytes.size() / 2] &&
         (bytes.size() == 1 || std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

}  // namespace

struct UnitEncoder::State {
  explicit State(Level l) : level(l), finder(make_finder(l)), coded(piece_bytes(l)) {}
  Level level;
  std::unique_ptr<MatchFinder> finder;
  std::span<const Sequence> sequences;
  CodedWriter coded;
  BytesWriter bytes;
  FloatsWriter floats;
  SymbolEncoder symbols;
  HashState hash;

  // unit[begin, end) as one or more blocks; gives their bytes.
  size_t write_blocks(ByteSpan unit, size_t begin, size_t end, std::optional<int> float_bytes, uint8_t* out) {
    const ByteSpan raw = unit.subspan(begin, end - begin);
    uint8_t* const payload = out + kBlockHeaderBytes;
    if (all_equal(raw)) {
      payload[0] = raw[0];
      return finish(BlockType::kFill, raw.size(), 1, out);
    }
    if (level == Level::kDefault) {
      sequences = finder->find(begin, end);
      const size_t stored = bytes.write(raw, sequences, payload);
      return stored < raw.size() - raw.size() / 64 ? finish(BlockType::kBytes, raw.size(), stored, out)
                                                   : write_raw(raw, out);
    }
    const SymbolEncoder before = symbols;
    if (const size_t stored = floats.write(raw, float_bytes, symbols, payload); stored != 0) {
      if (is_worth(stored, raw)) return finish(BlockType::kPlanes, raw.size(), stored, out);
      symbols = before;  // the sample looked like floats, the block does not
    }
    sequences = finder->find(begin, end);
    if (is_noise(raw)) return write_raw(raw, out);
    uint8_t* to = out;
    size_t at = 0;
    coded.gather(raw, sequences);
    const Split split = split_block(coded);
    for (const Part& part : split.parts) {
      const ByteSpan content = raw.subspan(at, part.bytes);
      if (split.parts.size() > 1) coded.gather(content, sequences.subspan(part.first, part.last - part.first));
      to += write_coded(content, split.counted ? &split.counts : nullptr, to);
      at += part.bytes;
    }
    return static_cast<size_t>(to - out);
  }

  // What was gathered of `raw`.
  size_t write_coded(ByteSpan raw, const StreamCounts* counted, uint8_t* out) {
    const SymbolEncoder before = symbols;
    const size_t stored = coded.write(symbols, out + kBlockHeaderBytes, counted);
    if (is_worth(stored, raw)) return finish(BlockType::kCoded, raw.size(), stored, out);
    symbols = before;
    return write_raw(raw, out);
  }

  // Whether a payload saves enough for its decoding.
  static bool is_worth(size_t stored, ByteSpan raw) { return stored < raw.size() - raw.size() / 256; }

  static size_t write_raw(ByteSpan raw, uint8_t* out) {
    std::memcpy(out + kBlockHeaderBytes, raw.data(), raw.size());
    return finish(BlockType::kRaw, raw.size(), raw.size(), out);
  }

  static size_t finish(BlockType type, size_t raw_bytes, size_t stored, uint8_t* out) {
    put_header(out, type, raw_bytes, stored);
    return kBlockHeaderBytes + stored;
  }

  // Hardly a match, and a sample of the bytes is spread evenly: codes would save nothing.
  bool is_noise(ByteSpan raw) const {
    constexpr size_t kSample = 4096;
    if (raw.size() < 4 * kSample || sequences.size() > raw.size() / 256) return false;
    size_t matched = 0;
    for (const Sequence& q : sequences) matched += q.length;
    if (matched > raw.size() / 64) return false;
    uint32_t counts[256] = {};
    for (size_t i = 0; i < kSample; ++i) ++counts[raw[i * (raw.size() / kSample)]];
    uint64_t bits = 0;
    for (const uint32_t c : counts) bits += c != 0 ? c * (fixed_log2(kSample) - fixed_log2(c)) : 0;
    return bits >= (kSample << kLogFraction) * 79 / 10;  // 4,096 draws from 256 equal symbols show 7.95 bits
  }
};

UnitEncoder::UnitEncoder(Level level) : state_(std::make_unique<State>(level)) {}
UnitEncoder::~UnitEncoder() = default;
UnitEncoder::UnitEncoder(UnitEncoder&&) noexcept = default;

// No block is larger than its content but by its header. Blocks are cut at runs of tensors, at steps, and between
// pieces of at least 32 KiB, which are more than kLeastRun; the last one may be tried as codes before it is known to be
// noise.
size_t UnitEncoder::bound(size_t raw_bytes) {
  const size_t blocks = raw_bytes / TensorMap::kLeastRun + raw_bytes / block_bytes(Level::kDefault) + 10;
  return raw_bytes + blocks * kBlockHeaderBytes + CodedWriter::bound(kLargestBlock);
}

uint64_t UnitEncoder::content_hash() const { return kernels().hash_value(state_->hash); }

size_t UnitEncoder::write(ByteSpan raw, uint8_t* out, const TensorMap& tensors, uint64_t position) {
  state_->symbols = {};
  state_->symbols.seek_classes = state_->level == Level::kUltra;
  kernels().hash_start(state_->hash);
  state_->finder->start(raw);
  uint8_t* to = out;
  const size_t step = block_bytes(state_->level);
  for (size_t begin = 0, end = 0; begin < raw.size(); begin = end) {
    const TensorMap::Run run = tensors.at(position + begin);
    end = begin + std::min<uint64_t>({step, raw.size() - begin, run.end - (position + begin)});
    kernels().hash_add(state_->hash, raw.data() + begin, end - begin);
    to += state_->write_blocks(raw, begin, end, run.float_bytes, to);
  }
  const size_t stored = static_cast<size_t>(to - out);
  return stored < raw.size() ? stored : 0;
}

}  // namespace glyd::codec
