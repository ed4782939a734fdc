// glyd_reference.hpp - the slow, plain decoder of packs and packed checkpoints, written from docs/spec/weights.md and
// docs/spec/checkpoint.md alone.
//
// It is the oracle of the tests: it checks every rule of both pages and favours being easily compared with them over
// speed and memory. It includes nothing of the library. Functions throw Corrupt where bytes break a rule, and
// std::runtime_error where a file cannot be read or written.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace glyd_reference {

using Bytes = std::span<const std::uint8_t>;

struct Corrupt : std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class Layout : std::uint8_t { kRaw = 0, kFast = 1, kSmall = 2 };

struct Header {  // weights.md 2
  Layout layout = Layout::kRaw;
  bool transposed = false, fusible = false;
  std::uint64_t stack = 0, rows = 0, cols = 0, pack_bytes = 0;
  std::array<std::uint64_t, 4> array_bytes{};
  std::uint32_t base = 0, slot_bytes = 0;   // fast
  std::uint32_t min_bits = 0, symbols = 0;  // small
};

struct Tensor {
  Header header;
  std::vector<std::uint16_t> values;  // in the source's order
};

// weights.md: the header alone, or everything.
Header read_header(Bytes pack);
Tensor decode_pack(Bytes pack);

// checkpoint.md 5: throws unless the directory is whole.
void verify_checkpoint(const std::filesystem::path& directory);
// verify_checkpoint, then the source again at `target`, which must not exist.
void unpack_checkpoint(const std::filesystem::path& directory, const std::filesystem::path& target);

}  // namespace glyd_reference
