// peers.hpp - the compressors to compare with, each as one call from memory to memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace glyd::bench {

using Bytes = std::vector<uint8_t>;

class Peer {
 public:
  virtual ~Peer() = default;
  virtual size_t bound(size_t raw_bytes) const = 0;
  // Bytes written to `out`, which has bound() room; throws on failure.
  virtual size_t compress(const Bytes& raw, Bytes& out) = 0;
  virtual void decompress(const uint8_t* stored, size_t bytes, Bytes& raw) = 0;
};

// "lz4-1", "zstd-N", "xz-N" with contexts made once and the checks that their commands write; "lz4-1-bare" (a block)
// and "zstd-N-bare" have none.
std::unique_ptr<Peer> make_peer(const std::string& name);
// "default", "max", "ultra": frames with every check.
std::unique_ptr<Peer> make_glyd(const std::string& level, int threads = 1);

}  // namespace glyd::bench
