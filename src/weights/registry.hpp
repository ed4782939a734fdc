// registry.hpp - the layouts, each a folder beside this file and one line in registry.cpp. Spec: docs/spec/weights.md.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/aligned_buffer.hpp"
#include "base/result.hpp"
#include "format/pack_header.hpp"

namespace glyd {

// A tensor to pack. Row-major [rows, cols] a matrix, or [cols, rows] if `transposed`.
struct TensorSource {
  std::span<const uint16_t> values;
  Grid grid;
  bool transposed = false;
  AlignedBuffer* old = nullptr;  // memory that the pack may take over, or null
};
inline AlignedBuffer new_pack(const TensorSource& source, uint64_t bytes) {
  return source.old == nullptr ? AlignedBuffer(bytes) : AlignedBuffer(bytes, std::move(*source.old));
}

// A pack whose header has been read and checked.
struct OpenPack {
  ByteSpan bytes;
  PackHeader header;
  ByteSpan array(uint32_t i) const { return header.array(bytes, i); }
};

// Decodes records, the units of a layout that has them: 16 rows by `record_steps` steps. Thread-safe.
class RecordDecoder {
 public:
  virtual ~RecordDecoder() = default;
  // Writes the record's weights to out[16][kTileStride], padding included (with any values).
  virtual Result<void> decode(uint64_t strip, uint64_t record, uint16_t* out) const = 0;
  // A checking decoder alone: the rules that span records. Call once all records are decoded.
  virtual Result<void> finish() const { return Ok{}; }
};
inline constexpr uint32_t kTileStride = 256;  // values between the rows of a decoded record

enum class Check { kTrust, kEveryRule };

struct LayoutOps {
  Layout layout;
  const char* name;
  const char* alias;                // or null
  uint32_t record_steps;            // 0: has no records (raw)
  std::array<Layout, 2> otherwise;  // what to try, in turn, where this one does not pay

  // Nothing where the layout does not pay: its pack would be no smaller than raw, or it cannot hold the tensor.
  Result<std::optional<AlignedBuffer>> (*pack)(const TensorSource& source, int threads);
  // Null where there are no records. Checks what decoding relies on; kEveryRule also all else that the spec says.
  Result<std::unique_ptr<RecordDecoder>> (*open)(const OpenPack& pack, Check check);
};

// Never null.
const LayoutOps& layout_ops(Layout layout);
std::span<const LayoutOps> all_layouts();

}  // namespace glyd
