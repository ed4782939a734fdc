// reference_small.cpp - layout `small`: prefix-coded pairs of exponents. Section numbers are those of
// docs/spec/weights.md.
#include <bit>

#include "reference_pack.hpp"

namespace glyd_reference {
namespace {

constexpr unsigned kMaxCodeBits = 11;

// 5.2: the alphabet and the canonical codes of its pairs.
class PairCodes {
 public:
  PairCodes(Bytes table, unsigned symbols) {
    for (unsigned i = 0; i < 16; ++i) {
      alphabet_[i] = table[i];
      if (i >= symbols) require(table[i] == 0, "small: alphabet has symbols behind its last");
      if (i > 0 && i < symbols) require(table[i] > table[i - 1], "small: alphabet does not ascend");
    }
    unsigned kraft = 0;  // in units of 2^-11
    for (unsigned pair = 0; pair < 256; ++pair) {
      const unsigned a = pair / 16, b = pair % 16, byte = table[16 + 8 * a + b / 2];
      lengths_[pair] = static_cast<std::uint8_t>(b % 2 == 0 ? byte & 15 : byte >> 4);
      require(lengths_[pair] <= kMaxCodeBits, "small: code longer than 11 bits");
      if (lengths_[pair] == 0) continue;
      require(a < symbols && b < symbols, "small: code for a pair outside the alphabet");
      kraft += 1u << (kMaxCodeBits - lengths_[pair]);
    }
    require(kraft > 0, "small: no pair has a code");
    for (unsigned i = 0; i < symbols; ++i) require(in_a_coded_pair(i), "small: a symbol in no pair with a code");
    require(kraft <= 1u << kMaxCodeBits, "small: code lengths break Kraft's inequality");
    assign_codes();
  }

  struct Code {
    unsigned length, bits, pair;
  };
  // In the order of (length, pair number).
  const std::vector<Code>& codes() const { return codes_; }
  unsigned zero_pair() const { return codes_.front().pair; }
  unsigned first_exponent(unsigned pair) const { return alphabet_[pair / 16]; }
  unsigned second_exponent(unsigned pair) const { return alphabet_[pair % 16]; }

 private:
  bool in_a_coded_pair(unsigned symbol) const {
    for (unsigned other = 0; other < 16; ++other) {
      if (lengths_[16 * symbol + other] != 0 || lengths_[16 * other + symbol] != 0) return true;
    }
    return false;
  }

  void assign_codes() {
    for (unsigned length = 1; length <= kMaxCodeBits; ++length) {
      for (unsigned pair = 0; pair < 256; ++pair) {
        if (lengths_[pair] != length) continue;
        const unsigned bits = codes_.empty() ? 0 : (codes_.back().bits + 1) << (length - codes_.back().length);
        codes_.push_back({length, bits, pair});
      }
    }
  }

  std::array<std::uint8_t, 16> alphabet_{};
  std::array<std::uint8_t, 256> lengths_{};
  std::vector<Code> codes_;
};

// 5.3: one region. `up` reads from its first bit upwards, otherwise from its last bit downwards.
class RegionReader {
 public:
  RegionReader(Bytes bytes, std::uint64_t begin, std::uint64_t end, bool up)
      : bytes_(bytes), begin_(begin), end_(end), up_(up) {}

  PairCodes::Code read(const PairCodes& codes) {
    unsigned bits = 0, length = 0;
    for (const auto& code : codes.codes()) {  // lengths ascend
      while (length < code.length) {
        require(used_ < end_ - begin_, "small: a code runs past its region");
        bits = bits << 1 | unsigned{bit_at(bytes_, up_ ? begin_ + used_ : end_ - 1 - used_)};
        ++used_;
        ++length;
      }
      if (bits == code.bits) return code;
    }
    throw Corrupt("small: bits that begin no code");
  }
  std::uint64_t used() const { return used_; }

 private:
  Bytes bytes_;
  std::uint64_t begin_, end_, used_ = 0;
  bool up_;
};

class SmallDecoder {
 public:
  SmallDecoder(const Header& header, Bytes pack, std::vector<std::uint16_t>& out)
      : header_(header),
        grid_(grid_of(header)),
        planes_(array_of(header, pack, 0)),
        codes_(array_of(header, pack, 1)),
        offsets_(array_of(header, pack, 2)),
        pair_codes_(array_of(header, pack, 3), header.symbols),
        out_(out) {}

  void run() {
    const unsigned zero = pair_codes_.zero_pair();
    const bool fusible = pair_codes_.first_exponent(zero) != 255 && pair_codes_.second_exponent(zero) != 255;
    require(fusible == header_.fusible, "small: flag `fusible` does not agree with the zero pair");
    const std::uint64_t strips = grid_.strips(), records = ceil_div(grid_.steps(), 16);
    const std::uint64_t record_table = round_up(8 * (strips + 1), 16);
    require(all_zero(offsets_.subspan(8 * (strips + 1), record_table - 8 * (strips + 1))),
            "small: padding between the offsets is not zero");
    std::uint64_t word = 0;
    for (std::uint64_t strip = 0; strip < strips; ++strip) {
      const std::uint64_t strip_word = word;
      require(load(offsets_, 8 * strip, 8) == word, "small: a strip's offset is not its place");
      for (std::uint64_t record = 0; record < records; ++record) {
        const std::uint32_t entry = load32(offsets_, record_table + 4 * (strip * records + record));
        require((entry & 0xffffff) == word - strip_word, "small: a record's offset is not its place");
        word = read_record(strip, 16 * record, word, entry >> 24);
      }
    }
    require(load(offsets_, 8 * strips, 8) == word, "small: the last offset is not the end");
    require(4 * word == codes_.size(), "small: the codes have bytes behind their last record");
    for (const auto& code : pair_codes_.codes())
      require(written_[code.pair], "small: a pair with a code is never written");
  }

 private:
  using Pairs =
      std::array<std::uint16_t, 2048>;  // pair numbers by a patch's bits 0-10; then overwritten by patches' exponents

  static unsigned key(unsigned lane, unsigned pair, unsigned stream, unsigned step) {
    return lane | pair << 5 | stream << 7 | step << 8;
  }

  // Returns the word behind the record.
  std::uint64_t read_record(std::uint64_t strip, std::uint64_t first_step, std::uint64_t word, unsigned patch_count) {
    const auto steps = static_cast<unsigned>(std::min<std::uint64_t>(16, grid_.steps() - first_step));
    const unsigned streams = steps > 8 ? 2 : 1;
    require(word + 4 * streams <= codes_.size() / 4, "small: a record begins past the codes");
    const Bytes lengths = codes_.subspan(4 * word, 16 * streams);
    word += 4 * streams;
    std::uint64_t region_bits[32], bits = 0;
    for (unsigned i = 0; i < 16 * streams; ++i) {
      region_bits[i] = header_.min_bits * std::uint64_t{stream_steps(steps, i / 16)} / 8 + lengths[i];
      bits += region_bits[i];
    }
    const std::uint64_t text_words = ceil_div(bits, 32);
    require(text_words + patch_count <= codes_.size() / 4 - word, "small: a record ends past the codes");
    const Bytes text = codes_.subspan(4 * word, 4 * text_words);
    for (std::uint64_t bit = bits; bit < 32 * text_words; ++bit)
      require(!bit_at(text, bit), "small: padding behind the codes is not zero");

    Pairs pairs{};
    std::uint64_t begin = 0;
    for (unsigned i = 0; i < 16 * streams; ++i) {
      const std::uint64_t used =
          read_region(text, begin, begin + region_bits[i], i, stream_steps(steps, i / 16), pairs);
      require(lengths[i] == 0 || used == region_bits[i], "small: a length byte is not the least that suffices");
      begin += region_bits[i];
    }
    emit_record(strip, first_step, steps, read_patches(codes_.subspan(4 * (word + text_words), 4 * patch_count), steps),
                pairs);
    return word + text_words + patch_count;
  }

  static unsigned stream_steps(unsigned steps, unsigned stream) {
    return stream == 0 ? std::min(steps, 8u) : steps - 8;
  }

  // Returns the bits that the codes of the two lanes take.
  std::uint64_t read_region(Bytes text, std::uint64_t begin, std::uint64_t end, unsigned number, unsigned steps,
                            Pairs& pairs) {
    std::uint64_t used[2];
    for (unsigned side = 0; side < 2; ++side) {
      RegionReader reader(text, begin, end, side == 0);
      const unsigned lane = 2 * (number % 16) + side;
      for (unsigned step = 0; step < steps; ++step) {
        unsigned step_bits = 0;
        for (unsigned pair = 0; pair < 4; ++pair) {
          const auto code = reader.read(pair_codes_);
          step_bits += code.length;
          pairs[key(lane, pair, number / 16, step)] = static_cast<std::uint16_t>(code.pair);
          written_[code.pair] = true;
        }
        require(step_bits <= 32, "small: the codes of a lane's step have more than 32 bits");
      }
      used[side] = reader.used();
    }
    require(used[0] + used[1] <= end - begin, "small: the codes of two lanes overlap");
    for (std::uint64_t bit = begin + used[0]; bit < end - used[1]; ++bit) {
      require(!bit_at(text, bit), "small: bits between two lanes' codes are not zero");
    }
    return used[0] + used[1];
  }

  // 5.4: the patches by their bits 0-10; -1 where there is none.
  std::vector<int> read_patches(Bytes bytes, unsigned steps) const {
    std::vector<int> patches(2048, -1);
    unsigned next = 0;
    for (std::uint64_t at = 0; at < bytes.size(); at += 4) {
      const std::uint32_t patch = load32(bytes, at);
      const unsigned where = patch & 2047;
      require((patch & 0xf800) == 0, "small: patch has unused bits set");
      require(where >= next, "small: patches do not ascend");
      require(8 * (where >> 7 & 1) + (where >> 8) < steps, "small: patch of a step that is not there");
      next = where + 1;
      patches[where] = static_cast<int>(patch >> 16);
    }
    return patches;
  }

  void emit_record(std::uint64_t strip, std::uint64_t first_step, unsigned steps, const std::vector<int>& patches,
                   const Pairs& pairs) {
    for (unsigned step = 0; step < steps; ++step) {
      for (unsigned lane = 0; lane < 32; ++lane) {
        const std::uint64_t plane_at = ((strip * grid_.steps() + first_step + step) * 32 + lane) * 8;
        for (unsigned pair = 0; pair < 4; ++pair) {
          const unsigned where = key(lane, pair, step / 8, step % 8);
          // 5.1: the pair's two signs and mantissas.
          std::uint32_t word = load32(planes_, plane_at + pair / 2 * 4);
          if (pair % 2 == 1) word = std::rotr(word, 8);
          emit_pair(strip, first_step + step, lane, pair, word & 0x807f807f, pairs[where], patches[where]);
        }
      }
    }
  }

  void emit_pair(std::uint64_t strip, std::uint64_t step, unsigned lane, unsigned pair, std::uint32_t plane,
                 unsigned coded, int patch) {
    const auto first = grid_.place(strip, step, lane, 2 * pair), second = grid_.place(strip, step, lane, 2 * pair + 1);
    const unsigned zero = pair_codes_.zero_pair(), zero_second = pair_codes_.second_exponent(zero);
    unsigned exponents[2] = {pair_codes_.first_exponent(coded), pair_codes_.second_exponent(coded)};
    if (patch >= 0) {
      require(!first.padding, "small: patch of a padding pair");
      require(coded == zero, "small: a patched pair is not coded as the zero pair");
      exponents[0] = static_cast<unsigned>(patch) & 255;
      exponents[1] = static_cast<unsigned>(patch) >> 8;
      require(exponents[0] != pair_codes_.first_exponent(zero) || exponents[1] != zero_second,
              "small: patch gives the zero pair");
    }
    if (first.padding) {  // 5.5; the second weight lies in padding with the first
      require(coded == zero, "small: padding pair is not the zero pair");
      require(plane == 0, "small: padding is not zero");
      return;
    }
    if (second.padding) {
      require(exponents[1] == zero_second, "small: padding exponent is not the zero pair's");
      require((plane & 0xffff0000) == 0, "small: padding is not zero");
    } else {
      out_[second.index] = join(plane >> 31, exponents[1], plane >> 16 & 127);
    }
    out_[first.index] = join(plane >> 15 & 1, exponents[0], plane & 127);
  }

  const Header& header_;
  Grid grid_;
  Bytes planes_, codes_, offsets_;
  PairCodes pair_codes_;
  std::vector<std::uint16_t>& out_;
  std::array<bool, 256> written_{};
};

}  // namespace

void decode_small(const Header& header, Bytes pack, std::vector<std::uint16_t>& out) {
  SmallDecoder(header, pack, out).run();
}

}  // namespace glyd_reference
