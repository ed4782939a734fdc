// kernels_avx512.cpp - the kernels, compiled for avx512.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "codec/kernels/execute_body.hpp"
#include "codec/kernels/floats_body.hpp"
#include "codec/kernels/huffman_body.hpp"
#include "codec/kernels/search_body.hpp"
#include "codec/kernels/table.hpp"

namespace glyd::codec {

const Kernels kKernelsAvx512 = {
    decode_huffman, execute_coded,
    execute_bytes,  expand_bits,
    count_tokens,   histogram,
    split_floats,   join_floats,
    search_max,     [](const uint8_t* bytes, size_t count) -> uint64_t { return XXH3_64bits(bytes, count); },
};

}  // namespace glyd::codec
