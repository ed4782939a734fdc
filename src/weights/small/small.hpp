// small.hpp - layout `small`: prefix-coded pairs of exponents. Spec: docs/spec/weights.md 5.
#pragma once

#include "weights/registry.hpp"

namespace glyd::small {

Result<std::optional<AlignedBuffer>> pack(const TensorSource& source, int threads);
Result<std::unique_ptr<RecordDecoder>> open(const OpenPack& pack, Check check);

}  // namespace glyd::small
