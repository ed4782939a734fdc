// salvage.hpp - what can still be read of a damaged or cut frame. Spec: docs/spec/codec.md 3.5.
#pragma once

#include <functional>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"

namespace glyd::codec {

struct ContentRange {
  uint64_t begin, end;
};

struct SalvageReport {
  uint64_t recovered_bytes = 0;
  uint64_t content_end = 0;        // end of the last unit found, or the declared size if that is known and larger
  std::vector<ContentRange> lost;  // below content_end
  bool complete = false;           // footer found and nothing lost
};

// Looks through `damaged` for whole units, in order, and gives each to `sink` with its position in the content.
Result<SalvageReport> salvage(ByteSpan damaged,
                              const std::function<Result<void>(uint64_t position, ByteSpan content)>& sink);

}  // namespace glyd::codec
