// ahead_order.hpp - the tiles of a block, in turn, and the records that are decoded meanwhile. On the host too, where
// plan_test finds every tile and every record exactly once.
#pragma once

#include "ahead/ahead_geometry.hpp"
#include "format/host_device.hpp"

namespace glyd::cuda {

struct AheadTile {
  uint32_t row_tile, token_tile;  // row_tile: one more than there are where their number is odd

  // Token tiles of a group innermost, then pairs of row tiles, then groups; `block` of the pair: 0 or 1.
  GLYD_HD static AheadTile at(const AheadPlan& plan, uint32_t index, uint32_t block) {
    const uint32_t a_group = plan.group_tiles * ((plan.row_tiles + 1) / 2), group = index / a_group;
    const uint32_t first = group * plan.group_tiles, left = plan.token_tiles - first;
    const uint32_t width = left < plan.group_tiles ? left : plan.group_tiles;
    const uint32_t in_group = index - group * a_group, pair = in_group / width;
    return {2 * pair + block, first + (in_group - pair * width)};
  }
};

// Which records come next: a wave of rows after another, in it ascending k, and then batches of four strips. Numbers
// ascend.
class BatchOrder {
 public:
  uint32_t strip = 0, record = 0;

  GLYD_HD explicit BatchOrder(const AheadPlan& plan) : plan_(plan) { enter(); }

  GLYD_HD void seek(uint32_t batch) {
    while (batch - before_ >= batches_ * plan_.records) {
      before_ += batches_ * plan_.records;
      first_ += plan_.wave_strips;
      enter();
    }
    const uint32_t number = batch - before_;
    // 2^32 / 1 is no 32-bit number.
    record = batches_ == 1 ? number : static_cast<uint32_t>(uint64_t{number} * magic_ >> 32);
    strip = first_ + (number - record * batches_) * kAheadBatch;
  }

 private:
  // Numbers in a wave times its batches stay below 2^32 (plan_ahead).
  GLYD_HD void enter() {
    const uint32_t left = plan_.strips - first_, strips = left < plan_.wave_strips ? left : plan_.wave_strips;
    batches_ = (strips + kAheadBatch - 1) / kAheadBatch;
    magic_ = ~0u / batches_ + 1;
  }

  const AheadPlan& plan_;
  uint32_t before_ = 0, first_ = 0;   // batches and strips of the waves before
  uint32_t batches_ = 1, magic_ = 0;  // of a record of the wave; 2^32 / batches_, rounded up
};

}  // namespace glyd::cuda
