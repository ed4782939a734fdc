#include <algorithm>

#include "codec/entropy/fixed_log2.hpp"
#include "codec/kernels/basics.hpp"
#include "codec/lz/coded.hpp"

namespace glyd::codec {
namespace {

// Values' low parts one after the other, lowest bit first.
class BitSink {
 public:
  explicit BitSink(uint8_t* out) : out_(out) {}
  void put(uint32_t value, unsigned bits) {
    held_ |= uint64_t{value} << count_;
    count_ += bits;
    store64(out_, held_);
    out_ += count_ >> 3;
    held_ >>= count_ & ~7u;
    count_ &= 7;
  }
  uint8_t* finish() {
    if (count_ > 0) *out_++ = static_cast<uint8_t>(held_);
    return out_;
  }

 private:
  uint8_t* out_;
  uint64_t held_ = 0;
  unsigned count_ = 0;
};

uint8_t length_code(uint32_t value) {
  if (value < 16) return static_cast<uint8_t>(value);
  const int log = log2_floor(value);
  return static_cast<uint8_t>(16 + (log - 4) * 2 + ((value >> (log - 1)) & 1));
}

uint8_t offset_code(uint32_t v, int low_bits) {
  return static_cast<uint8_t>((log2_floor(v) - 3) << low_bits | (v & ((1u << low_bits) - 1)));
}

void make_room(auto& buffer, size_t count) {
  if (buffer.size() < count) buffer.resize(count);
}

struct Recent {
  uint32_t at[3] = {kFirstOffsets[0], kFirstOffsets[1], kFirstOffsets[2]};
  bool has(uint32_t offset) const { return offset == at[0] || offset == at[1] || offset == at[2]; }
  // The kind of `offset`, which moves to the front.
  uint32_t take(uint32_t offset) {
    if (offset == at[0]) return 0;
    const uint32_t kind = offset == at[1] ? 1 : offset == at[2] ? 2 : kTokenNew;
    if (kind != 1) at[2] = at[1];
    at[1] = at[0];
    at[0] = offset;
    return kind;
  }
};

// The number of low bits in the symbols that makes offsets cheapest: symbol entropy, extra bits and a guess at the
// table's size. All from one histogram, that of most low bits.
int choose_low_bits(std::span<const uint32_t> values) {
  if (values.size() < 256) return 0;
  Histogram counts{};
  for (const uint32_t v : values) ++counts[offset_code(v, kMaxLowBits)];
  const auto total = static_cast<uint32_t>(values.size());
  uint64_t best = 0;
  int choice = 0;
  for (int low_bits = kMaxLowBits; low_bits >= 0; --low_bits) {
    uint64_t price = 0;  // in 1/256 bit
    for (const uint32_t c : counts) {
      if (c != 0) price += uint64_t{c} * (fixed_log2(total) - fixed_log2(c)) + (3 << kLogFraction);
    }
    price += uint64_t{total} * static_cast<uint64_t>(kMaxLowBits - low_bits) << kLogFraction;
    if (low_bits == kMaxLowBits || price < best) best = price, choice = low_bits;
    if (low_bits == 0) break;
    // One low bit less: the highest of them goes.
    Histogram fewer{};
    const size_t kept = (size_t{1} << (low_bits - 1)) - 1;
    for (size_t s = 0; s < 256; ++s) fewer[(s >> low_bits) << (low_bits - 1) | (s & kept)] += counts[s];
    counts = fewer;
  }
  return choice;
}

}  // namespace

void CodedWriter::gather(ByteSpan raw, std::span<const Sequence> sequences) {
  CodedScratch& s = scratch_;
  make_room(s.tokens, sequences.size());
  make_room(s.literals, raw.size() + 32);
  make_room(s.offsets, sequences.size());
  make_room(s.runs, sequences.size());
  make_room(s.lengths, sequences.size());
  pieces_.clear();
  const uint8_t* from = raw.data();
  const uint8_t* const raw_end = from + raw.size();
  const uint8_t* piece_end = from + kPieceBytes;
  uint8_t* literal = s.literals.data();
  uint8_t* token = s.tokens.data();
  uint32_t *offset = s.offsets.data(), *run_value = s.runs.data(), *length = s.lengths.data();
  const auto end_piece = [&](size_t last) {
    pieces_.push_back({.sequences = last,
                       .bytes = static_cast<size_t>(from - raw.data()),
                       .tokens = static_cast<size_t>(token - s.tokens.data()),
                       .literals = static_cast<size_t>(literal - s.literals.data()),
                       .offsets = static_cast<size_t>(offset - s.offsets.data())});
    piece_end = from + kPieceBytes;
  };
  Recent recent;
  uint32_t skipped = 0;  // bytes that become literals of the next sequence
  for (size_t i = 0; i < sequences.size(); ++i) {
    const Sequence& q = sequences[i];
    // Found with a repeated offset of the block before: too short to be worth an offset.
    if (GLYD_UNLIKELY(q.length < kMinNewLength) && !recent.has(q.offset)) {
      skipped += q.literals + q.length;
      continue;
    }
    const uint32_t run = skipped + q.literals;
    skipped = 0;
    if (GLYD_LIKELY(raw_end - from >= static_cast<ptrdiff_t>(run) + 16)) {
      copy16(literal, from);
      for (uint32_t done = 16; GLYD_UNLIKELY(done < run); done += 16) copy16(literal + done, from + done);
    } else {
      std::memcpy(literal, from, run);
    }
    literal += run;
    from += run + q.length;
    const uint32_t kind = recent.take(q.offset);
    *offset = q.offset + kOffsetBias;
    offset += kind == kTokenNew;
    const uint32_t run_code = std::min(run, kTokenLiteralEscape);
    *run_value = run - run_code;
    run_value += run_code == kTokenLiteralEscape;
    const uint32_t excess = q.length - (kind == kTokenNew ? kMinNewLength : kMinRepeatLength);
    const uint32_t length_code = std::min(excess, kTokenLengthEscape);
    *length = excess - length_code;
    length += length_code == kTokenLengthEscape;
    *token++ = static_cast<uint8_t>(kind << 6 | length_code << 2 | run_code);
    if (GLYD_UNLIKELY(from >= piece_end) && raw_end - from >= static_cast<ptrdiff_t>(kPieceBytes / 2)) end_piece(i + 1);
  }
  std::memcpy(literal, from, static_cast<size_t>(raw_end - from));
  literal += raw_end - from;
  from = raw_end;
  end_piece(sequences.size());
  run_count_ = static_cast<size_t>(run_value - s.runs.data());
  length_count_ = static_cast<size_t>(length - s.lengths.data());
}

size_t CodedWriter::write(SymbolEncoder& symbols, uint8_t* out) {
  CodedScratch& s = scratch_;
  const std::span<const uint32_t> offset_values = offsets(), run_values{s.runs.data(), run_count_},
                                  length_values{s.lengths.data(), length_count_};
  const int low_bits = choose_low_bits(offset_values);
  const auto codes_of = [](std::span<const uint32_t> values, std::vector<uint8_t>& codes, auto&& code) {
    make_room(codes, values.size());
    for (size_t i = 0; i < values.size(); ++i) codes[i] = code(values[i]);
    return ByteSpan{codes.data(), values.size()};
  };
  const ByteSpan offset_codes =
      codes_of(offset_values, s.offset_codes, [=](uint32_t v) { return offset_code(v, low_bits); });
  const ByteSpan run_codes = codes_of(run_values, s.run_codes, length_code);
  const ByteSpan length_codes = codes_of(length_values, s.length_codes, length_code);

  uint8_t* to = out;
  *to++ = static_cast<uint8_t>(low_bits);
  to += symbols.write(StreamKind::kLiterals, literals(), to);
  to += symbols.write(StreamKind::kTokens, tokens(), to);
  to += symbols.write(StreamKind::kOffsets, offset_codes, to);
  to += symbols.write(StreamKind::kRuns, run_codes, to);
  to += symbols.write(StreamKind::kLengths, length_codes, to);

  // Length bits are last and end with the payload; the sizes of the others are sent.
  const BucketTable &offset_table = offset_buckets(low_bits), &length_table = length_buckets();
  const auto bytes_of = [](ByteSpan codes, const BucketTable& table) {
    size_t bits = 0;
    for (const uint8_t code : codes) bits += table.of[code].bits;
    return static_cast<uint32_t>((bits + 7) / 8);
  };
  to = write_varint(to, bytes_of(offset_codes, offset_table));
  to = write_varint(to, bytes_of(run_codes, length_table));
  const auto put_bits = [&](std::span<const uint32_t> values, ByteSpan codes, const BucketTable& table, int shift) {
    BitSink sink(to);
    for (size_t i = 0; i < values.size(); ++i) {
      const unsigned bits = table.of[codes[i]].bits;
      sink.put((values[i] >> shift) & ((1u << bits) - 1), bits);
    }
    to = sink.finish();
  };
  put_bits(offset_values, offset_codes, offset_table, low_bits);
  put_bits(run_values, run_codes, length_table, 0);
  put_bits(length_values, length_codes, length_table, 0);
  return static_cast<size_t>(to - out);
}

}  // namespace glyd::codec
