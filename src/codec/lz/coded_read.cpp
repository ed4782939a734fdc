#include "codec/lz/coded.hpp"

namespace glyd::codec {
namespace {

constexpr size_t kSlack = 64;  // the loops load ahead

}  // namespace

Result<void> read_coded(ByteSpan payload, const uint8_t* readable, SymbolDecoder& symbols, CodedScratch& s,
                        const uint8_t* window, uint8_t* out, size_t raw_bytes, uint8_t* writable_end) {
  const Kernels& kernel = kernels();
  const uint8_t* at = payload.data();
  const uint8_t* const end = at + payload.size();
  if (at == end) return corrupt("coded block: empty");
  const int low_bits = *at++;
  if (low_bits > kMaxLowBits) return corrupt("coded block: {} low bits", low_bits);
  const auto room = [](auto& buffer, size_t count) {
    if (buffer.size() < count + kSlack) buffer.resize(count + kSlack);
  };
  room(s.literals, raw_bytes);
  GLYD_TRY(const size_t literals, symbols.read(StreamKind::kLiterals, at, end, readable, s.literals.data(), raw_bytes));
  const size_t most_tokens = raw_bytes / kMinRepeatLength;
  room(s.tokens, most_tokens);
  GLYD_TRY(const size_t tokens, symbols.read(StreamKind::kTokens, at, end, readable, s.tokens.data(), most_tokens));
  size_t fresh = 0, escapes = 0;
  kernel.count_tokens(s.tokens.data(), tokens, &fresh, &escapes);
  room(s.offset_codes, fresh);
  room(s.length_codes, escapes);
  room(s.offsets, fresh);
  room(s.lengths, escapes);
  GLYD_TRY(const size_t offsets, symbols.read(StreamKind::kOffsets, at, end, readable, s.offset_codes.data(), fresh));
  GLYD_TRY(const size_t lengths, symbols.read(StreamKind::kLengths, at, end, readable, s.length_codes.data(), escapes));
  if (offsets != fresh || lengths != escapes)
    return corrupt("coded block: {} offsets and {} lengths for {} and {} tokens", offsets, lengths, fresh, escapes);

  uint32_t offset_bytes = 0;
  if (!read_varint(at, end, offset_bytes) || offset_bytes > static_cast<size_t>(end - at))
    return corrupt("coded block: cut short");
  const BucketTable& offset_table = offset_buckets(low_bits);
  const BucketTable& length_table = length_buckets();
  if (!kernel.expand_bits(s.offset_codes.data(), fresh, offset_table.base, offset_table.bits, low_bits, at,
                          offset_bytes, readable, s.offsets.data())) {
    return corrupt("coded block: offset bits");
  }
  at += offset_bytes;
  if (!kernel.expand_bits(s.length_codes.data(), escapes, length_table.base, length_table.bits, 0, at,
                          static_cast<size_t>(end - at), readable, s.lengths.data())) {
    return corrupt("coded block: length bits");
  }
  const CodedBlock block{.tokens = s.tokens.data(),
                         .tokens_end = s.tokens.data() + tokens,
                         .literals = s.literals.data(),
                         .literals_end = s.literals.data() + literals,
                         .offsets = s.offsets.data(),
                         .lengths = s.lengths.data(),
                         .out = out,
                         .out_end = out + raw_bytes,
                         .window_begin = window,
                         .writable_end = writable_end};
  if (!kernel.execute_coded(block)) return corrupt("coded block: a sequence leaves the block or the window");
  return {};
}

}  // namespace glyd::codec
