// scheduler.cuh - which units a block has, and which chunks a unit.
#pragma once

#include "gemm/params.hpp"

namespace glyd::cuda {

struct Unit {
  uint32_t split, strip;
  uint32_t chunk_begin, chunk_end;  // of its split
  uint32_t record_begin, records;   // that hold them: the first and last may reach into other splits
};

__device__ __forceinline__ Unit unit_at(const LinearPlan& plan, uint32_t index) {
  Unit unit;
  unit.split = 0;
  while (index >= plan.strips) {  // few splits: cheaper than a division
    index -= plan.strips;
    ++unit.split;
  }
  unit.strip = index;
  unit.chunk_begin = unit.split * plan.split_chunks;
  unit.chunk_end = min(plan.chunks, unit.chunk_begin + plan.split_chunks);
  unit.record_begin = unit.chunk_begin / kRecordChunks;
  unit.records = (unit.chunk_end + kRecordChunks - 1) / kRecordChunks - unit.record_begin;
  return unit;
}

struct BlockWork {
  uint32_t unit_begin, unit_end;
  uint32_t chunk_begin, chunks;  // the part of x that its units need, from a record's start
  uint32_t pieces;               // of x
  bool recycle;                  // they do not fit: they go round a ring, again for each round of units
  uint32_t total_pieces;         // over all rounds

  template <class T>
  __device__ __forceinline__ static BlockWork of(const LinearPlan& plan, uint32_t block) {
    BlockWork work;
    work.unit_begin = __umulhi(plan.units * block, plan.unit_magic);
    work.unit_end = __umulhi(plan.units * (block + 1), plan.unit_magic);
    if (work.unit_begin >= work.unit_end) {
      work.chunk_begin = work.chunks = work.pieces = work.total_pieces = 0;
      work.recycle = false;
      return work;
    }
    const Unit first = unit_at(plan, work.unit_begin), last = unit_at(plan, work.unit_end - 1);
    work.chunk_begin = first.record_begin * kRecordChunks;
    work.chunks = last.chunk_end - work.chunk_begin;
    work.pieces = (work.chunks + T::kPieceChunks - 1) / T::kPieceChunks;
    work.recycle = plan.x_pieces < work.pieces;
    const uint32_t rounds = (work.unit_end - work.unit_begin + plan.teams - 1) / plan.teams;
    work.total_pieces = work.recycle ? rounds * work.pieces : work.pieces;
    return work;
  }
};

}  // namespace glyd::cuda
