// pack_counts.cu - what the encoder chooses by: how often each exponent occurs, and what each slot size would cost.
#include "pack/record_reader.cuh"

namespace glyd::cuda {
namespace {

constexpr uint32_t kCountThreads = 256, kCountBlocks = 4;  // a multiprocessor; 32 KiB of counters each
constexpr uint32_t kThreads = 128, kWarps = kThreads / 32, kBlocksResident = 12;

// Counters a lane, so that the few exponents of trained weights do not make lanes wait for each other, nor banks.
__device__ __forceinline__ void count(uint32_t (&bins)[256 * 32], uint16_t value) {
  atomicAdd(&bins[bf16_exponent(value) * 32 + threadIdx.x % 32], 1u);
}

__global__ void __launch_bounds__(kCountThreads, kCountBlocks)
    count_exponents(const uint16_t* __restrict__ values, uint64_t total, uint64_t* out) {
  __shared__ uint32_t bins[256 * 32];
  for (uint32_t i = threadIdx.x; i < 256 * 32; i += kCountThreads) bins[i] = 0;
  __syncthreads();
  const uint64_t thread = static_cast<uint64_t>(blockIdx.x) * kCountThreads + threadIdx.x,
                 threads = static_cast<uint64_t>(gridDim.x) * kCountThreads;
  // Values before the first multiple of 16 bytes, vectors of 8, values behind the last.
  const uint64_t head = min(total, static_cast<uint64_t>((16 - reinterpret_cast<uintptr_t>(values) % 16) % 16 / 2)),
                 vectors = (total - head) / 8;
  const uint4* const body = reinterpret_cast<const uint4*>(values + head);
  const auto count_vector = [&](const uint4& v) {
    for (const uint32_t word : {v.x, v.y, v.z, v.w}) {
      count(bins, static_cast<uint16_t>(word));
      count(bins, static_cast<uint16_t>(word >> 16));
    }
  };
  uint64_t i = thread;
  for (; i + 3 * threads < vectors; i += 4 * threads) {
    const uint4 v[4] = {__ldg(body + i), __ldg(body + i + threads), __ldg(body + i + 2 * threads),
                        __ldg(body + i + 3 * threads)};
    for (const uint4& vector : v) count_vector(vector);
  }
  for (; i < vectors; i += threads) count_vector(__ldg(body + i));
  if (thread < head) count(bins, values[thread]);
  if (head + 8 * vectors + thread < total) count(bins, values[head + 8 * vectors + thread]);
  __syncthreads();
  uint32_t sum = 0;
  for (uint32_t k = 0; k < 32; ++k) sum += bins[threadIdx.x * 32 + (k + threadIdx.x) % 32];
  if (sum != 0) {
    atomicAdd(reinterpret_cast<unsigned long long*>(&out[threadIdx.x]), static_cast<unsigned long long>(sum));
  }
}
static_assert(kCountThreads == 256);  // a thread an exponent at the end

// 0 for an exponent in the window, 1 for one whose upper part has a class, 256 for another: a lane counts up to 64 of
// each.
__device__ __forceinline__ uint32_t patch_kind(uint32_t exponent, uint32_t base) {
  const uint32_t upper = fast::shift_exponent(exponent, base) / 8;
  return upper == fast::kWindowUpper ? 0 : fast::class_of_upper(upper) < 4 ? 1 : 256;
}

template <bool kVectors>
__global__ void __launch_bounds__(kThreads)
    count_patches(const __grid_constant__ PackSource source, const __grid_constant__ PackScratch scratch,
                  uint64_t records) {
  __shared__ uint32_t kinds[256];
  for (uint32_t e = threadIdx.x; e < 256; e += kThreads) kinds[e] = patch_kind(e, source.base);
  __syncthreads();
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  unsigned long long words = 0, groups = 0;  // of slot choice `lane`
  for (uint64_t index = static_cast<uint64_t>(blockIdx.x) * kWarps + warp; index < records;
       index += static_cast<uint64_t>(gridDim.x) * kWarps) {
    const RecordAt at = record_at(source, index);
    const RecordReader<kVectors> reader(source, at);
    uint4 vectors[kVectorsALane];
#pragma unroll
    for (uint32_t i = 0; i < kVectorsALane; ++i) vectors[i] = reader.load(lane + 32 * i);
    uint32_t by_chunk = 0, others = 0;  // classed patches in 16 bits a chunk
#pragma unroll
    for (uint32_t i = 0; i < kVectorsALane; ++i) {
      uint32_t sum = 0;
      for (const uint32_t word : {vectors[i].x, vectors[i].y, vectors[i].z, vectors[i].w}) {
        sum += kinds[bf16_exponent(static_cast<uint16_t>(word))] + kinds[word >> 23 & 0xff];
      }
      const uint32_t chunk = reader.col_of(lane + 32 * i) / (fast::kChunkSteps * kStepCols);
      by_chunk += (sum & 0xff) << (16 * chunk);
      others += sum >> 8;
    }
    by_chunk = __reduce_add_sync(~0u, by_chunk);
    others = __reduce_add_sync(~0u, others);
    const uint32_t classed[2] = {by_chunk & 0xffff, by_chunk >> 16};
    if (lane == 0) {
      scratch.patches[index] = {
          {static_cast<uint16_t>(classed[0]), static_cast<uint16_t>(classed[1])}, static_cast<uint16_t>(others), 0};
    }
    const uint32_t used =
        lane == 0 ? classed[0] + classed[1] + others
                  : fast::group_words(fast::split_patches(fast::slot_bytes_of(16 * lane, at.steps), classed, others));
    words += used;
    groups += used > 0;
  }
  if (lane >= kSlotSizes || words == 0) return;
  atomicAdd(reinterpret_cast<unsigned long long*>(&scratch.words[lane]), words);
  atomicAdd(reinterpret_cast<unsigned long long*>(&scratch.groups[lane]), groups);
}

// The sum over earlier threads of the block, and all of it.
struct BlockScan {
  uint32_t before, total;
};
__device__ __forceinline__ BlockScan scan_block(uint32_t own, uint32_t (&warp_sums)[32]) {
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  uint32_t sum = own;
  for (uint32_t step = 1; step < 32; step *= 2) {
    const uint32_t other = __shfl_up_sync(~0u, sum, step);
    if (lane >= step) sum += other;
  }
  if (lane == 31) warp_sums[warp] = sum;
  __syncthreads();
  BlockScan scan{sum - own, 0};
  for (uint32_t w = 0; w < 32; ++w) {
    if (w == warp) scan.before += scan.total;
    scan.total += warp_sums[w];
  }
  __syncthreads();
  return scan;
}

// Where each record's group begins within its tile, and how many words the tile has.
__global__ void __launch_bounds__(kPlaceTile)
    place_in_tiles(const __grid_constant__ PackSource source, const __grid_constant__ PackScratch scratch,
                   uint32_t slot_bytes, uint64_t records) {
  __shared__ uint32_t warp_sums[32];
  const uint64_t index = static_cast<uint64_t>(blockIdx.x) * kPlaceTile + threadIdx.x;
  uint32_t own = 0;
  if (index < records) {
    const RecordPatches found = scratch.patches[index];
    const uint32_t classed[2] = {found.classed[0], found.classed[1]};
    own = fast::group_words(
        fast::split_patches(fast::slot_bytes_of(slot_bytes, record_at(source, index).steps), classed, found.unclassed));
  }
  const BlockScan scan = scan_block(own, warp_sums);
  if (index < records) scratch.places[index] = scan.before;
  if (threadIdx.x == 0) scratch.tile_places[blockIdx.x] = scan.total;
}

// The tiles' words become places: a running sum, by one block.
__global__ void __launch_bounds__(1024) place_tiles(uint32_t* tiles, uint64_t count) {
  __shared__ uint32_t warp_sums[32];
  uint32_t before = 0;
  for (uint64_t first = 0; first < count; first += 1024) {
    const uint64_t index = first + threadIdx.x;
    const BlockScan scan = scan_block(index < count ? tiles[index] : 0, warp_sums);
    if (index < count) tiles[index] = before + scan.before;
    before += scan.total;
  }
}

}  // namespace

cudaError_t launch_exponent_counts(const PackSource& source, const PackScratch& scratch, uint32_t multiprocessors,
                                   cudaStream_t stream) {
  const uint64_t count = source.grid.stack * source.grid.rows * source.grid.cols;
  const uint32_t blocks = blocks_for(count, uint64_t{8} * kCountThreads, multiprocessors * kCountBlocks);
  count_exponents<<<blocks, kCountThreads, 0, stream>>>(source.values, count, scratch.exponents);
  return cudaGetLastError();
}

cudaError_t launch_count_patches(const PackSource& source, const PackScratch& scratch, uint32_t multiprocessors,
                                 cudaStream_t stream) {
  const uint64_t records = records_of(source);
  const uint32_t blocks = blocks_for(records, kWarps, multiprocessors * kBlocksResident);
  const auto kernel = source.has_vectors() ? count_patches<true> : count_patches<false>;
  kernel<<<blocks, kThreads, 0, stream>>>(source, scratch, records);
  return cudaGetLastError();
}

cudaError_t launch_place_groups(const PackSource& source, const PackScratch& scratch, uint32_t slot_bytes,
                                cudaStream_t stream) {
  const uint64_t records = records_of(source), tiles = (records + kPlaceTile - 1) / kPlaceTile;
  place_in_tiles<<<static_cast<uint32_t>(tiles), kPlaceTile, 0, stream>>>(source, scratch, slot_bytes, records);
  place_tiles<<<1, 1024, 0, stream>>>(scratch.tile_places, tiles);
  return cudaGetLastError();
}

}  // namespace glyd::cuda
