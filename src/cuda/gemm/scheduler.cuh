// scheduler.cuh - which units a block has, which chunks a unit, and which part of x they need.
#pragma once

#include "gemm/traits.hpp"

namespace glyd::cuda {

struct Unit {
  uint32_t split, strip;
  uint32_t chunk_begin, chunk_end;  // of its split
  uint32_t record_begin, records;   // that hold them: the first and last may reach into other splits
};

template <class T>
__device__ __forceinline__ Unit unit_at(const LinearPlan& plan, uint32_t index) {
  Unit unit{0, index, 0, plan.chunks, 0, plan.records};
  if constexpr (T::kSplit) {
    while (unit.strip >= plan.strips) {  // few splits: cheaper than a division
      unit.strip -= plan.strips;
      ++unit.split;
    }
    unit.chunk_begin = unit.split * plan.split_chunks;
    unit.chunk_end = min(plan.chunks, unit.chunk_begin + plan.split_chunks);
    unit.record_begin = unit.chunk_begin / kRecordChunks;
    unit.records = (unit.chunk_end + kRecordChunks - 1) / kRecordChunks - unit.record_begin;
  }
  return unit;
}

// A warp's turn in its team: its first record in the unit; the turns go on where the unit before ended.
struct Turn {
  uint32_t first;

  __device__ __forceinline__ void advance(const LinearPlan& plan, uint32_t records) {
    const uint32_t rest = records - (records * plan.turn_magic >> 16) * plan.team_warps;  // records % team_warps
    first = first >= rest ? first - rest : first + plan.team_warps - rest;
  }
};

// A block's units, begin ... end - 1.
struct BlockUnits {
  uint32_t begin, end;

  __device__ __forceinline__ static BlockUnits of(const LinearPlan& plan, uint32_t block) {
    return {__umulhi(plan.units * block, plan.unit_magic), __umulhi(plan.units * (block + 1), plan.unit_magic)};
  }
};

// The part of x that a block's units need, from a record's start, in pieces.
struct XRange {
  uint32_t chunk_begin = 0, pieces = 0;
  uint32_t recycle = 0;  // they do not fit: they go round a ring, again for each round of units
  uint32_t total = 0;    // pieces fetched, over all rounds

  template <class T>
  __device__ __forceinline__ static XRange of(const LinearPlan& plan, const BlockUnits& units) {
    XRange range;
    if (units.begin >= units.end) return range;
    const Unit first = unit_at<T>(plan, units.begin), last = unit_at<T>(plan, units.end - 1);
    range.chunk_begin = first.record_begin * kRecordChunks;
    range.pieces = (last.chunk_end - range.chunk_begin + T::kPieceChunks - 1) / T::kPieceChunks;
    range.recycle = plan.x_pieces < range.pieces;
    range.total = range.pieces;
    if (range.recycle) range.total *= (units.end - units.begin + plan.teams - 1) / plan.teams;
    return range;
  }
};

}  // namespace glyd::cuda
