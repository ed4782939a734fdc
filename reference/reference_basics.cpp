#include "reference_basics.hpp"

#include <array>
#include <bit>
#include <set>

namespace glyd_reference {

std::uint32_t crc32c(Bytes bytes) {
  std::uint32_t crc = 0xffffffff;
  for (const std::uint8_t byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0u);
  }
  return ~crc;
}

namespace {

// The first 32 bits of the fraction of a prime's root, by integer arithmetic: floor(root(prime * 2^(32 * degree))) mod
// 2^32.
std::uint32_t root_fraction(std::uint32_t prime, int degree) {
  std::uint64_t root = 0;  // below 2^36: the roots of primes up to 409 are below 21
  for (int bit = 36; bit-- > 0;) {
    const std::uint64_t tried = root | std::uint64_t{1} << bit;
    unsigned __int128 power = static_cast<unsigned __int128>(tried) * tried;
    if (degree == 3) power *= tried;
    if (power <= static_cast<unsigned __int128>(prime) << (32 * degree)) root = tried;
  }
  return static_cast<std::uint32_t>(root);
}

struct ShaConstants {
  std::array<std::uint32_t, 64> round;   // cube roots of the first 64 primes
  std::array<std::uint32_t, 8> initial;  // square roots of the first 8
};

ShaConstants make_sha_constants() {
  ShaConstants constants{};
  unsigned found = 0;
  for (std::uint32_t number = 2; found < 64; ++number) {
    bool prime = true;
    for (std::uint32_t divisor = 2; divisor * divisor <= number; ++divisor) prime = prime && number % divisor != 0;
    if (!prime) continue;
    constants.round[found] = root_fraction(number, 3);
    if (found < 8) constants.initial[found] = root_fraction(number, 2);
    ++found;
  }
  return constants;
}

const ShaConstants kSha = make_sha_constants();

void sha256_block(std::array<std::uint32_t, 8>& state, const std::uint8_t* block) {
  std::array<std::uint32_t, 64> w{};
  for (unsigned i = 0; i < 64; ++i) {
    if (i < 16) {
      for (unsigned k = 0; k < 4; ++k) w[i] = w[i] << 8 | block[4 * i + k];
    } else {
      const std::uint32_t s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ w[i - 15] >> 3;
      const std::uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ w[i - 2] >> 10;
      w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (unsigned i = 0; i < 64; ++i) {
    const std::uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const std::uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + kSha.round[i] + w[i];
    const std::uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const std::uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  const std::array<std::uint32_t, 8> added{a, b, c, d, e, f, g, h};
  for (unsigned i = 0; i < 8; ++i) state[i] += added[i];
}

}  // namespace

std::string sha256_hex(Bytes bytes) {
  auto state = kSha.initial;
  const std::uint64_t whole = bytes.size() / 64 * 64;
  for (std::uint64_t at = 0; at < whole; at += 64) sha256_block(state, bytes.data() + at);
  std::vector<std::uint8_t> tail(bytes.begin() + static_cast<std::ptrdiff_t>(whole), bytes.end());
  tail.push_back(0x80);
  while (tail.size() % 64 != 56) tail.push_back(0);
  for (int shift = 56; shift >= 0; shift -= 8)
    tail.push_back(static_cast<std::uint8_t>(8 * std::uint64_t{bytes.size()} >> shift));
  for (std::size_t at = 0; at < tail.size(); at += 64) sha256_block(state, tail.data() + at);
  std::string hex;
  for (const std::uint32_t word : state) {
    for (int shift = 28; shift >= 0; shift -= 4) hex += "0123456789abcdef"[word >> shift & 15];
  }
  return hex;
}

bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const unsigned more = lead < 0x80 ? 0 : lead >> 5 == 6 ? 1 : lead >> 4 == 14 ? 2 : lead >> 3 == 30 ? 3 : 4;
    if (more == 4 || text.size() - i <= more) return false;
    std::uint32_t point = more == 0 ? lead : lead & (63u >> more);
    for (unsigned k = 1; k <= more; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      if (next >> 6 != 2) return false;
      point = point << 6 | (next & 63u);
    }
    constexpr std::array<std::uint32_t, 4> kLeast{0, 0x80, 0x800, 0x10000};
    if (point < kLeast[more] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) return false;
    i += more + 1;
  }
  return true;
}

const Json* Json::find(std::string_view key) const {
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (keys[i] == key) return &items[i];
  }
  return nullptr;
}

namespace {

constexpr int kMaxDepth = 64;

class JsonReader {
 public:
  JsonReader(std::string_view text, const std::string& what, bool python_numbers)
      : text_(text), what_(what), python_numbers_(python_numbers) {}

  Json document() {
    Json value = read_value(0);
    skip_space();
    if (at_ != text_.size()) fail("text behind the value");
    return value;
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw Corrupt(what_ + ": JSON: " + why + " at byte " + std::to_string(at_));
  }

  void skip_space() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool accept(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool accept_word(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  Json read_value(int depth) {
    if (depth > kMaxDepth) fail("nested too deeply");
    skip_space();
    Json value;
    value.at = at_;
    if (accept('{')) {
      read_object(value, depth);
    } else if (accept('[')) {
      value.kind = Json::Kind::kArray;
      skip_space();
      if (accept(']')) return value;
      do value.items.push_back(read_value(depth + 1));
      while (next_item(']'));
    } else if (peek() == '"') {
      value.kind = Json::Kind::kString;
      value.text = read_string();
    } else if (accept_word("true") || accept_word("false")) {
      value.kind = Json::Kind::kBool;
      value.boolean = text_[value.at] == 't';
    } else if (!accept_word("null")) {
      read_number(value);
    }
    return value;
  }

  bool next_item(char close) {
    skip_space();
    if (accept(',')) return true;
    if (!accept(close)) fail("expected , or the end of a list");
    return false;
  }

  void read_object(Json& value, int depth) {
    value.kind = Json::Kind::kObject;
    skip_space();
    if (accept('}')) return;
    std::set<std::string> seen;
    do {
      skip_space();
      value.keys.push_back(read_string());
      if (!seen.insert(value.keys.back()).second) fail("two members of one name");
      skip_space();
      if (!accept(':')) fail("expected :");
      value.items.push_back(read_value(depth + 1));
    } while (next_item('}'));
  }

  void digits() {
    if (peek() < '0' || peek() > '9') fail("expected a digit");
    while (peek() >= '0' && peek() <= '9') ++at_;
  }

  void read_number(Json& value) {
    value.kind = Json::Kind::kNumber;
    const bool negative = accept('-');
    if (!python_numbers_ || !(accept_word("Infinity") || (!negative && accept_word("NaN")))) {
      if (!accept('0')) digits();
      if (accept('.')) digits();
      if (accept('e') || accept('E')) {
        if (!accept('+')) accept('-');
        digits();
      }
    }
    value.text = std::string(text_.substr(value.at, at_ - value.at));
  }

  unsigned hex4() {
    unsigned value = 0;
    for (int i = 0; i < 4; ++i) {
      const std::size_t digit = std::string_view("0123456789abcdef")
                                    .find(static_cast<char>(peek() | (peek() >= 'A' && peek() <= 'F' ? 32 : 0)));
      if (at_ >= text_.size() || digit == std::string_view::npos) fail("expected four hexadecimal digits");
      value = value << 4 | static_cast<unsigned>(digit);
      ++at_;
    }
    return value;
  }

  static void append_utf8(std::string& out, std::uint32_t point) {
    if (point < 0x80) {
      out += static_cast<char>(point);
      return;
    }
    const int more = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
    constexpr std::array<unsigned, 4> kLead{0, 0xc0, 0xe0, 0xf0};
    out += static_cast<char>(kLead[static_cast<unsigned>(more)] | point >> (6 * more));
    for (int i = more - 1; i >= 0; --i) out += static_cast<char>(0x80 | (point >> (6 * i) & 63));
  }

  void read_escape(std::string& out) {
    constexpr std::string_view kNames = "\"\\/bfnrt", kValues = "\"\\/\b\f\n\r\t";
    if (accept('u')) {
      std::uint32_t point = hex4();
      if (point >= 0xdc00 && point < 0xe000) fail("lone surrogate");
      if (point >= 0xd800 && point < 0xdc00) {
        if (!accept('\\') || !accept('u')) fail("lone surrogate");
        const std::uint32_t low = hex4();
        if (low < 0xdc00 || low >= 0xe000) fail("lone surrogate");
        point = 0x10000 + ((point - 0xd800) << 10 | (low - 0xdc00));
      }
      append_utf8(out, point);
      return;
    }
    const std::size_t name = at_ < text_.size() ? kNames.find(text_[at_]) : std::string_view::npos;
    if (name == std::string_view::npos) fail("unknown escape");
    out += kValues[name];
    ++at_;
  }

  std::string read_string() {
    if (!accept('"')) fail("expected a string");
    std::string out;
    while (!accept('"')) {
      if (at_ >= text_.size()) fail("string without end");
      const char c = text_[at_++];
      if (static_cast<unsigned char>(c) < 0x20) fail("control character in a string");
      if (c == '\\') {
        read_escape(out);
      } else {
        out += c;
      }
    }
    return out;
  }

  std::string_view text_;
  const std::string& what_;
  bool python_numbers_;
  std::size_t at_ = 0;
};

}  // namespace

Json parse_json(std::string_view text, const std::string& what, bool python_numbers) {
  if (!is_utf8(text)) throw Corrupt(what + ": not UTF-8");
  return JsonReader(text, what, python_numbers).document();
}

}  // namespace glyd_reference
