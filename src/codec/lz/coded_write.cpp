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

struct PieceStart {
  const uint8_t *raw, *tokens, *literals;
  const uint32_t* offsets;
};

// What a token says of a value below 2^31, and what is left for a stream of its own if it escapes. By borrows: a branch
// on it would be guessed wrong every third time.
struct Escaped {
  uint32_t code, rest, escapes;
};
GLYD_KERNEL_INLINE Escaped escape(uint32_t value, uint32_t most) {
  const uint32_t over = value - most, below = over >> 31;
  const uint32_t code = most + (over & (0 - below));
  return {code, value - code, 1 - below};
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

struct OffsetForm {
  int low_bits;
  Histogram counts;  // of the symbols with so many low bits
};

// The number of low bits in the symbols that makes offsets cheapest: symbol entropy, extra bits and a guess at the
// table's size. All from one histogram, that of most low bits.
OffsetForm choose_low_bits(uint32_t total, Histogram counts) {
  const uint32_t whole = total == 0 ? 0 : fixed_log2(total);
  uint64_t best = 0;
  OffsetForm choice;
  for (int low_bits = kMaxLowBits; low_bits >= 0; --low_bits) {
    uint64_t price = 0;  // in 1/256 bit
    for (const uint32_t c : counts) {
      if (c != 0) price += uint64_t{c} * (whole - fixed_log2(c)) + (3 << kLogFraction);
    }
    price += uint64_t{total} * static_cast<uint64_t>(kMaxLowBits - low_bits) << kLogFraction;
    // Few offsets are not worth the question.
    if (low_bits == kMaxLowBits || price < best || (total < 256 && low_bits == 0))
      best = price, choice = {low_bits, counts};
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
  const size_t piece_bytes = piece_bytes_;
  const uint8_t* piece_end = from + piece_bytes;
  uint8_t* literal = s.literals.data();
  uint8_t* token = s.tokens.data();
  uint32_t *offset = s.offsets.data(), *run_value = s.runs.data(), *length = s.lengths.data();
  // By value: what a closure refers to lies in memory, which stores of bytes might change.
  const auto end_piece = [this, start = PieceStart{raw.data(), s.tokens.data(), s.literals.data(), s.offsets.data()}](
                             size_t last, const uint8_t* f, const uint8_t* t, const uint8_t* l, const uint32_t* o) {
    pieces_.push_back({.sequences = last,
                       .bytes = static_cast<size_t>(f - start.raw),
                       .tokens = static_cast<size_t>(t - start.tokens),
                       .literals = static_cast<size_t>(l - start.literals),
                       .offsets = static_cast<size_t>(o - start.offsets)});
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
    const Escaped runs = escape(run, kTokenLiteralEscape);
    *run_value = runs.rest;
    run_value += runs.escapes;
    const Escaped lengths =
        escape(q.length - (kind == kTokenNew ? kMinNewLength : kMinRepeatLength), kTokenLengthEscape);
    *length = lengths.rest;
    length += lengths.escapes;
    *token++ = static_cast<uint8_t>(kind << 6 | lengths.code << 2 | runs.code);
    if (GLYD_UNLIKELY(from >= piece_end) && raw_end - from >= static_cast<ptrdiff_t>(piece_bytes / 2)) {
      end_piece(i + 1, from, token, literal, offset);
      piece_end = from + piece_bytes;
    }
  }
  std::memcpy(literal, from, static_cast<size_t>(raw_end - from));
  literal += raw_end - from;
  from = raw_end;
  end_piece(sequences.size(), from, token, literal, offset);
  kernels().offset_codes(s.offsets.data(), pieces_.back().offsets, s.offset_codes.data());
  run_count_ = static_cast<size_t>(run_value - s.runs.data());
  length_count_ = static_cast<size_t>(length - s.lengths.data());
}

size_t CodedWriter::write(SymbolEncoder& symbols, uint8_t* out, const StreamCounts* counted) {
  CodedScratch& s = scratch_;
  const std::span<const uint32_t> offset_values{s.offsets.data(), pieces_.back().offsets},
      run_values{s.runs.data(), run_count_}, length_values{s.lengths.data(), length_count_};
  Histogram own;
  if (counted == nullptr) kernels().histogram(s.offset_codes.data(), offset_values.size(), own.data());
  const OffsetForm form =
      choose_low_bits(static_cast<uint32_t>(offset_values.size()), counted != nullptr ? counted->offsets : own);
  const int low_bits = form.low_bits;
  // Low bits that stay out of the symbols.
  const uint32_t kept = (1u << low_bits) - 1;
  uint8_t* const offset_symbols = s.offset_codes.data();
  for (size_t i = 0; low_bits < kMaxLowBits && i < offset_values.size(); ++i) {
    const uint32_t code = offset_symbols[i];
    offset_symbols[i] = static_cast<uint8_t>(code >> kMaxLowBits << low_bits | (code & kept));
  }
  const auto codes_of = [](std::span<const uint32_t> values, std::vector<uint8_t>& codes) {
    make_room(codes, values.size());
    uint8_t* const to = codes.data();
    for (size_t i = 0; i < values.size(); ++i) to[i] = length_code(values[i]);
    return ByteSpan{to, values.size()};
  };
  const ByteSpan run_codes = codes_of(run_values, s.run_codes);
  const ByteSpan length_codes = codes_of(length_values, s.length_codes);

  uint8_t* to = out;
  *to++ = static_cast<uint8_t>(low_bits);
  to += symbols.write(StreamKind::kLiterals, literals(), to, counted != nullptr ? &counted->literals : nullptr);
  to += symbols.write(StreamKind::kTokens, tokens(), to, counted != nullptr ? &counted->tokens : nullptr);
  to += symbols.write(StreamKind::kOffsets, offset_codes(), to, &form.counts);
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
