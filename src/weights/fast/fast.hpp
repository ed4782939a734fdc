// fast.hpp - layout `fast`: 3-bit window codes and patches. Spec: docs/spec/weights.md 4.
#pragma once

#include "weights/registry.hpp"

namespace glyd::fast {

Result<std::optional<AlignedBuffer>> pack(const TensorSource& source, int threads);
Result<std::unique_ptr<RecordDecoder>> open(const OpenPack& pack, Check check);

}  // namespace glyd::fast
