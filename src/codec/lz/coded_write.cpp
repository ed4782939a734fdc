#include <algorithm>

#include "codec/entropy/fixed_log2.hpp"
#include "codec/kernels/basics.hpp"
#include "codec/lz/coded.hpp"

namespace glyd::codec {
namespace {

uint8_t length_code(uint32_t value) {
  if (value < 16) return static_cast<uint8_t>(value);
  const int log = log2_floor(value);
  return static_cast<uint8_t>(16 + (log - 4) * 2 + ((value >> (log - 1)) & 1));
}

void make_room(auto& buffer, size_t count) {
  if (buffer.size() < count) buffer.resize(count);
}

struct Recent {
  uint32_t at[3] = {kFirstOffsets[0], kFirstOffsets[1], kFirstOffsets[2]};
  bool has(uint32_t offset) const { return offset == at[0] || offset == at[1] || offset == at[2]; }
  // The kind of `offset`, which moves to the front; without branches, for repeats are as good as random.
  uint32_t take(uint32_t offset) {
    const uint32_t kind = offset == at[0] ? 0 : offset == at[1] ? 1 : offset == at[2] ? 2 : kTokenNew;
    at[2] = kind >= 2 ? at[1] : at[2];
    at[1] = kind >= 1 ? at[0] : at[1];
    at[0] = offset;
    return kind;
  }
};

// The number of low bits in the symbols that makes offsets cheapest: symbol entropy, extra bits and a guess at the
// table's size. All from one histogram, that of most low bits.
int choose_low_bits(ByteSpan codes) {
  if (codes.size() < 256) return 0;
  Histogram counts;
  kernels().histogram(codes.data(), codes.size(), counts.data());
  const auto total = static_cast<uint32_t>(codes.size());
  const uint32_t whole = fixed_log2(total);
  uint64_t best = 0;
  int choice = 0;
  for (int low_bits = kMaxLowBits; low_bits >= 0; --low_bits) {
    uint64_t price = 0;  // in 1/256 bit
    for (const uint32_t c : counts) {
      if (c != 0) price += uint64_t{c} * (whole - fixed_log2(c)) + (3 << kLogFraction);
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
  make_room(s.offset_codes, sequences.size());
  make_room(s.runs, sequences.size());
  make_room(s.lengths, sequences.size());
  pieces_.clear();
  const uint8_t* from = raw.data();
  const uint8_t* const raw_end = from + raw.size();
  const uint8_t* piece_end = from + piece_bytes_;
  uint8_t* literal = s.literals.data();
  uint8_t* token = s.tokens.data();
  uint32_t *offset = s.offsets.data(), *run_value = s.runs.data(), *length = s.lengths.data();
  const auto end_piece = [&](size_t last) {
    pieces_.push_back({.sequences = last,
                       .bytes = static_cast<size_t>(from - raw.data()),
                       .tokens = static_cast<size_t>(token - s.tokens.data()),
                       .literals = static_cast<size_t>(literal - s.literals.data()),
                       .offsets = static_cast<size_t>(offset - s.offsets.data())});
    piece_end = from + piece_bytes_;
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
    if (GLYD_UNLIKELY(from >= piece_end) && raw_end - from >= static_cast<ptrdiff_t>(piece_bytes_ / 2))
      end_piece(i + 1);
  }
  std::memcpy(literal, from, static_cast<size_t>(raw_end - from));
  literal += raw_end - from;
  from = raw_end;
  end_piece(sequences.size());
  kernels().offset_codes(s.offsets.data(), pieces_.back().offsets, s.offset_codes.data());
  run_count_ = static_cast<size_t>(run_value - s.runs.data());
  length_count_ = static_cast<size_t>(length - s.lengths.data());
}

size_t CodedWriter::write(SymbolEncoder& symbols, uint8_t* out) {
  CodedScratch& s = scratch_;
  const std::span<const uint32_t> offset_values{s.offsets.data(), pieces_.back().offsets},
      run_values{s.runs.data(), run_count_}, length_values{s.lengths.data(), length_count_};
  const int low_bits = choose_low_bits(offset_codes());
  // Low bits that stay out of the symbols.
  const uint32_t kept = (1u << low_bits) - 1;
  for (size_t i = 0; i < offset_values.size(); ++i) {
    const uint32_t code = s.offset_codes[i];
    s.offset_codes[i] = static_cast<uint8_t>(code >> kMaxLowBits << low_bits | (code & kept));
  }
  const auto codes_of = [](std::span<const uint32_t> values, std::vector<uint8_t>& codes) {
    make_room(codes, values.size());
    for (size_t i = 0; i < values.size(); ++i) codes[i] = length_code(values[i]);
    return ByteSpan{codes.data(), values.size()};
  };
  const ByteSpan run_codes = codes_of(run_values, s.run_codes);
  const ByteSpan length_codes = codes_of(length_values, s.length_codes);

  uint8_t* to = out;
  *to++ = static_cast<uint8_t>(low_bits);
  to += symbols.write(StreamKind::kLiterals, literals(), to);
  to += symbols.write(StreamKind::kTokens, tokens(), to);
  to += symbols.write(StreamKind::kOffsets, offset_codes(), to);
  to += symbols.write(StreamKind::kRuns, run_codes, to);
  to += symbols.write(StreamKind::kLengths, length_codes, to);

  // Length bits are last and end with the payload; the sizes of the others are sent.
  const BucketTable &offset_table = offset_buckets(low_bits), &length_table = length_buckets();
  const auto bytes_of = [](ByteSpan codes, const BucketTable& table) {
    size_t bits = 0;
    for (const uint8_t code : codes) bits += table.of[code].bits;
    return static_cast<uint32_t>((bits + 7) / 8);
  };
  to = write_varint(to, bytes_of(offset_codes(), offset_table));
  to = write_varint(to, bytes_of(run_codes, length_table));
  const Kernels& kernel = kernels();
  const auto put_bits = [&](std::span<const uint32_t> values, ByteSpan codes, const BucketTable& table, int shift) {
    to = kernel.pack_bits(values.data(), codes.data(), values.size(), table.of, shift, to);
  };
  put_bits(offset_values, offset_codes(), offset_table, low_bits);
  put_bits(run_values, run_codes, length_table, 0);
  put_bits(length_values, length_codes, length_table, 0);
  return static_cast<size_t>(to - out);
}

}  // namespace glyd::codec
