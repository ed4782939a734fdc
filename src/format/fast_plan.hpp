// fast_plan.hpp - what the encoder of layout `fast` may choose, chosen from counts alone, so that every encoder writes
// the same bytes. Why: docs/adr/0002-layouts.md.
#pragma once

#include <array>
#include <cstdint>

#include "format/fast_patch.hpp"
#include "format/pack_header.hpp"

namespace glyd::fast {

inline constexpr uint32_t kSlotChoices = kMostSlotBytes / 16 + 1;  // 0, 16, ... 384

// The window of 8 that holds the most weights, within exponents 1-254; of equal ones the lowest.
uint32_t choose_base(const std::array<uint64_t, 256>& exponent_counts);

// What groups would cost with each slot size, summed over records: choice i is slot_bytes = 16 i.
struct SlotTotals {
  std::array<uint64_t, kSlotChoices> words{};   // of all groups; choice 0: the patches there are
  std::array<uint64_t, kSlotChoices> groups{};  // records that have one
  // One record of `steps` steps with this many patches.
  void add(uint32_t steps, const uint32_t (&classed)[2], uint32_t unclassed);
  void add(const SlotTotals& other);
};
// A record's part of choice `choice`: the words of its group, 0 if it has none (choice 0: its patches).
GLYD_HD constexpr uint32_t words_of_choice(uint32_t choice, uint32_t steps, const uint32_t (&classed)[2],
                                           uint32_t unclassed) {
  if (choice == 0) return classed[0] + classed[1] + unclassed;
  return group_words(split_patches(slot_bytes_of(16 * choice, steps), classed, unclassed));
}

// The choice of fewest bytes, each record with a group counted 64 bytes dearer (its warp waits for a second read); of
// equal ones the least.
uint32_t choose_slot_bytes(const Grid& grid, const SlotTotals& totals);

// Whether the tensor has so heavy tails that a product of few tokens reads its patches for longer than bf16 would take
// (1.05 of cuBLAS's time on an H200; docs/gpu.md, "Heavy tails"). From a pack's sizes alone.
bool has_heavy_tails(const PackHeader& header);

// A header with every size set; `fusible` is still to be found.
PackHeader plan_header(const Grid& grid, bool transposed, uint32_t base, uint32_t slot_bytes, uint64_t overflow_words);

}  // namespace glyd::fast
