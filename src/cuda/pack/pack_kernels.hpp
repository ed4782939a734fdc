// pack_kernels.hpp - the passes of the GPU's `fast` encoder over a bf16 tensor; pack_fast.cpp chooses between them.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "format/geometry.hpp"

namespace glyd::cuda {

struct PackSource {
  const uint16_t* values = nullptr;
  Grid grid;
  bool transposed = false;
  uint32_t base = 0;
  // Whether eight neighbours in k are 16 aligned bytes.
  bool has_vectors() const {
    return !transposed && grid.cols % 8 == 0 && reinterpret_cast<uintptr_t>(values) % 16 == 0;
  }
};

// A record's patches: those whose upper part has a class, by chunk, and the others.
struct RecordPatches {
  uint16_t classed[2];
  uint16_t unclassed;
  uint16_t zero;
};

inline constexpr uint32_t kSlotSizes = fast::kMostSlotBytes / 16 + 1;  // 0, 16 ... 384
inline constexpr uint32_t kPlaceTile = 1024;                           // records whose groups one block places

// What the passes leave in device memory for each other and for the host.
struct PackScratch {
  uint64_t* exponents = nullptr;  // [256]
  uint64_t* words = nullptr;      // [kSlotSizes] of all groups, by slot size
  uint64_t* groups = nullptr;     // [kSlotSizes]
  uint32_t* breaks_fusing = nullptr;
  RecordPatches* patches = nullptr;  // a record each
  uint32_t* places = nullptr;        // of a record's group, from its tile's on
  uint32_t* tile_places = nullptr;   // a tile of kPlaceTile records each
};

// The arrays that are written.
struct PackOutput {
  uint8_t* planes = nullptr;
  uint8_t* slots = nullptr;
  uint32_t* overflow = nullptr;  // null: no record has a group, and none was placed
  uint32_t slot_bytes = 0;
};

cudaError_t launch_exponent_counts(const PackSource& source, const PackScratch& scratch, uint32_t multiprocessors,
                                   cudaStream_t stream);
cudaError_t launch_count_patches(const PackSource& source, const PackScratch& scratch, uint32_t multiprocessors,
                                 cudaStream_t stream);
cudaError_t launch_place_groups(const PackSource& source, const PackScratch& scratch, uint32_t slot_bytes,
                                cudaStream_t stream);
cudaError_t launch_encode(const PackSource& source, const PackScratch& scratch, const PackOutput& output,
                          uint32_t multiprocessors, cudaStream_t stream);

}  // namespace glyd::cuda
