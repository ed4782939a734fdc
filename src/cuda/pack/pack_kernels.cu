#include <algorithm>

#include "format/bf16.hpp"
#include "format/fast_patch.hpp"
#include "pack/pack_kernels.hpp"

namespace glyd::cuda {
namespace {

constexpr uint32_t kThreads = 128, kWarps = kThreads / 32, kBlocksResident = 12;

struct RecordAt {
  uint64_t strip, record;
  uint32_t steps;
};
__device__ __forceinline__ RecordAt record_at(const PackSource& source, uint64_t index) {
  const uint64_t steps = source.grid.steps(), records = fast::records_a_strip(steps);
  return {index / records, index % records, fast::steps_of_record(steps, index % records)};
}

// One lane's weights of a record, by step and j; padding reads as the window's first exponent.
class LaneValues {
 public:
  __device__ __forceinline__ LaneValues(const PackSource& source, const RecordAt& at, uint32_t lane)
      : source_(source), lane_(lane), col_(at.record * fast::kRecordSteps * kStepCols) {
    const uint64_t strips = source.grid.strips_a_matrix();
    matrix_ = source.values + at.strip / strips * source.grid.rows * source.grid.cols;
    row_ = at.strip % strips * kStripRows;
  }
  __device__ __forceinline__ uint16_t at(uint32_t step, uint32_t j) const {
    const uint64_t row = row_ + fragment_row(lane_, j), col = col_ + step * kStepCols + fragment_col(lane_, j);
    if (row >= source_.grid.rows || col >= source_.grid.cols) return bf16_join(0, source_.base, 0);
    return source_.transposed ? matrix_[col * source_.grid.rows + row] : matrix_[row * source_.grid.cols + col];
  }

 private:
  const PackSource& source_;
  const uint16_t* matrix_;
  uint32_t lane_;
  uint64_t row_, col_;
};

struct Weight {
  uint32_t code, upper;
};
__device__ __forceinline__ Weight split_weight(uint16_t value, uint32_t base) {
  const uint32_t shifted = fast::shift_exponent(bf16_exponent(value), base);
  return {shifted % 8, shifted / 8};
}
__device__ __forceinline__ bool has_class(uint32_t upper) { return fast::class_of_upper(upper) < 4; }

__global__ void __launch_bounds__(kThreads)
    count_exponents(const uint16_t* __restrict__ values, uint64_t count, uint64_t* out) {
  __shared__ uint32_t bins[256];
  for (uint32_t i = threadIdx.x; i < 256; i += kThreads) bins[i] = 0;
  __syncthreads();
  for (uint64_t i = static_cast<uint64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count;
       i += static_cast<uint64_t>(gridDim.x) * kThreads) {
    atomicAdd(&bins[bf16_exponent(values[i])], 1);
  }
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < 256; i += kThreads) {
    if (bins[i] != 0)
      atomicAdd(reinterpret_cast<unsigned long long*>(&out[i]), static_cast<unsigned long long>(bins[i]));
  }
}

__global__ void __launch_bounds__(kThreads)
    count_patches(const __grid_constant__ PackSource source, const __grid_constant__ PackScratch scratch,
                  uint64_t records) {
  __shared__ unsigned long long words[kSlotSizes], groups[kSlotSizes];
  for (uint32_t i = threadIdx.x; i < kSlotSizes; i += kThreads) words[i] = groups[i] = 0;
  __syncthreads();
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (uint64_t index = static_cast<uint64_t>(blockIdx.x) * kWarps + warp; index < records;
       index += static_cast<uint64_t>(gridDim.x) * kWarps) {
    const RecordAt at = record_at(source, index);
    const LaneValues values(source, at, lane);
    uint32_t found[3] = {0, 0, 0};
#pragma unroll 1
    for (uint32_t step = 0; step < at.steps; ++step) {
#pragma unroll 1
      for (uint32_t j = 0; j < kLaneWeights; ++j) {
        const uint32_t upper = split_weight(values.at(step, j), source.base).upper;
        if (upper == fast::kWindowUpper) continue;
        if (!has_class(upper)) {
          ++found[2];
        } else if (step < fast::kChunkSteps) {
          ++found[0];
        } else {
          ++found[1];
        }
      }
    }
    for (uint32_t& count : found) count = __reduce_add_sync(~0u, count);
    if (lane == 0) {
      scratch.patches[index] = {
          {static_cast<uint16_t>(found[0]), static_cast<uint16_t>(found[1])}, static_cast<uint16_t>(found[2]), 0};
    }
    if (lane < kSlotSizes) {
      const uint32_t classed[2] = {found[0], found[1]};
      const uint32_t used =
          lane == 0
              ? found[0] + found[1] + found[2]
              : fast::group_words(fast::split_patches(fast::slot_bytes_of(16 * lane, at.steps), classed, found[2]));
      if (used > 0) atomicAdd(&words[lane], static_cast<unsigned long long>(used)), atomicAdd(&groups[lane], 1ull);
    }
  }
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < kSlotSizes; i += kThreads) {
    atomicAdd(reinterpret_cast<unsigned long long*>(&scratch.words[i]), words[i]);
    atomicAdd(reinterpret_cast<unsigned long long*>(&scratch.groups[i]), groups[i]);
  }
}

// Where each record's group begins: a running sum over the records, by one block.
__global__ void __launch_bounds__(1024)
    place_groups(const __grid_constant__ PackSource source, const __grid_constant__ PackScratch scratch,
                 uint32_t slot_bytes, uint64_t records) {
  __shared__ uint32_t warp_sums[32];
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  uint64_t before = 0;
  for (uint64_t first = 0; first < records; first += 1024) {
    const uint64_t index = first + threadIdx.x;
    uint32_t own = 0;
    if (index < records && slot_bytes != 0) {
      const RecordPatches found = scratch.patches[index];
      const uint32_t classed[2] = {found.classed[0], found.classed[1]};
      own = fast::group_words(fast::split_patches(fast::slot_bytes_of(slot_bytes, record_at(source, index).steps),
                                                  classed, found.unclassed));
    }
    uint32_t sum = own;
    for (uint32_t step = 1; step < 32; step *= 2) {
      const uint32_t other = __shfl_up_sync(~0u, sum, step);
      if (lane >= step) sum += other;
    }
    if (lane == 31) warp_sums[warp] = sum;
    __syncthreads();
    uint32_t total = 0, earlier = 0;
    for (uint32_t w = 0; w < 32; ++w) {
      if (w == warp) earlier = total;
      total += warp_sums[w];
    }
    if (index < records) scratch.places[index] = static_cast<uint32_t>(before + earlier + sum - own);
    before += total;
    __syncthreads();
  }
  if (threadIdx.x == 0) *scratch.total_words = before;
}

// A lane's stored words of a chunk, and which of its weights are patched: bit 8 * step + j.
struct LaneChunk {
  uint32_t low[8] = {}, high[8] = {};
  uint32_t patched = 0, classed = 0;

  __device__ __forceinline__ void add(uint32_t step, uint32_t j, uint16_t value, uint32_t base) {
    const Weight weight = split_weight(value, base);
    const uint32_t word = 2 * step + j / 4, shift = j % 4 * 8;
    low[word] |= ((weight.code & 1) << 7 | bf16_mantissa(value)) << shift;
    high[word] |= (bf16_sign(value) << 7 | weight.code >> 1) << shift;
    if (weight.upper == fast::kWindowUpper) return;
    patched |= 1u << (8 * step + j);
    if (has_class(weight.upper)) classed |= 1u << (8 * step + j);
  }

  __device__ __forceinline__ void store(uint8_t* chunk, uint32_t steps, uint32_t lane) const {
#pragma unroll
    for (uint32_t pair = 0; pair < 2; ++pair) {
      if (2 * pair + 1 < steps) {
        *reinterpret_cast<uint4*>(chunk + pair * 512 + lane * 16) =
            make_uint4(low[4 * pair], low[4 * pair + 1], low[4 * pair + 2], low[4 * pair + 3]);
      } else if (2 * pair < steps) {
        *reinterpret_cast<uint2*>(chunk + pair * 512 + lane * 8) = make_uint2(low[4 * pair], low[4 * pair + 1]);
      }
    }
    uint32_t x[3];
    fast::pack_high(high, x);
    uint32_t* const plane = reinterpret_cast<uint32_t*>(chunk + fast::low_plane_bytes(steps)) + lane;
#pragma unroll
    for (uint32_t i = 0; i < 3; ++i) {
      if (i < steps) plane[32 * i] = x[i];
    }
  }
};

// A warp's slot on its way out, and where the next patch goes.
class PatchWriter {
 public:
  __device__ __forceinline__ PatchWriter(uint32_t* slot, const fast::SlotSplit& split, uint32_t* group, uint32_t lane)
      : slot_(slot), split_(split), group_(group), lane_(lane) {}

  // The patches of one chunk, in the order of their places: pairs of steps, lanes, then bits.
  __device__ __forceinline__ void write(const LaneValues& values, uint32_t base, uint32_t chunk, const LaneChunk& words,
                                        uint32_t* breaks) {
    const uint32_t taken_before = chunk == 0 ? 0 : split_.entries[0], room = split_.entries[chunk];
    uint32_t classed_before = 0;
#pragma unroll
    for (uint32_t pair = 0; pair < 2; ++pair) {
      uint32_t mask = words.patched >> (16 * pair) & 0xffff;
      const uint32_t classed = words.classed >> (16 * pair) & 0xffff;
      const uint32_t own = __popc(mask) | __popc(classed) << 16;
      uint32_t sum = own;
      for (uint32_t step = 1; step < 32; step *= 2) {
        const uint32_t other = __shfl_up_sync(~0u, sum, step);
        if (lane_ >= step) sum += other;
      }
      const uint32_t total = __shfl_sync(~0u, sum, 31);
      uint32_t rank = before_ + ((sum - own) & 0xffff), classed_rank = classed_before + ((sum - own) >> 16);
      for (; mask != 0; mask &= mask - 1, ++rank) {
        const uint32_t bit = __ffs(static_cast<int>(mask)) - 1, step = 2 * pair + bit / 8, j = bit % 8;
        const uint16_t value = values.at(chunk * fast::kChunkSteps + step, j);
        const uint32_t upper = split_weight(value, base).upper, place = fast::place_of(step, lane_, j);
        if (fast::breaks_fusing(bf16_exponent(value), bf16_mantissa(value), base)) *breaks = 1;
        const bool has = classed >> bit & 1;
        if (has && classed_rank < room) {
          put_entry(taken_before + classed_rank, fast::make_slot_entry(place, fast::class_of_upper(upper)));
        } else {
          group_[1 + rank - taken_before - min(classed_rank, room)] = fast::make_patch(chunk, place, upper);
        }
        classed_rank += has;
      }
      before_ += total & 0xffff;
      classed_before += total >> 16;
    }
  }

 private:
  __device__ __forceinline__ void put_entry(uint32_t i, uint32_t entry) {
    const uint32_t bit = 8 * fast::kSlotHeaderBytes + i * fast::kEntryBits, shift = bit % 32;
    atomicOr(&slot_[bit / 32], entry << shift);
    if (shift > 32 - fast::kEntryBits) atomicOr(&slot_[bit / 32 + 1], entry >> (32 - shift));
  }

  uint32_t* slot_;
  fast::SlotSplit split_;
  uint32_t* group_;
  uint32_t lane_, before_ = 0;
};

__global__ void __launch_bounds__(kThreads)
    encode_records(const __grid_constant__ PackSource source, const __grid_constant__ PackScratch scratch,
                   const __grid_constant__ PackOutput output, uint64_t records) {
  __shared__ uint32_t slots[kWarps][fast::kMostSlotBytes / 4];
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  uint32_t* const slot = slots[warp];
  const uint64_t steps = source.grid.steps();
  for (uint64_t index = static_cast<uint64_t>(blockIdx.x) * kWarps + warp; index < records;
       index += static_cast<uint64_t>(gridDim.x) * kWarps) {
    const RecordAt at = record_at(source, index);
    const LaneValues values(source, at, lane);
    const RecordPatches found = scratch.patches[index];
    const uint32_t slot_bytes = fast::slot_bytes_of(output.slot_bytes, at.steps),
                   classed[2] = {found.classed[0], found.classed[1]};
    const fast::SlotSplit split = fast::split_patches(slot_bytes, classed, found.unclassed);
    uint32_t* const group = output.overflow + scratch.places[index];
    for (uint32_t i = lane; i < slot_bytes / 4; i += 32) slot[i] = 0;
    __syncwarp();
    PatchWriter writer(slot, split, group, lane);
    uint8_t* planes = output.planes + at.strip * fast::strip_bytes(steps) + at.record * fast::kRecordBytes;
#pragma unroll
    for (uint32_t chunk = 0; chunk < 2; ++chunk, planes += fast::kChunkBytes) {
      const uint32_t present = fast::chunk_steps(at.steps, chunk);
      LaneChunk words;
#pragma unroll
      for (uint32_t step = 0; step < fast::kChunkSteps; ++step) {
        if (step >= present) continue;
#pragma unroll
        for (uint32_t j = 0; j < kLaneWeights; ++j) {
          words.add(step, j, values.at(chunk * fast::kChunkSteps + step, j), source.base);
        }
      }
      if (present > 0) words.store(planes, present, lane);
      writer.write(values, source.base, chunk, words, scratch.breaks_fusing);
    }
    __syncwarp();
    if (lane == 0 && slot_bytes > 0) {
      slot[0] |= split.entries[0] | split.entries[1] << 8;
      if (split.left > 0) {
        slot[0] |= fast::kSlotFlag;
        slot[slot_bytes / 4 - 1] = scratch.places[index];
        group[0] = split.left;
      }
    }
    __syncwarp();
    uint32_t* const out = reinterpret_cast<uint32_t*>(
        output.slots + at.strip * fast::strip_slot_bytes(output.slot_bytes, steps) + at.record * output.slot_bytes);
    for (uint32_t i = lane; i < slot_bytes / 4; i += 32) out[i] = slot[i];
    __syncwarp();
  }
}

uint64_t records_of(const PackSource& source) {
  return source.grid.strips() * fast::records_a_strip(source.grid.steps());
}

uint32_t blocks_for(uint64_t work, uint32_t a_block, uint32_t multiprocessors) {
  return static_cast<uint32_t>(
      std::min<uint64_t>((work + a_block - 1) / a_block, uint64_t{multiprocessors} * kBlocksResident));
}

}  // namespace

cudaError_t launch_exponent_counts(const PackSource& source, const PackScratch& scratch, uint32_t multiprocessors,
                                   cudaStream_t stream) {
  const uint64_t count = source.grid.stack * source.grid.rows * source.grid.cols;
  count_exponents<<<blocks_for(count, kThreads, multiprocessors), kThreads, 0, stream>>>(source.values, count,
                                                                                         scratch.exponents);
  return cudaGetLastError();
}

cudaError_t launch_count_patches(const PackSource& source, const PackScratch& scratch, uint32_t multiprocessors,
                                 cudaStream_t stream) {
  const uint64_t records = records_of(source);
  count_patches<<<blocks_for(records, kWarps, multiprocessors), kThreads, 0, stream>>>(source, scratch, records);
  return cudaGetLastError();
}

cudaError_t launch_place_groups(const PackSource& source, const PackScratch& scratch, uint32_t slot_bytes,
                                cudaStream_t stream) {
  place_groups<<<1, 1024, 0, stream>>>(source, scratch, slot_bytes, records_of(source));
  return cudaGetLastError();
}

cudaError_t launch_encode(const PackSource& source, const PackScratch& scratch, const PackOutput& output,
                          uint32_t multiprocessors, cudaStream_t stream) {
  const uint64_t records = records_of(source);
  encode_records<<<blocks_for(records, kWarps, multiprocessors), kThreads, 0, stream>>>(source, scratch, output,
                                                                                        records);
  return cudaGetLastError();
}

}  // namespace glyd::cuda
