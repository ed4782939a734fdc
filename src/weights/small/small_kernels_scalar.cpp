#include "base/bytes.hpp"
#include "weights/registry.hpp"
#include "weights/small/small_scalar_loops.hpp"

namespace glyd::small {
namespace {

bool look_up(const LookupTables& tables, const StreamBits& bits, uint32_t steps, StreamEntries& out) {
  uint32_t flags = 0;
  for (uint32_t region = 0; region < kRegions; region += 2)
    flags |= look_up_regions<2>(tables, bits, region, steps, out);
  return flags == 0;
}

void join(const StreamEntries& entries, const uint8_t* planes, uint32_t steps, uint16_t* tile) {
  for (uint32_t step = 0; step < steps; ++step) {
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      for (uint32_t pair = 0; pair < 4; ++pair) {
        const auto word = load_le<uint32_t>(planes + (step * kLanes + lane) * 8 + pair / 2 * 4);
        const uint32_t signs_mantissas = (pair % 2 == 0 ? word : word >> 8 | word << 24) & kPairMask;
        const uint32_t value = signs_mantissas | (entries.entries[step][pair][lane] & kEntryExponents);
        store_le<uint32_t>(tile + pair_row(lane, pair) * kTileStride + step * kStepCols + pair_col(lane, pair), value);
      }
    }
  }
}

void split(const uint16_t* tile, uint32_t steps, uint8_t* planes) {
  for (uint32_t step = 0; step < steps; ++step) {
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      for (uint32_t word = 0; word < 2; ++word) {
        store_le<uint32_t>(planes + (step * kLanes + lane) * 8 + word * 4,
                           plane_word(pair_at(tile, step, lane, 2 * word), pair_at(tile, step, lane, 2 * word + 1)));
      }
    }
  }
}

}  // namespace

const Kernels kScalarKernels = {look_up, join, split, number_pairs};

}  // namespace glyd::small
