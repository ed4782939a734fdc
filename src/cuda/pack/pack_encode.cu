// pack_encode.cu - the encoder's last pass: planes, slots and groups, a record a warp at a time.
#include "pack/record_reader.cuh"

namespace glyd::cuda {
namespace {

constexpr uint32_t kThreads = 128, kWarps = kThreads / 32, kBlocksResident = 8;
// Values a row of a record in shared memory: 68 words, so that a fragment's reads touch 32 banks.
constexpr uint32_t kTileStride = kRecordCols + 8;

// What becomes of an exponent: its code where a bf16 has the low bits of its exponent, and whether it is patched, with
// a class.
constexpr uint32_t kPatched = 1u << 31, kClassed = 1u << 30;
__device__ __forceinline__ uint32_t code_entry(uint32_t exponent, uint32_t base) {
  const uint32_t shifted = fast::shift_exponent(exponent, base), upper = shifted / 8;
  if (upper == fast::kWindowUpper) return shifted % 8 << 7;
  return shifted % 8 << 7 | kPatched | (fast::class_of_upper(upper) < 4 ? kClassed : 0);
}

__device__ __forceinline__ uint16_t value_at(const uint16_t* tile, uint32_t chunk, uint32_t lane, uint32_t step,
                                             uint32_t j) {
  return tile[fragment_row(lane, j) * kTileStride + (chunk * fast::kChunkSteps + step) * kStepCols +
              fragment_col(lane, j)];
}

// A lane's stored words of a chunk, and which of its weights are patched: bit 8 * step + j.
struct LaneChunk {
  uint32_t low[8], high[8];
  uint32_t patched = 0, classed = 0;

  __device__ __forceinline__ LaneChunk(const uint16_t* tile, const uint32_t* codes, uint32_t chunk, uint32_t lane) {
    const uint32_t* const row = reinterpret_cast<const uint32_t*>(tile) + lane / 4 * (kTileStride / 2) +
                                chunk * fast::kChunkSteps * kStepCols / 2 + lane % 4;
#pragma unroll
    for (uint32_t step = 0; step < fast::kChunkSteps; ++step) {
      uint32_t pairs[4];  // each value's exponent replaced by its code
#pragma unroll
      for (uint32_t r = 0; r < 4; ++r) {
        const uint32_t pair = row[r % 2 * 8 * (kTileStride / 2) + step * kStepCols / 2 + r / 2 * 4];
        const uint32_t first = add(codes[pair >> 7 & 0xff]), second = add(codes[pair >> 23 & 0xff]);
        pairs[r] = (pair & 0x807f807f) | __byte_perm(first, second, 0x5410);
      }
#pragma unroll
      for (uint32_t half = 0; half < 2; ++half) {
        low[2 * step + half] = __byte_perm(pairs[2 * half], pairs[2 * half + 1], 0x6420);
        high[2 * step + half] = __byte_perm(pairs[2 * half], pairs[2 * half + 1], 0x7531);
      }
    }
    patched = __brev(patched), classed = __brev(classed);
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

 private:
  // The first weight ends in bit 31, the last in bit 0: reversed at the end.
  __device__ __forceinline__ uint32_t add(uint32_t entry) {
    patched = __funnelshift_l(entry, patched, 1);
    classed = __funnelshift_l(entry << 1, classed, 1);
    return entry;
  }
};

// A warp's slot on its way out, and where the next patch goes.
class PatchWriter {
 public:
  __device__ __forceinline__ PatchWriter(uint32_t* slot, const fast::SlotSplit& split, uint32_t* group, uint32_t lane)
      : slot_(slot), split_(split), group_(group), lane_(lane) {}

  // The patches of one chunk, in the order of their places: pairs of steps, lanes, then bits.
  __device__ __forceinline__ void write(const uint16_t* tile, uint32_t base, uint32_t chunk, const LaneChunk& words,
                                        uint32_t* breaks) {
    if (!__any_sync(~0u, words.patched != 0)) return;
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
        const uint16_t value = value_at(tile, chunk, lane_, step, j);
        const uint32_t exponent = bf16_exponent(value), upper = fast::shift_exponent(exponent, base) / 8,
                       place = fast::place_of(step, lane_, j);
        if (fast::breaks_fusing(exponent, bf16_mantissa(value), base)) *breaks = 1;
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

template <bool kVectors>
__device__ __forceinline__ void load_tile(const PackSource& source, const RecordAt& at, uint16_t* tile, uint32_t lane) {
  const RecordReader<kVectors> reader(source, at);
  const auto store = [&](uint32_t vector, const uint4& values) {
    *reinterpret_cast<uint4*>(tile + reader.row_of(vector) * kTileStride + reader.col_of(vector)) = values;
  };
  if constexpr (kVectors) {
    uint4 vectors[kVectorsALane];
#pragma unroll
    for (uint32_t i = 0; i < kVectorsALane; ++i) vectors[i] = reader.load(lane + 32 * i);
    __syncwarp();  // all lanes are done with the record before
#pragma unroll
    for (uint32_t i = 0; i < kVectorsALane; ++i) store(lane + 32 * i, vectors[i]);
  } else {
    __syncwarp();
#pragma unroll 1
    for (uint32_t i = 0; i < kVectorsALane; ++i) store(lane + 32 * i, reader.load(lane + 32 * i));
  }
}

template <bool kVectors>
__global__ void __launch_bounds__(kThreads, kBlocksResident)
    encode_records(const __grid_constant__ PackSource source, const __grid_constant__ PackScratch scratch,
                   const __grid_constant__ PackOutput output, uint64_t records) {
  __shared__ uint32_t codes[256];
  __shared__ __align__(16) uint16_t tiles[kWarps][kStripRows * kTileStride];
  __shared__ uint32_t slots[kWarps][fast::kMostSlotBytes / 4];
  for (uint32_t e = threadIdx.x; e < 256; e += kThreads) codes[e] = code_entry(e, source.base);
  __syncthreads();
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  uint16_t* const tile = tiles[warp];
  uint32_t* const slot = slots[warp];
  const uint64_t steps = source.grid.steps();
  for (uint64_t index = static_cast<uint64_t>(blockIdx.x) * kWarps + warp; index < records;
       index += static_cast<uint64_t>(gridDim.x) * kWarps) {
    const RecordAt at = record_at(source, index);
    load_tile<kVectors>(source, at, tile, lane);
    const RecordPatches found = scratch.patches[index];
    const uint32_t slot_bytes = fast::slot_bytes_of(output.slot_bytes, at.steps),
                   classed[2] = {found.classed[0], found.classed[1]};
    const fast::SlotSplit split = fast::split_patches(slot_bytes, classed, found.unclassed);
    const uint32_t place =
        output.overflow == nullptr ? 0 : scratch.tile_places[index / kPlaceTile] + scratch.places[index];
    uint32_t* const group = output.overflow + place;
    for (uint32_t i = lane; i < slot_bytes / 4; i += 32) slot[i] = 0;
    __syncwarp();
    PatchWriter writer(slot, split, group, lane);
    uint8_t* planes = output.planes + at.strip * fast::strip_bytes(steps) + at.record * fast::kRecordBytes;
#pragma unroll
    for (uint32_t chunk = 0; chunk < 2; ++chunk, planes += fast::kChunkBytes) {
      const uint32_t present = fast::chunk_steps(at.steps, chunk);
      if (present == 0) break;
      const LaneChunk words(tile, codes, chunk, lane);
      words.store(planes, present, lane);
      writer.write(tile, source.base, chunk, words, scratch.breaks_fusing);
    }
    __syncwarp();
    if (lane == 0 && slot_bytes > 0) {
      slot[0] |= split.entries[0] | split.entries[1] << 8;
      if (split.left > 0) {
        slot[0] |= fast::kSlotFlag;
        slot[slot_bytes / 4 - 1] = place;
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

}  // namespace

cudaError_t launch_encode(const PackSource& source, const PackScratch& scratch, const PackOutput& output,
                          uint32_t multiprocessors, cudaStream_t stream) {
  const uint64_t records = records_of(source);
  const uint32_t blocks = blocks_for(records, kWarps, multiprocessors * kBlocksResident);
  const auto kernel = source.has_vectors() ? encode_records<true> : encode_records<false>;
  kernel<<<blocks, kThreads, 0, stream>>>(source, scratch, output, records);
  return cudaGetLastError();
}

}  // namespace glyd::cuda
