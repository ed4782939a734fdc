// kernels_avx2.cpp - the kernels, compiled for avx2.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "codec/kernels/encode_body.hpp"
#include "codec/kernels/execute_body.hpp"
#include "codec/kernels/execute_coded_body.hpp"
#include "codec/kernels/floats_body.hpp"
#include "codec/kernels/hash_body.hpp"
#include "codec/kernels/huffman_body.hpp"
#include "codec/kernels/search_body.hpp"
#include "codec/kernels/search_bytes_body.hpp"
#include "codec/kernels/streams_body.hpp"
#include "codec/kernels/table.hpp"

namespace glyd::codec {

const Kernels kKernelsAvx2 = {
    decode_huffman, execute_coded, execute_bytes, expand_bits,  offset_codes, pack_bits,          encode_lane,
    histogram,      split_halves,  join_halves,   split_floats, join_floats,  split_floats_joint, join_floats_joint,
    search_default, search_max,    hash,          hash_start,   hash_add,     hash_value,
};

}  // namespace glyd::codec
