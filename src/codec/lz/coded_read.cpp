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
  // A token asks for one of each at most; whether there are as many as all ask for, the execution sees.
  const auto read_codes = [&](StreamKind kind, std::vector<uint8_t>& codes, std::vector<uint32_t>& values) {
    room(codes, tokens);
    room(values, tokens);
    return symbols.read(kind, at, end, readable, codes.data(), tokens);
  };
  GLYD_TRY(const size_t offsets, read_codes(StreamKind::kOffsets, s.offset_codes, s.offsets));
  GLYD_TRY(const size_t runs, read_codes(StreamKind::kRuns, s.run_codes, s.runs));
  GLYD_TRY(const size_t lengths, read_codes(StreamKind::kLengths, s.length_codes, s.lengths));

  uint32_t offset_bytes = 0, run_bytes = 0;
  if (!read_varint(at, end, offset_bytes) || !read_varint(at, end, run_bytes) ||
      offset_bytes > static_cast<size_t>(end - at) || run_bytes > static_cast<size_t>(end - at) - offset_bytes)
    return corrupt("coded block: cut short");
  const BucketTable &offset_table = offset_buckets(low_bits), &length_table = length_buckets();
  const auto expand = [&](const std::vector<uint8_t>& codes, size_t count, const BucketTable& table, int shift,
                          size_t bytes, std::vector<uint32_t>& values) {
    const uint8_t* const bits = at;
    at += bytes;
    return kernel.expand_bits(codes.data(), count, table.of, shift, bits, bytes, readable, values.data());
  };
  if (!expand(s.offset_codes, offsets, offset_table, low_bits, offset_bytes, s.offsets))
    return corrupt("coded block: offset bits");
  if (!expand(s.run_codes, runs, length_table, 0, run_bytes, s.runs) ||
      !expand(s.length_codes, lengths, length_table, 0, static_cast<size_t>(end - at), s.lengths))
    return corrupt("coded block: length bits");
  const CodedBlock block{.tokens = s.tokens.data(),
                         .tokens_end = s.tokens.data() + tokens,
                         .literals = s.literals.data(),
                         .literals_end = s.literals.data() + literals,
                         .offsets = s.offsets.data(),
                         .offsets_end = s.offsets.data() + offsets,
                         .runs = s.runs.data(),
                         .runs_end = s.runs.data() + runs,
                         .lengths = s.lengths.data(),
                         .lengths_end = s.lengths.data() + lengths,
                         .out = out,
                         .out_end = out + raw_bytes,
                         .window_begin = window,
                         .writable_end = writable_end};
  if (!kernel.execute_coded(block))
    return corrupt("coded block: a sequence leaves the block or the window, or has no value");
  return {};
}

}  // namespace glyd::codec
