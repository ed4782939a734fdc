#include "pack/pack_fast.hpp"

#include <algorithm>

#include "format/fast_plan.hpp"
#include "pack/pack_kernels.hpp"

namespace glyd::cuda {
namespace {

static_assert(kSlotSizes == fast::kSlotChoices);

// Counters first, in the order of PackScratch, then a record's entries.
constexpr uint64_t kCounterBytes = (256 + 2 * uint64_t{kSlotSizes} + 2) * 8;
static_assert(kCounterBytes % 16 == 0);

uint64_t records_of(const Grid& grid) { return grid.strips() * fast::records_a_strip(grid.steps()); }

PackScratch place_scratch(const Grid& grid, void* memory) {
  PackScratch scratch;
  scratch.exponents = static_cast<uint64_t*>(memory);
  scratch.words = scratch.exponents + 256;
  scratch.groups = scratch.words + kSlotSizes;
  scratch.breaks_fusing = reinterpret_cast<uint32_t*>(scratch.groups + kSlotSizes);
  scratch.patches = reinterpret_cast<RecordPatches*>(static_cast<uint8_t*>(memory) + kCounterBytes);
  scratch.places = reinterpret_cast<uint32_t*>(scratch.patches + records_of(grid));
  scratch.tile_places = scratch.places + records_of(grid);
  return scratch;
}

Result<void> check_call(const PackCall& call) {
  GLYD_CHECK(check_shape(call.grid));
  if (reinterpret_cast<uintptr_t>(call.pack) % kPackAlignment != 0) {
    return invalid_argument("pack: its device memory is not 128-byte aligned");
  }
  return Ok{};
}

Result<void> check_capacity(const PackHeader& header, const PackCall& call) {
  if (header.pack_bytes <= call.pack_capacity) return Ok{};
  return make_error(GLYD_ERROR_BUFFER_TOO_SMALL, "pack: it has {} bytes, {} were given", header.pack_bytes,
                    call.pack_capacity);
}

Result<void> check_scratch(const PackCall& call) {
  if (reinterpret_cast<uintptr_t>(call.scratch) % 16 != 0) {
    return invalid_argument("pack: the workspace is not 16-byte aligned");
  }
  if (call.scratch_bytes < pack_scratch_bytes(call.grid)) {
    return make_error(GLYD_ERROR_BUFFER_TOO_SMALL, "pack: {} bytes of workspace given, {} needed", call.scratch_bytes,
                      pack_scratch_bytes(call.grid));
  }
  return Ok{};
}

// Device to host on the stream, and waits.
template <typename T>
Result<void> fetch(T* out, const T* from, uint64_t count, cudaStream_t stream) {
  GLYD_CHECK(
      cuda_check(cudaMemcpyAsync(out, from, count * sizeof(T), cudaMemcpyDeviceToHost, stream), "cudaMemcpyAsync"));
  return cuda_check(cudaStreamSynchronize(stream), "pack");
}

Result<void> clear_padding(const PackHeader& header, uint8_t* pack, cudaStream_t stream) {
  for (uint32_t i = 0; i < kPackArrays; ++i) {
    const uint64_t end = header.array_offset(i) + header.array_bytes[i], padded = round_up(end, kPackAlignment);
    if (padded == end) continue;
    GLYD_CHECK(cuda_check(cudaMemsetAsync(pack + end, 0, padded - end, stream), "cudaMemsetAsync"));
  }
  return Ok{};
}

PackHeader raw_header(const PackCall& call) {
  PackHeader header;
  header.layout = Layout::kRaw;
  header.transposed = call.transposed;
  header.grid = call.grid;
  header.array_bytes[raw::kData] = header.bf16_bytes();
  finish_sizes(header);
  return header;
}

// The header in front of its arrays, when all else is enqueued; waits.
Result<void> finish(const PackHeader& header, const PackCall& call) {
  std::array<uint8_t, kPackHeaderBytes> bytes{};
  write_pack_header(header, bytes.data());
  GLYD_CHECK(cuda_check(cudaMemcpyAsync(call.pack, bytes.data(), bytes.size(), cudaMemcpyHostToDevice, call.stream),
                        "cudaMemcpyAsync"));
  return cuda_check(cudaStreamSynchronize(call.stream), "pack");
}

}  // namespace

uint64_t pack_scratch_bytes(const Grid& grid) {
  return kCounterBytes + records_of(grid) * (sizeof(RecordPatches) + sizeof(uint32_t)) +
         ceil_div(records_of(grid), uint64_t{kPlaceTile}) * sizeof(uint32_t);
}

Result<PackHeader> pack_raw(const PackCall& call) {
  GLYD_CHECK(check_call(call));
  const PackHeader header = raw_header(call);
  GLYD_CHECK(check_capacity(header, call));
  if (header.values() > 0) {
    GLYD_CHECK(cuda_check(cudaMemcpyAsync(call.pack + header.array_offset(raw::kData), call.values, header.bf16_bytes(),
                                          cudaMemcpyDeviceToDevice, call.stream),
                          "cudaMemcpyAsync"));
  }
  GLYD_CHECK(clear_padding(header, call.pack, call.stream));
  GLYD_CHECK(finish(header, call));
  return header;
}

Result<std::optional<PackHeader>> pack_fast(Context& context, const PackCall& call) {
  GLYD_CHECK(check_call(call));
  if (call.grid.stack * call.grid.rows * call.grid.cols == 0) return std::optional<PackHeader>{};
  GLYD_CHECK(check_scratch(call));
  const uint32_t multiprocessors = context.device().limits.multiprocessors;
  const PackScratch scratch = place_scratch(call.grid, call.scratch);
  PackSource source{call.values, call.grid, call.transposed, 0};
  GLYD_CHECK(cuda_check(cudaMemsetAsync(call.scratch, 0, kCounterBytes, call.stream), "cudaMemsetAsync"));
  GLYD_CHECK(cuda_check(launch_exponent_counts(source, scratch, multiprocessors, call.stream), "pack: exponents"));
  std::array<uint64_t, 256> exponents{};
  GLYD_CHECK(fetch(exponents.data(), scratch.exponents, exponents.size(), call.stream));
  source.base = fast::choose_base(exponents);

  GLYD_CHECK(cuda_check(launch_count_patches(source, scratch, multiprocessors, call.stream), "pack: patches"));
  fast::SlotTotals totals;
  std::array<uint64_t, 2 * kSlotSizes> sums{};
  GLYD_CHECK(fetch(sums.data(), scratch.words, sums.size(), call.stream));
  std::copy_n(sums.begin(), kSlotSizes, totals.words.begin());
  std::copy_n(sums.begin() + kSlotSizes, kSlotSizes, totals.groups.begin());
  const uint32_t slot_bytes = fast::choose_slot_bytes(call.grid, totals);
  const uint64_t words = slot_bytes == 0 ? 0 : totals.words[slot_bytes / 16];
  PackHeader header = fast::plan_header(call.grid, call.transposed, source.base, slot_bytes, words);
  if (words > UINT32_MAX || header.pack_bytes >= raw_header(call).pack_bytes) return std::optional<PackHeader>{};
  GLYD_CHECK(check_capacity(header, call));

  if (words > 0) {
    GLYD_CHECK(cuda_check(launch_place_groups(source, scratch, slot_bytes, call.stream), "pack: groups"));
  }
  const PackOutput output{
      call.pack + header.array_offset(fast::kPlanes), call.pack + header.array_offset(fast::kPatches),
      words == 0 ? nullptr : reinterpret_cast<uint32_t*>(call.pack + header.array_offset(fast::kOverflow)), slot_bytes};
  GLYD_CHECK(clear_padding(header, call.pack, call.stream));
  GLYD_CHECK(cuda_check(launch_encode(source, scratch, output, multiprocessors, call.stream), "pack: encode"));
  uint32_t breaks_fusing = 0;
  GLYD_CHECK(fetch(&breaks_fusing, scratch.breaks_fusing, 1, call.stream));
  header.fusible = breaks_fusing == 0;
  GLYD_CHECK(finish(header, call));
  return std::optional(header);
}

}  // namespace glyd::cuda
