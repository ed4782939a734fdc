// Helpers of layout `fast`: exponents, planes, places, slots, and what the encoder chooses.
#include <gtest/gtest.h>

#include <random>

#include "format/fast_plan.hpp"

namespace glyd::fast::test {
namespace {

TEST(FastFormat, ShiftedExponentsAreABijection) {
  for (uint32_t base = 1; base <= kMostBase; ++base) {
    bool taken[256] = {};
    for (uint32_t e = 0; e < 256; ++e) {
      const uint32_t shifted = shift_exponent(e, base);
      ASSERT_LT(shifted, 256u);
      EXPECT_FALSE(taken[shifted]);
      taken[shifted] = true;
      EXPECT_EQ(unshift_exponent(shifted, base), e);
      const bool in_window = e >= base && e < base + kWindow;
      EXPECT_EQ(shifted / 8 == kWindowUpper, in_window) << base << " " << e;
      EXPECT_TRUE(!in_window || shifted == 120 + e - base);
      EXPECT_EQ(breaks_fusing(e, 1, base), e == 0 || (e != 255 && shifted != e + 120 - base)) << base << " " << e;
    }
  }
}

TEST(FastFormat, HighPlaneComesBack) {
  std::mt19937 random(1);
  for (int i = 0; i < 1000; ++i) {
    uint32_t words[8], x[3], back[8];
    for (uint32_t& word : words) word = random() & kHighMask;
    pack_high(words, x);
    unpack_high(x, back);
    for (int w = 0; w < 8; ++w) EXPECT_EQ(back[w], words[w]);
  }
}

TEST(FastFormat, PlacesCoverAChunk) {
  bool taken[kChunkWeights] = {};
  for (uint32_t step = 0; step < kChunkSteps; ++step) {
    for (uint32_t row = 0; row < kStripRows; ++row) {
      for (uint32_t col = 0; col < kStepCols; ++col) {
        const uint32_t place = place_of(step, fragment_lane(row, col), fragment_index(row, col));
        ASSERT_LT(place, kChunkWeights);
        EXPECT_FALSE(taken[place]);
        taken[place] = true;
        EXPECT_EQ(place_row(place), row);
        EXPECT_EQ(place_col(0, place), step * kStepCols + col);
      }
    }
  }
}

TEST(FastFormat, SlotEntriesComeBack) {
  uint8_t slot[64] = {};
  for (uint32_t i = 0; i < slot_room(64, false); ++i) write_slot_entry(slot, i, (i * 2654435761u >> 7) & 0xfff);
  for (uint32_t i = 0; i < slot_room(64, false); ++i)
    EXPECT_EQ(read_slot_entry(slot, i), (i * 2654435761u >> 7) & 0xfff) << i;
}

TEST(FastFormat, PatchesAreSplitAsTheSpecSays) {
  const auto split = [](uint32_t bytes, uint32_t first, uint32_t second, uint32_t unclassed) {
    const uint32_t classed[2] = {first, second};
    return split_patches(bytes, classed, unclassed);
  };
  EXPECT_EQ(split(64, 20, 21, 0).left, 0u);         // 41 entries fit exactly
  EXPECT_EQ(split(64, 20, 22, 0).entries[1], 18u);  // one more: a group, so room for 38
  EXPECT_EQ(split(64, 20, 22, 0).left, 4u);
  EXPECT_EQ(split(64, 3, 4, 1).left, 1u);             // no class: always in the group
  EXPECT_EQ(split(384, 128, 0, 0).entries[0], 127u);  // at most 127 a chunk
  EXPECT_EQ(split(384, 128, 0, 0).left, 1u);
  EXPECT_EQ(split(16, 9, 0, 0).left, 0u);
  EXPECT_EQ(split(16, 0, 10, 0).entries[1], 6u);
}

TEST(FastPlan, WindowOfMostWeights) {
  std::array<uint64_t, 256> counts{};
  EXPECT_EQ(choose_base(counts), 1u);
  counts[0] = 1000;  // never in a window
  counts[255] = 1000;
  counts[120] = 5;
  EXPECT_EQ(choose_base(counts), 113u);  // the lowest window that has it
  counts[127] = 5;
  EXPECT_EQ(choose_base(counts), 120u);
  counts[254] = 100;
  EXPECT_EQ(choose_base(counts), 247u);
}

TEST(FastPlan, SlotsForWhatThereIs) {
  const Grid grid{1, 1600, 1280};  // 100 strips of 10 records
  SlotTotals none;
  for (int i = 0; i < 1000; ++i) none.add(8, {0, 0}, 0);
  EXPECT_EQ(choose_slot_bytes(grid, none), 0u);
  SlotTotals some;
  for (int i = 0; i < 1000; ++i) some.add(8, {15, 15}, 0);
  EXPECT_EQ(choose_slot_bytes(grid, some), 48u);  // 30 entries in 46 bytes
  SlotTotals one;
  for (int i = 0; i < 999; ++i) one.add(8, {0, 0}, 0);
  one.add(8, {100, 100}, 0);  // a single full record does not make all slots larger
  EXPECT_EQ(choose_slot_bytes(grid, one), 16u);
}

}  // namespace
}  // namespace glyd::fast::test
