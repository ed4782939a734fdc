#include "format/small_code.hpp"

#include <cstring>

namespace glyd::small {
namespace {

uint32_t reverse_bits(uint32_t code, uint32_t length) {
  uint32_t result = 0;
  for (uint32_t i = 0; i < length; ++i) result |= (code >> i & 1) << (length - 1 - i);
  return result;
}

}  // namespace

bool make_canonical(const PairCode& code, CanonicalCodes& out) {
  uint32_t next = 0, previous = 0;  // the next code, of `previous` bits
  out = {};
  for (uint32_t length = 1; length <= kMostCodeBits; ++length) {
    for (uint32_t pair = 0; pair < kPairs; ++pair) {
      if (code.lengths[pair] != length) continue;
      if (out.pairs == 0) {
        out.zero_pair = pair;
      } else {
        next <<= length - previous;
      }
      previous = length;
      if (next >> length != 0) return false;  // more codes than the length has
      out.codes[pair] = static_cast<uint16_t>(next++);
      ++out.pairs;
    }
  }
  return out.pairs > 0;
}

void write_table(const PairCode& code, uint8_t* table) {
  std::memset(table, 0, kTableBytes);
  std::memcpy(table, code.alphabet.data(), code.symbols);
  for (uint32_t pair = 0; pair < kPairs; ++pair) {
    uint8_t& byte = table[kMostSymbols + pair / 2];
    byte = static_cast<uint8_t>(byte | code.lengths[pair] << pair % 2 * 4);
  }
}

Result<PairCode> read_table(ByteSpan table, uint32_t symbols) {
  PairCode code;
  code.symbols = symbols;
  std::memcpy(code.alphabet.data(), table.data(), kMostSymbols);
  for (uint32_t i = 0; i < kMostSymbols; ++i) {
    if (i >= symbols && code.alphabet[i] != 0)
      return corrupt("pack: small: the alphabet has more than {} symbols", symbols);
    if (i > 0 && i < symbols && code.alphabet[i] <= code.alphabet[i - 1])
      return corrupt("pack: small: the alphabet is not ascending");
  }
  uint32_t in_use = 0;
  for (uint32_t pair = 0; pair < kPairs; ++pair) {
    const uint32_t length = table[kMostSymbols + pair / 2] >> pair % 2 * 4 & 15u;
    code.lengths[pair] = static_cast<uint8_t>(length);
    if (length == 0) continue;
    if (length > kMostCodeBits) return corrupt("pack: small: pair {} has a code of {} bits", pair, length);
    if (pair / 16 >= symbols || pair % 16 >= symbols)
      return corrupt("pack: small: pair {} is not in the alphabet", pair);
    in_use |= 1u << pair / 16 | 1u << pair % 16;
  }
  if (in_use != (1u << symbols) - 1) return corrupt("pack: small: a symbol of the alphabet is in no pair with a code");
  CanonicalCodes canonical;
  if (!make_canonical(code, canonical)) return corrupt("pack: small: the code lengths break Kraft's inequality");
  return code;
}

void make_lookups(const PairCode& code, const CanonicalCodes& canonical, LookupTables& out) {
  for (uint32_t i = 0; i < kLookups; ++i) out.up[i] = out.down[i] = kNoCode;
  for (uint32_t pair = 0; pair < kPairs; ++pair) {
    const uint32_t length = code.lengths[pair], spare = kMostCodeBits - length;
    if (length == 0) continue;
    const uint32_t entry = pair_entry(code.alphabet[pair / 16], code.alphabet[pair % 16]) | length;
    const uint32_t reversed = reverse_bits(canonical.codes[pair], length);
    for (uint32_t rest = 0; rest < 1u << spare; ++rest) {
      out.up[reversed | rest << length] = entry;
      out.down[static_cast<uint32_t>(canonical.codes[pair]) << spare | rest] = entry;
    }
  }
}

}  // namespace glyd::small
