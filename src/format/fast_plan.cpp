#include "format/fast_plan.hpp"

namespace glyd::fast {
namespace {

constexpr uint64_t kGroupPenaltyBytes = 64;

}  // namespace

uint32_t choose_base(const std::array<uint64_t, 256>& exponent_counts) {
  uint64_t held = 0;
  for (uint32_t e = 1; e <= kWindow; ++e) held += exponent_counts[e];
  uint32_t best = 1;
  uint64_t most = held;
  for (uint32_t base = 2; base <= kMostBase; ++base) {
    held += exponent_counts[base + kWindow - 1] - exponent_counts[base - 1];
    if (held > most) {
      most = held;
      best = base;
    }
  }
  return best;
}

void SlotTotals::add(uint32_t steps, const uint32_t (&classed)[2], uint32_t unclassed) {
  for (uint32_t i = 0; i < kSlotChoices; ++i) {
    const uint32_t used = words_of_choice(i, steps, classed, unclassed);
    words[i] += used;
    groups[i] += used > 0 ? 1 : 0;
  }
}

void SlotTotals::add(const SlotTotals& other) {
  for (uint32_t i = 0; i < kSlotChoices; ++i) {
    words[i] += other.words[i];
    groups[i] += other.groups[i];
  }
}

uint32_t choose_slot_bytes(const Grid& grid, const SlotTotals& totals) {
  if (totals.words[0] == 0) return 0;  // no patch at all; else slots are needed
  uint32_t best = 1;
  uint64_t least = UINT64_MAX;
  for (uint32_t i = 1; i < kSlotChoices; ++i) {
    const uint64_t slots = grid.strips() * strip_slot_bytes(16 * i, grid.steps());
    const uint64_t cost = round_up(slots, kPackAlignment) + round_up(4 * totals.words[i], kPackAlignment) +
                          kGroupPenaltyBytes * totals.groups[i];
    if (cost < least) {
      least = cost;
      best = i;
    }
  }
  return 16 * best;
}

// Measured: slot 48 with 10, 38 and 164 bytes of overflow a record take 0.83, 0.90 and 1.23 of bf16's time, slots of
// 224 and 336 bytes with 3 and 24 take 0.91 and 1.14. So a byte of overflow costs about what 5 bytes of slot do,
// and 1.05 is passed between weights of 240 and 457.
bool has_heavy_tails(const PackHeader& header) {
  constexpr uint64_t kOverflowWeight = 5, kMostBytes = 352;
  if (header.layout != Layout::kFast) return false;
  const uint64_t records = header.grid.strips() * records_a_strip(header.grid.steps());
  return header.array_bytes[kPatches] + kOverflowWeight * header.array_bytes[kOverflow] > kMostBytes * records;
}

PackHeader plan_header(const Grid& grid, bool transposed, uint32_t base, uint32_t slot_bytes, uint64_t overflow_words) {
  PackHeader header;
  header.layout = Layout::kFast;
  header.transposed = transposed;
  header.grid = grid;
  header.base = base;
  header.slot_bytes = slot_bytes;
  header.array_bytes[kPlanes] = grid.strips() * strip_bytes(grid.steps());
  header.array_bytes[kPatches] = grid.strips() * strip_slot_bytes(slot_bytes, grid.steps());
  header.array_bytes[kOverflow] = 4 * overflow_words;
  finish_sizes(header);
  return header;
}

}  // namespace glyd::fast
