// unit.hpp - a unit: a part of the content (8 MiB at `max`, 32 at `ultra`) coded by itself as a row of blocks. Spec:
// docs/spec/codec.md 4.
#pragma once

#include <memory>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "codec/format.hpp"
#include "codec/planes/tensors.hpp"

namespace glyd::codec {

enum class Level : uint8_t { kDefault = 0, kMax = 1, kUltra = 2 };

// Codes units, one at a time; the bytes depend on the level, the unit and what is known of its tensors.
class UnitEncoder {
 public:
  explicit UnitEncoder(Level level);
  ~UnitEncoder();
  UnitEncoder(UnitEncoder&&) noexcept;
  // Capacity to give `write`: more than it returns, for it scribbles.
  static size_t bound(size_t raw_bytes);
  // The payload of `raw`, which lies at `position` of the content that `tensors` tells of; ChunkKind::kBlocks. 0 if
  // storing it is no worse.
  size_t write(ByteSpan raw, uint8_t* out, const TensorMap& tensors = {}, uint64_t position = 0);
  // XXH3 of the last unit's content, taken while its blocks were in the cache.
  uint64_t content_hash() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

class UnitDecoder {
 public:
  UnitDecoder();
  ~UnitDecoder();
  UnitDecoder(UnitDecoder&&) noexcept;
  // Bytes before `readable` (at or after the payload's end) may be loaded. Writes nothing outside `out`.
  Result<void> read(ByteSpan payload, const uint8_t* readable, MutableByteSpan out);
  // The same for a payload that is the content (ChunkKind::kStored).
  void read_stored(ByteSpan payload, MutableByteSpan out);
  // XXH3 of the last payload, whether it could be read or not, and of its content, both taken while their blocks were
  // in the cache. No content may be believed before both are compared.
  uint64_t payload_hash();
  uint64_t content_hash() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace glyd::codec
