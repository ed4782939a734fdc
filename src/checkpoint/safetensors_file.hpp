// safetensors_file.hpp - the header of a safetensors file on disk.
#pragma once

#include "base/file.hpp"
#include "format/safetensors.hpp"

namespace glyd {

// Checked for the file's size; every error begins with its path.
Result<SafetensorsHeader> read_safetensors_header(const File& file);

}  // namespace glyd
