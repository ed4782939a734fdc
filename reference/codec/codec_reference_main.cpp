// codec_reference_main.cpp - glyd-codec-reference FRAME OUT: decodes by the specification.
#include <cstdio>
#include <fstream>
#include <iterator>

#include "codec_reference.hpp"

int main(int count, char** arguments) {
  if (count != 3) {
    std::fprintf(stderr, "usage: glyd-codec-reference FRAME OUT\n");
    return 2;
  }
  std::ifstream file(arguments[1], std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "cannot read %s\n", arguments[1]);
    return 3;
  }
  const std::vector<uint8_t> input((std::istreambuf_iterator<char>(file)), {});
  try {
    const std::vector<uint8_t> content = glyd::reference::decode_frames(input);
    std::ofstream out(arguments[2], std::ios::binary);
    out.write(reinterpret_cast<const char*>(content.data()), static_cast<std::streamsize>(content.size()));
    if (!out.flush()) {
      std::fprintf(stderr, "cannot write %s\n", arguments[2]);
      return 3;
    }
  } catch (const glyd::reference::BadFrame& bad) {
    std::fprintf(stderr, "%s: breaks section %s\n", arguments[1], bad.what());
    return 1;
  }
  return 0;
}
