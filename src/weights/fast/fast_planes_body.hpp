// fast_planes_body.hpp - chunks of layout `fast` by vectors, whatever their width. Spec: docs/spec/weights.md 4.2.
// Included inside the namespace of a kernel file, behind its Vector, kGroupLanes, StepBytes, join_step, split_step,
// unpack_high, pack_high, window_offset and the vector helpers of its instruction set; so each gets its own, compiled
// by its flags.

constexpr uint32_t kGroupRows = kGroupLanes / 4;

void load_low(const uint8_t* low, uint32_t group, uint32_t present, StepBytes& first, StepBytes& second) {
  if (present >= 2) {
    const uint8_t* p = low + group * kGroupLanes * 16;
    Vector v[4];
    for (uint32_t k = 0; k < 4; ++k) v[k] = load_groups(p + 16 * k, 64);
    transpose(v);
    first.low[0] = v[0];
    first.low[1] = v[1];
    second.low[0] = v[2];
    second.low[1] = v[3];
  } else {
    const uint8_t* p = low + group * kGroupLanes * 8;
    const Vector a = load_groups(p, 32), b = load_groups(p + 16, 32);
    first.low[0] = evens(a, b);
    first.low[1] = odds(a, b);
  }
}

void store_low(uint8_t* low, uint32_t group, uint32_t present, const StepBytes& first, const StepBytes& second) {
  if (present >= 2) {
    uint8_t* p = low + group * kGroupLanes * 16;
    Vector v[4] = {first.low[0], first.low[1], second.low[0], second.low[1]};
    transpose(v);
    for (uint32_t k = 0; k < 4; ++k) store_groups(p + 16 * k, 64, v[k]);
  } else {
    uint8_t* p = low + group * kGroupLanes * 8;
    store_groups(p, 32, weave_front(first.low[0], first.low[1]));
    store_groups(p + 16, 32, weave_back(first.low[0], first.low[1]));
  }
}

// The two planes are read by turns, which no hardware prefetcher follows.
void prefetch_ahead(const uint8_t* planes, uint32_t group) {
  constexpr uint32_t kAhead = 4 * kRecordBytes, kShare = kChunkBytes * kGroupLanes / kLanes;
  const uint8_t* p = planes + kAhead + group * kShare;
  for (uint32_t i = 0; i < kShare; i += 64) _mm_prefetch(reinterpret_cast<const char*>(p + i), _MM_HINT_T0);
}

inline __attribute__((always_inline)) void decode_chunk(const uint8_t* planes, uint32_t steps, Vector offset,
                                                        uint16_t* tile) {
  const uint8_t* high = planes + low_plane_bytes(steps);
  for (uint32_t group = 0; group < kLanes / kGroupLanes; ++group) {
    prefetch_ahead(planes, group);
    Vector x[3] = {};
    for (uint32_t i = 0; i < 3 && i < steps; ++i) x[i] = load(high + i * 128 + group * sizeof(Vector));
    StepBytes bytes[4];
    unpack_high(x, bytes);
    uint16_t* rows = tile + kGroupRows * group * kTileStride;
    for (uint32_t step = 0; step < steps; step += 2) {
      load_low(planes + step * 256, group, steps - step, bytes[step], bytes[step + 1]);
      join_step(bytes[step], offset, rows + step * kStepCols);
      if (step + 1 < steps) join_step(bytes[step + 1], offset, rows + (step + 1) * kStepCols);
    }
  }
}

inline __attribute__((always_inline)) void encode_chunk(const uint16_t* tile, uint32_t steps, Vector offset,
                                                        uint8_t* planes) {
  uint8_t* high = planes + low_plane_bytes(steps);
  for (uint32_t group = 0; group < kLanes / kGroupLanes; ++group) {
    StepBytes bytes[4] = {};
    const uint16_t* rows = tile + kGroupRows * group * kTileStride;
    for (uint32_t step = 0; step < steps; ++step) bytes[step] = split_step(rows + step * kStepCols, offset);
    for (uint32_t step = 0; step < steps; step += 2) {
      store_low(planes + step * 256, group, steps - step, bytes[step], bytes[step + 1]);
    }
    Vector x[3];
    pack_high(bytes, x);
    for (uint32_t i = 0; i < 3 && i < steps; ++i) store(high + i * 128 + group * sizeof(Vector), x[i]);
  }
}

// A full chunk's loops are unrolled.
void encode_planes(const uint16_t* tile, uint32_t steps, uint32_t base, uint8_t* planes) {
  for (uint32_t chunk = 0; chunk < 2; ++chunk) {
    const uint32_t present = chunk_steps(steps, chunk);
    if (present == kChunkSteps) {
      encode_chunk(tile, kChunkSteps, window_offset(base), planes);
    } else {
      encode_chunk(tile, present, window_offset(base), planes);
    }
    tile += kChunkSteps * kStepCols;
    planes += chunk_bytes(present);
  }
}

void decode_planes(const uint8_t* planes, uint32_t steps, uint32_t base, uint16_t* tile) {
  for (uint32_t chunk = 0; chunk < 2; ++chunk) {
    const uint32_t present = chunk_steps(steps, chunk);
    if (present == kChunkSteps) {
      decode_chunk(planes, kChunkSteps, window_offset(base), tile);
    } else {
      decode_chunk(planes, present, window_offset(base), tile);
    }
    tile += kChunkSteps * kStepCols;
    planes += chunk_bytes(present);
  }
}
