#include "base/crc32c.hpp"

#include <gtest/gtest.h>

#include <string_view>

#include "base/sha256.hpp"

namespace glyd {
namespace {

ByteSpan bytes_of(std::string_view text) { return {reinterpret_cast<const uint8_t*>(text.data()), text.size()}; }

TEST(Crc32c, CheckValueOfTheStandard) { EXPECT_EQ(crc32c(bytes_of("123456789")), 0xe3069283u); }
TEST(Crc32c, Rfc3720ThirtyTwoZeros) {
  EXPECT_EQ(crc32c(bytes_of(std::string_view("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 32))),
            0x8a9136aau);
}
TEST(Crc32c, ContinuesWhereItStopped) { EXPECT_EQ(crc32c(bytes_of("56789"), crc32c(bytes_of("1234"))), 0xe3069283u); }

TEST(Sha256, Fips180Abc) {
  EXPECT_EQ(sha256_hex(bytes_of("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}
TEST(Sha256, InPiecesIsTheSame) {
  Sha256 hash;
  hash.update(bytes_of("a"));
  hash.update(bytes_of("bc"));
  EXPECT_EQ(hash.hex(), sha256_hex(bytes_of("abc")));
}

}  // namespace
}  // namespace glyd
