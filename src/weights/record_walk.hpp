// record_walk.hpp - decodes the records of a tensor or of a block of it and puts them in place, whatever the layout.
#pragma once

#include <mutex>
#include <optional>

#include "weights/registry.hpp"
#include "weights/weights.hpp"

namespace glyd {

// Of many threads' errors the one at the lowest place, so that the message does not depend on timing.
class FirstError {
 public:
  void keep(uint64_t place, Result<void> result);
  Result<void> result() const;

 private:
  std::mutex mutex_;
  uint64_t place_ = UINT64_MAX;
  std::optional<Error> error_;
};

// Every record, into the source's order.
Result<void> decode_records(const RecordDecoder& decoder, const PackHeader& header, int threads,
                            std::span<uint16_t> out);
// Every record; whether they make `values`, of as many values.
Result<bool> compare_records(const RecordDecoder& decoder, const PackHeader& header, int threads,
                             std::span<const uint16_t> values);
// Every record, for the decoder's checks alone.
Result<void> visit_records(const RecordDecoder& decoder, const PackHeader& header, int threads);
// The records that `block` (not empty, checked) touches, as [rows, cols].
Result<void> decode_records_of(const RecordDecoder& decoder, const PackHeader& header, const Block& block, int threads,
                               uint16_t* out, uint64_t stride);

}  // namespace glyd
