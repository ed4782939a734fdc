// shifted_record.hpp - records of layout `fast` as `linear` reads them: in fragment order, exponents left shifted
// (weights.md 4.1), and x scaled and ordered to match; or for matrix units.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "weights/linear/linear_kernels.hpp"
#include "weights/linear/matrix_kernels.hpp"
#include "weights/registry.hpp"

namespace glyd {

// x[tokens][cols] times 2^shift in fragment order to out[tokens][steps][kFragmentStep], zeros for padding columns.
// False where a value would not be exact (it overflows, or is or becomes subnormal).
bool scale_x(const uint16_t* x, uint64_t tokens, uint64_t x_stride, uint64_t cols, int shift, uint16_t* out);

// place_in_unit_tile by its meaning.
consteval bool unit_places_agree() {
  for (uint32_t place = 0; place < fast::kChunkSteps * kStepWeights; ++place) {
    const uint32_t lane = fast::place_lane(place), step = fast::place_step(place), index = fast::place_index(place);
    const auto col = step % 2 * kStepCols + fragment_col(lane, index);
    const auto pair = static_cast<uint32_t>(place_of_pair(PairOrder::kFours, col / 2));
    const auto steps = step / 2 * static_cast<uint32_t>(kUnitCols);
    if (place_in_unit_tile(place) != fragment_row(lane, index) * kUnitTileCols + steps + pair * 2 + col % 2)
      return false;
  }
  return true;
}
static_assert(unit_places_agree());

Error broken_patches(uint64_t strip, uint64_t record);

class ShiftedRecords {
 public:
  // The pack must be `fast`; decode needs kernels with decode_chunk. Both must outlive the object.
  ShiftedRecords(const OpenPack& pack, const LinearKernels& kernels);

  // Record `record` of strip `strip` (over the stack), patched, to a fragment tile. Steps that the record has not hold
  // anything finite. False if the record's patches break the format.
  [[nodiscard]] bool decode(uint64_t strip, uint64_t record, uint16_t* tile) const;

  // Where a record's planes and slot stand; of one that the pack has.
  struct Place {
    const uint8_t *planes, *slot;
  };
  Place place_of(uint64_t strip, uint64_t record) const {
    return {planes_.data() + strip * strip_bytes_ + record * fast::kRecordBytes,
            patches_.data() + strip * strip_slot_bytes_ + record * slot_bytes_};
  }
  // Planes to ask the caches for while a record is decoded, the first-level one and the second-level one; null for
  // none.
  struct Fetch {
    const uint8_t *soon, *ahead;
  };
  // The record at `place`, of a strip's records the one numbered `record`, to a tile for matrix units in the order
  // kFours, [16][kUnitTileCols], exponents as they are; patches as above. `meanwhile`, of another tile, is multiplied.
  [[nodiscard]] bool decode(const Place& place, uint64_t record, const MatrixKernels& unit, const Fetch& fetch,
                            MultiplyArgs meanwhile, uint16_t* tile) const;

  // The record's two chunks as they stand in the pack, or, of a record of fewer steps, completed in `scratch`: absent
  // steps are zero.
  const uint8_t* planes(uint64_t strip, uint64_t record, uint8_t (&scratch)[fast::kRecordBytes]) const;

  // Sets the upper parts of the record's patches in upper[kUpperBytes], which holds the window's everywhere. False if
  // the patches break the format.
  [[nodiscard]] bool set_upper(uint64_t strip, uint64_t record, uint8_t* upper) const;

 private:
  struct Slot {
    const uint8_t* bytes;
    uint32_t size;
  };
  // `scratch` takes a slot too near the array's end for what reads kSlotReadAhead bytes past a slot.
  Slot slot(uint64_t strip, uint64_t record, uint8_t (&scratch)[fast::kMostSlotBytes + kSlotReadAhead]) const;
  struct Entries {
    const uint8_t* bytes;
    uint32_t first, all;  // of chunk 0, of both
    bool has_group;
    uint32_t group;  // its word
  };
  std::optional<Entries> read_slot(const Slot& slot) const;
  // patch(chunk, place, upper) for all of a record's.
  template <typename Patch>
  [[nodiscard]] bool for_patches(uint64_t strip, uint64_t record, Patch patch) const;
  template <typename Patch>
  [[nodiscard]] bool for_overflow(uint32_t word, Patch patch) const;

  const LinearKernels& kernels_;
  ByteSpan planes_, patches_, overflow_;
  uint64_t steps_, strip_bytes_, strip_slot_bytes_;
  uint32_t slot_bytes_;
  uint16_t unit_offset_;  // the shift of exponents where they stand in a value
  // What makes an unshifted value of the window one with upper part u: [u][the exponent's lowest three bits].
  std::array<uint16_t, 32 * 8> unit_patches_;
  PatchAdditions class_patches_{};  // the same of the classes in slots
};

}  // namespace glyd
