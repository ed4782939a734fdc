// reference_main.cpp - the reference decoder as a program: exit status 0 done, 1 corrupt or unreadable, 2 usage.
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <iterator>

#include "glyd_reference.hpp"

namespace {

void decode_file(const char* pack_path, const char* out_path) {
  std::ifstream in(pack_path, std::ios::binary);
  const std::vector<char> text{std::istreambuf_iterator<char>(in), {}};
  if (!in.eof() && !in) throw std::runtime_error(std::string(pack_path) + ": cannot be read");
  const auto tensor = glyd_reference::decode_pack({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  std::ofstream out(out_path, std::ios::binary | std::ios::trunc);
  for (const std::uint16_t value : tensor.values)
    out.put(static_cast<char>(value & 255)).put(static_cast<char>(value >> 8));
  out.close();
  if (!out) throw std::runtime_error(std::string(out_path) + ": cannot be written");
}

}  // namespace

int main(int argc, char** argv) {
  const bool decode = argc == 4 && std::strcmp(argv[1], "decode") == 0;
  const bool unpack = argc == 4 && std::strcmp(argv[1], "unpack") == 0;
  const bool verify = argc == 3 && std::strcmp(argv[1], "verify") == 0;
  if (!decode && !unpack && !verify) {
    std::fprintf(stderr, "usage: glyd-reference decode PACK OUT.bf16 | verify DIR | unpack DIR OUT\n");
    return 2;
  }
  try {
    if (decode) decode_file(argv[2], argv[3]);
    if (unpack) glyd_reference::unpack_checkpoint(argv[2], argv[3]);
    if (verify) glyd_reference::verify_checkpoint(argv[2]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "glyd-reference: %s\n", error.what());
    return 1;
  }
  return 0;
}
