// record_reader.cuh - a record's values as the encoder's passes read them: 256 vectors of eight neighbours in k, by the
// 32 lanes of a warp.
#pragma once

#include "format/bf16.hpp"
#include "format/fast_patch.hpp"
#include "pack/pack_kernels.hpp"

namespace glyd::cuda {

inline constexpr uint32_t kRecordCols = fast::kRecordSteps * kStepCols, kVectorsARow = kRecordCols / 8,
                          kVectorsALane = kStripRows * kVectorsARow / kLanes;

struct RecordAt {
  uint64_t strip, record;
  uint32_t steps;
};
__device__ __forceinline__ RecordAt record_at(const PackSource& source, uint64_t index) {
  const uint64_t steps = source.grid.steps(), records = fast::records_a_strip(steps);
  return {index / records, index % records, fast::steps_of_record(steps, index % records)};
}

// kVectors: source.has_vectors(). Padding reads as the window's first exponent, which is coded as zeros and not
// patched.
template <bool kVectors>
class RecordReader {
 public:
  __device__ __forceinline__ RecordReader(const PackSource& source, const RecordAt& at)
      : source_(source), col_(at.record * kRecordCols) {
    const uint64_t strips = source.grid.strips_a_matrix();
    matrix_ = source.values + at.strip / strips * source.grid.rows * source.grid.cols;
    row_ = at.strip % strips * kStripRows;
  }

  // Where a vector (0-255) lies in the record; neighbouring lanes read neighbouring memory.
  __device__ __forceinline__ uint32_t row_of(uint32_t vector) const {
    return transposed() ? vector % kStripRows : vector / kVectorsARow;
  }
  __device__ __forceinline__ uint32_t col_of(uint32_t vector) const {
    return 8 * (transposed() ? vector / kStripRows : vector % kVectorsARow);
  }

  __device__ __forceinline__ uint4 load(uint32_t vector) const {
    const uint64_t row = row_ + row_of(vector), col = col_ + col_of(vector);
    const uint32_t fill = bf16_join(0, source_.base, 0) * 0x10001u;
    if constexpr (kVectors) {
      if (row >= source_.grid.rows || col >= source_.grid.cols) return make_uint4(fill, fill, fill, fill);
      return __ldg(reinterpret_cast<const uint4*>(matrix_ + row * source_.grid.cols + col));
    } else {
      uint32_t words[4];
#pragma unroll
      for (uint32_t i = 0; i < 4; ++i) {
        words[i] = value(row, col + 2 * i) | static_cast<uint32_t>(value(row, col + 2 * i + 1)) << 16;
      }
      return make_uint4(words[0], words[1], words[2], words[3]);
    }
  }

 private:
  __device__ __forceinline__ bool transposed() const { return !kVectors && source_.transposed; }
  __device__ __forceinline__ uint16_t value(uint64_t row, uint64_t col) const {
    if (row >= source_.grid.rows || col >= source_.grid.cols) return bf16_join(0, source_.base, 0);
    return __ldg(matrix_ + (source_.transposed ? col * source_.grid.rows + row : row * source_.grid.cols + col));
  }

  const PackSource& source_;
  const uint16_t* matrix_;
  uint64_t row_, col_;
};

inline uint64_t records_of(const PackSource& source) {
  return source.grid.strips() * fast::records_a_strip(source.grid.steps());
}

// Blocks of `a_block` pieces of work, as many as are resident.
inline uint32_t blocks_for(uint64_t work, uint64_t a_block, uint32_t resident) {
  const uint64_t wanted = (work + a_block - 1) / a_block;
  return wanted < resident ? static_cast<uint32_t>(wanted) : resident;
}

}  // namespace glyd::cuda
