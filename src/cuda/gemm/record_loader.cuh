// record_loader.cuh - the loader stage: records of a warp's units on their way from memory to its ring in shared
// memory.
#pragma once

#include "arch/bulk_copy.cuh"
#include "arch/mbarrier.cuh"
#include "arch/synchronize.cuh"
#include "gemm/scheduler.cuh"

namespace glyd::cuda {

// Walks a warp's records in the order in which it multiplies them. All members are the same in every lane.
template <class T>
class RecordLoader {
 public:
  __device__ __forceinline__ RecordLoader(const LinearParams& params, const BlockUnits& units, uint32_t team,
                                          uint32_t member)
      : params_(params), unit_(units.begin + team), unit_end_(units.end), turn_{member} {
    enter_unit();
  }

  // Starts the copy of the next record, if there is one, to `slot`; it completes on `barrier`.
  __device__ __forceinline__ void issue(uint32_t slot, uint32_t barrier) {
    const LinearPlan& plan = params_.plan;
    if (unit_ >= unit_end_) return;
    if (arch::elect_one()) {
      const bool tail = next_ == tail_;
      const uint32_t plane_bytes = tail ? plan.tail_plane_bytes : fast::kRecordBytes;
      const uint32_t slot_bytes = tail ? plan.tail_slot_copy : plan.slot_copy;
      arch::mbarrier_arrive_expect(barrier, plane_bytes + slot_bytes);
      arch::bulk_copy_hinted(slot, planes_, plane_bytes, barrier, arch::kEvictFirst);
      arch::bulk_copy(slot + fast::kRecordBytes, slots_, slot_bytes, barrier);
    }
    planes_ += plan.team_warps * fast::kRecordBytes;
    slots_ += plan.team_warps * plan.slot_stride;
    next_ += plan.team_warps;
    if (__builtin_expect(next_ >= records_, 0)) {
      unit_ += plan.teams;
      enter_unit();
    }
  }

 private:
  __device__ __forceinline__ void enter_unit() {
    const LinearPlan& plan = params_.plan;
    for (; unit_ < unit_end_; unit_ += plan.teams) {
      const Unit unit = unit_at<T>(plan, unit_);
      next_ = turn_.first;
      records_ = unit.records;
      turn_.advance(plan, unit.records);
      if (next_ >= records_) continue;  // fewer records than warps
      tail_ = plan.tail_steps < fast::kRecordSteps ? plan.records - 1 - unit.record_begin : ~0u;
      const uint64_t record = unit.record_begin + next_;
      planes_ = params_.planes + static_cast<uint64_t>(unit.strip) * plan.strip_bytes + record * fast::kRecordBytes;
      slots_ = params_.slots + static_cast<uint64_t>(unit.strip) * plan.strip_slot_bytes + record * plan.slot_stride;
      return;
    }
  }

  const LinearParams& params_;
  uint32_t unit_, unit_end_;
  Turn turn_;
  uint32_t next_ = 0, records_ = 0, tail_ = ~0u;  // records of the unit
  const uint8_t* planes_ = nullptr;
  const uint8_t* slots_ = nullptr;
};

}  // namespace glyd::cuda
