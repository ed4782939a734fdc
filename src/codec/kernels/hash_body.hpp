// hash_body.hpp - XXH3, 64 bits, seed 0. Included once for each instruction set, after xxhash.h.
#pragma once

#include <new>

#include "codec/kernels/kernels.hpp"

namespace glyd::codec {
namespace {

static_assert(sizeof(XXH3_state_t) <= sizeof(HashState) && alignof(XXH3_state_t) <= alignof(HashState));

inline uint64_t hash(const uint8_t* bytes, size_t count) { return XXH3_64bits(bytes, count); }
inline void hash_start(HashState& state) { XXH3_64bits_reset(new (&state) XXH3_state_t); }
inline void hash_add(HashState& state, const uint8_t* bytes, size_t count) {
  XXH3_64bits_update(reinterpret_cast<XXH3_state_t*>(&state), bytes, count);
}
inline uint64_t hash_value(const HashState& state) {
  return XXH3_64bits_digest(reinterpret_cast<const XXH3_state_t*>(&state));
}

}  // namespace
}  // namespace glyd::codec
