// codec_reference.hpp - a slow, plain decoder of frames, written from docs/spec/codec.md alone: the oracle of the real
// one.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <vector>

namespace glyd::reference {

// What a frame may not be; says which section it breaks.
struct BadFrame : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The content of the frames that fill `input`; throws BadFrame. Every rule is checked.
std::vector<uint8_t> decode_frames(const std::vector<uint8_t>& input);

// One unit's payload of blocks (section 4); `raw` is its size. Throws BadFrame.
std::vector<uint8_t> decode_blocks(const uint8_t* payload, size_t bytes, size_t raw);

}  // namespace glyd::reference
