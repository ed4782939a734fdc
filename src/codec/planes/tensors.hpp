// tensors.hpp - where the tensors of a content lie, by its safetensors header. Only the encoder asks: it cuts blocks at
// them and knows floats from other numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.hpp"

namespace glyd::codec {

class TensorMap {
 public:
  // A row of neighbours of one kind. Nullopt: not known; 0: no floats; 2: bf16 or fp16; 4: fp32.
  struct Run {
    uint64_t end;  // in the content
    std::optional<int> float_bytes;
  };
  // Smaller tensors are counted to the run before them: a block of their own would cost more than it saves.
  static constexpr uint64_t kLeastRun = 4096;

  TensorMap() = default;
  // Of the content that begins with `first`. Nothing is known of it if no valid header lies in `first` as a whole.
  static TensorMap of(ByteSpan first);
  // The run that holds this byte of the content.
  Run at(uint64_t position) const;
  const std::vector<Run>& runs() const { return runs_; }

 private:
  void add(uint64_t bytes, int float_bytes);

  std::vector<Run> runs_;
};

}  // namespace glyd::codec
