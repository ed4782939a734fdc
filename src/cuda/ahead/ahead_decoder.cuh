// ahead_decoder.cuh - warps that decode records to the scratch, whichever are next.
#pragma once

#include "ahead/ahead_order.hpp"
#include "ahead/ahead_params.hpp"
#include "arch/global_memory.cuh"
#include "arch/matrix.cuh"
#include "arch/synchronize.cuh"
#include "decode/fast_record.cuh"

namespace glyd::cuda {

// A patch slot's header, and the words that hold the lane's entry.
struct SlotPatch {
  uint32_t header, first, second;
};

// A record's stored words and the lane's patch, from global memory.
struct GlobalRecord {
  ChunkWords chunks[2];
  SlotPatch patches;

  __device__ __forceinline__ void load(const uint8_t* planes, const uint8_t* slot, uint32_t lane, uint32_t last_word) {
#pragma unroll
    for (uint32_t c = 0; c < 2; ++c) {
      const uint8_t* const at = planes + c * fast::kChunkBytes;
#pragma unroll
      for (uint32_t pair = 0; pair < 2; ++pair) {
        const uint4 v = arch::load_once_16(at + pair * 512 + lane * 16);
        chunks[c].low[4 * pair] = v.x, chunks[c].low[4 * pair + 1] = v.y;
        chunks[c].low[4 * pair + 2] = v.z, chunks[c].low[4 * pair + 3] = v.w;
      }
#pragma unroll
      for (uint32_t i = 0; i < 3; ++i) chunks[c].high[i] = arch::load_once_4(at + 1024 + 128 * i + lane * 4);
    }
    const uint32_t word = entry_word(lane);
    patches = {arch::load_once_4(slot), arch::load_once_4(slot + min(word, last_word) * 4),
               arch::load_once_4(slot + min(word + 1, last_word) * 4)};
  }
};

class AheadDecoder {
 public:
  __device__ __forceinline__ AheadDecoder(const AheadParams& params, uint32_t decoded, uint32_t lane)
      : params_(params),
        plan_(params.plan),
        lane_(lane),
        decoded_(decoded),
        order_(params.plan),
        batches_(ahead_batches(params.plan)),
        last_word_(params.plan.slot_copy / 4 - 1),
        last_claim_(batches_ + gridDim.x * kAheadDecoders - 1) {
    arch::pin(window_);
#pragma unroll
    for (uint32_t step = 0; step < 4; ++step) store_at_[step] = decoded + swizzled_strip::row_of(lane, step);
  }

  __device__ __forceinline__ void run() {
    uint32_t claimed = claim();
    Batch batch;
    bool more = open(claimed, batch);
    if (!more) return;
    claimed = claim();
    GlobalRecord words;
    words.load(batch.planes, batch.slot, lane_, last_word_);
    uint32_t* told = nullptr;  // the flag of the batch before
    uint32_t half = 0;
#pragma unroll 1
    while (more) {
      const Batch here = batch;
      const uint8_t* slot = here.slot;
      uint8_t* to = here.to;
#pragma unroll 1
      for (uint32_t left = here.strips; left > 0; --left, to += kAheadStripBytes) {
        uint32_t out[2][16];
        decode_unpatched(words.chunks, window_, out);
        const SlotPatch patches = words.patches;
        const uint8_t* const this_slot = slot;
        if (left > 1) {
          batch.planes += plan_.strip_bytes;
          slot = batch.slot += plan_.strip_slot_bytes;
        } else if ((more = open(claimed, batch))) {
          claimed = claim();
        }
        if (more) words.load(batch.planes, batch.slot, lane_, last_word_);
        store(out, half);
        apply(patches, this_slot, half);
        send(to, half);
        half ^= kAheadRecordBytes;
      }
      if (told != nullptr) tell(told, here.strips);
      told = here.flag;
    }
    tell(told, 0);
  }

 private:
  // Records of the same columns of up to four strips.
  struct Batch {
    const uint8_t* planes = nullptr;  // of the record that comes next
    const uint8_t* slot = nullptr;
    uint8_t* to = nullptr;
    uint32_t* flag = nullptr;
    uint32_t strips = 0;
  };

  // Asks for a batch; its answer is lane 0's.
  __device__ __forceinline__ uint32_t claim() const { return lane_ == 0 ? atomicAdd(next(), 1) : 0; }
  __device__ __forceinline__ uint32_t* next() const { return params_.arrivals + (ahead_flag_words(plan_) - 1); }

  // The batch that was claimed; false when there is none.
  __device__ __forceinline__ bool open(uint32_t claimed, Batch& batch) {
    const uint32_t number = __shfl_sync(~0u, claimed, 0) + 1;  // starts at all ones
    if (number >= batches_) {
      // Every decoder asks once in vain; the last of them leaves all ones.
      if (number == last_claim_ && lane_ == 0) *next() = ~0u;
      return false;
    }
    order_.seek(number);
    const uint32_t strip = order_.strip, record = order_.record, tile = strip / kAheadTileStrips;
    batch.strips = min(kAheadBatch, plan_.strips - strip);
    batch.planes = params_.planes + static_cast<uint64_t>(strip) * plan_.strip_bytes +
                   static_cast<uint64_t>(record) * fast::kRecordBytes;
    batch.slot = params_.slots + static_cast<uint64_t>(strip) * plan_.strip_slot_bytes + record * plan_.slot_stride;
    batch.flag = params_.arrivals + tile * plan_.records + record;
    batch.to = params_.scratch +
               (static_cast<uint64_t>(tile) * plan_.chunks + record * kRecordChunks) * kAheadChunkBytes +
               strip % kAheadTileStrips * kAheadStripBytes;
#pragma unroll
    for (uint32_t i = 1; i < kAheadBatch; ++i) {
      if (i < batch.strips && lane_ * 128 < fast::kRecordBytes)
        arch::prefetch_to_l2(batch.planes + i * static_cast<uint64_t>(plan_.strip_bytes) + lane_ * 128);
    }
    return true;
  }

  // A decoded record, unpatched, to one of the warp's two places in shared memory.
  __device__ __forceinline__ void store(const uint32_t (&out)[2][16], uint32_t half) const {
    if (arch::elect_one()) arch::bulk_store_wait_read<1>();  // what was here has left
    __syncwarp();
#pragma unroll
    for (uint32_t c = 0; c < 2; ++c) {
#pragma unroll
      for (uint32_t step = 0; step < 4; ++step) {
        arch::store_matrix_x4(store_at_[step] + half + c * kAheadStripBytes, &out[c][4 * step]);
      }
    }
    __syncwarp();
  }

  __device__ __forceinline__ void apply(const SlotPatch& words, const uint8_t* slot, uint32_t half) const {
    const SlotHeader header = slot_header(words.header);
    if (lane_ < min(header.entries(), plan_.slot_entries)) {
      patch(slot_patch(__funnelshift_r(words.first, words.second, entry_shift(lane_)), lane_ >= header.first), half);
    }
    if (__builtin_expect(header.crowded(), 0)) apply_rest(header, slot, half);
  }
  // Entries past the 32nd, and the overflow group; reads stay inside whatever the pack says.
  __device__ __forceinline__ void apply_rest(const SlotHeader& header, const uint8_t* slot, uint32_t half) const {
    const uint32_t* const words = reinterpret_cast<const uint32_t*>(slot);
    const uint32_t entries = min(header.entries(), plan_.slot_entries);
#pragma unroll 1
    for (uint32_t i = 32 + lane_; i < entries; i += 32) {
      const uint32_t word = entry_word(i);
      const uint32_t bits = __funnelshift_r(words[word], words[min(word + 1, last_word_)], entry_shift(i));
      patch(slot_patch(bits, i >= header.first), half);
    }
    if (header.overflow == 0) return;
    const uint32_t group = words[last_word_];
    if (group >= params_.overflow_words) return;
    const uint32_t count = min(params_.overflow[group], params_.overflow_words - 1 - group);
#pragma unroll 1
    for (uint32_t i = lane_; i < count; i += 32) patch(overflow_patch(params_.overflow[group + 1 + i]), half);
  }
  __device__ __forceinline__ void patch(const Patch& patch, uint32_t half) const {
    swizzled_strip::patch(decoded_ + half + patch.place / fast::kChunkWeights * kAheadStripBytes, patch);
  }

  // A record on its way to its place in the scratch.
  __device__ __forceinline__ void send(uint8_t* to, uint32_t half) const {
    arch::shared_stores_fence();
    __syncwarp();
    if (!arch::elect_one()) return;
#pragma unroll
    for (uint32_t c = 0; c < kRecordChunks; ++c)
      arch::bulk_store(to + c * kAheadChunkBytes, decoded_ + half + c * kAheadStripBytes, kAheadStripBytes);
    arch::bulk_store_commit();
  }

  // A batch is there for every block: all that was sent but the last `sent` records.
  __device__ __forceinline__ void tell(uint32_t* flag, uint32_t sent) const {
    if (!arch::elect_one()) return;
    if (sent == kAheadBatch) {
      arch::bulk_store_wait<kAheadBatch>();
    } else {
      arch::bulk_store_wait<0>();
    }
    arch::add_release(flag, 1);
  }

  const AheadParams& params_;
  const AheadPlan& plan_;
  uint32_t lane_, decoded_;
  uint32_t store_at_[4];
  BatchOrder order_;
  uint32_t batches_, last_word_, last_claim_;
  uint32_t window_ = kWindowWord;
};

}  // namespace glyd::cuda
