// x_loader.cuh - rows of x in shared memory: the warp that fetches them, and how the others read them as tensor core
// operands.
#pragma once

#include "arch/bulk_copy.cuh"
#include "arch/matrix.cuh"
#include "arch/mbarrier.cuh"
#include "arch/shared_memory.cuh"
#include "arch/synchronize.cuh"
#include "gemm/scheduler.cuh"
#include "gemm/traits.hpp"

namespace glyd::cuda {

// Barriers of the pieces of x: full[i] at base + 8 i, empty[i] behind them.
struct XBarriers {
  uint32_t full, empty;
};

template <class T>
__device__ __forceinline__ void load_x_piece(const LinearParams& params, const CUtensorMap* map, uint32_t to,
                                             uint32_t chunk, uint32_t barrier) {
  const uint32_t cols = params.plan.cols, col = chunk * kChunkCols;
  if constexpr (T::kOneToken) {
    const uint32_t present = min(T::kPieceCols, cols - col);  // a multiple of 8: the plan saw to it
    // Columns up to the chunk's end are multiplied by padding weights, so they must be zeros.
    for (uint32_t c = present; c % kChunkCols != 0; c += 8) arch::store_shared_16(to + 2 * c, make_uint4(0, 0, 0, 0));
    arch::mbarrier_arrive_expect(barrier, 2 * present);
    arch::bulk_copy(to, params.x + col, 2 * present, barrier);
  } else {
    arch::mbarrier_arrive_expect(barrier, T::kPieceBytes);
    if (params.plan.x_by_chunk) {
#pragma unroll 1
      for (uint32_t c = 0; c < T::kPieceChunks; ++c) {
        arch::tensor_copy_2d(to + c * T::kXChunkBytes, map, col + c * kChunkCols, 0, barrier);
      }
    } else {
      arch::tensor_copy_3d(to, map, 0, 0, chunk, barrier);
    }
  }
}

// All pieces of x that the block needs, in order; by one thread.
template <class T>
__device__ __forceinline__ void load_x(const LinearParams& params, const CUtensorMap* map, const XRange& range,
                                       uint32_t shared, const XBarriers& barriers) {
  const uint32_t slots = params.plan.x_pieces;
  uint32_t slot = 0, parity = 1, piece = 0;
#pragma unroll 1
  for (uint32_t i = 0; i < range.total; ++i) {
    if (i >= slots) arch::mbarrier_wait(barriers.empty + slot * 8, parity);
    load_x_piece<T>(params, map, shared + T::kZeroLine + slot * T::kPieceBytes,
                    range.chunk_begin + piece * T::kPieceChunks, barriers.full + slot * 8);
    if (++slot == slots) slot = 0, parity ^= 1;
    if (++piece == range.pieces) piece = 0;
  }
}

// A multiplying warp's view of x.
template <class T>
class XReader {
 public:
  __device__ __forceinline__ XReader(const LinearPlan& plan, const XRange& range, uint32_t shared,
                                     const XBarriers& barriers, uint32_t lane)
      : barriers_(barriers), plan_(plan), pieces_(range.pieces), recycle_(range.recycle), lane_(lane) {
    const uint32_t row = lane & 7, octet = lane >> 3;
    if constexpr (T::kOneToken) {  // rows 1-7 of the operand read zeros
      address_ = shared + (row == 0 ? T::kZeroLine + octet * 16 : 0);
      mask_ = row == 0 ? ~0u : 0;
    } else {
      address_ = shared + row * 128 + ((octet ^ row) << 4);
      mask_ = ~0u;
    }
    if constexpr (T::kHoldX || T::kSplit) arch::pin(address_);
  }

  // Waits for the piece with chunk `chunk` (of the block's k) of round `round`; pieces passed on the way are given
  // back.
  __device__ __forceinline__ void advance(uint32_t chunk, uint32_t round) {
    const uint32_t piece = chunk / T::kPieceChunks, wanted = recycle_ ? round * pieces_ + piece : piece;
    if (__builtin_expect(seen_ <= wanted, 0)) visit(wanted);
    offset_ = ((recycle_ ? current_ : piece) * T::kPieceChunks + chunk % T::kPieceChunks) * T::kXChunkBytes;
  }

  // Passes the pieces that are left, so that the fetching warp gets through.
  __device__ __forceinline__ void finish(uint32_t total) {
    if (recycle_ && total > 0) visit(total - 1);
  }

  // Tokens 8 * tile ... of the chunk `next` chunks behind the one advanced to, k 0-31 (half 0) or 32-63: two steps'
  // operands, two registers each.
  __device__ __forceinline__ void load(uint32_t next, uint32_t tile, uint32_t half, uint32_t* out) const {
    const uint32_t at = address_ + ((offset_ + next * T::kXChunkBytes) & mask_) + tile * 1024;
    if constexpr (T::kOneToken) {
      arch::load_matrix_x4(out, half == 0 ? at : at + (64 & mask_));
    } else {
      arch::load_matrix_x4(out, half == 0 ? at : at ^ 64);
    }
  }

 private:
  __device__ __forceinline__ void visit(uint32_t wanted) {
#pragma unroll 1
    while (seen_ <= wanted) {
      if (recycle_ && seen_ > 0) {
        __syncwarp();
        if (lane_ == 0) arch::mbarrier_arrive(barriers_.empty + current_ * 8);
      }
      arch::mbarrier_wait(barriers_.full + slot_ * 8, parity_);
      current_ = slot_;
      if (++slot_ == plan_.x_pieces) slot_ = 0, parity_ ^= 1;
      ++seen_;
    }
  }

  XBarriers barriers_;
  const LinearPlan& plan_;
  uint32_t pieces_;
  bool recycle_;
  uint32_t lane_, address_ = 0, mask_ = 0, offset_ = 0;
  uint32_t seen_ = 0, slot_ = 0, parity_ = 0,
           current_ = 0;  // pieces waited for; where the next one comes; where the last is
};

}  // namespace glyd::cuda
