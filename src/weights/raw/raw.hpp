// raw.hpp - layout `raw`: the source's bytes as they are. Spec: docs/spec/weights.md 3.
#pragma once

#include "weights/registry.hpp"
#include "weights/weights.hpp"

namespace glyd::raw {

Result<std::optional<AlignedBuffer>> pack(const TensorSource& source, int threads);
void decode(const OpenPack& pack, int threads, std::span<uint16_t> out);
void decode_block(const OpenPack& pack, const Block& block, int threads, uint16_t* out, uint64_t stride);

}  // namespace glyd::raw
