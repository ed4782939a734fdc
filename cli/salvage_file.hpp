// salvage_file.hpp - what can still be read of a damaged or cut file, each piece in its place.
#pragma once

#include <string>
#include <vector>

#include "codec_copy.hpp"

namespace glyd::cli {

struct LostRange {
  uint64_t begin, end;
};

struct Salvaged {
  uint64_t recovered_bytes = 0;
  bool complete = false;        // nothing is lost, and the end of the last frame is there
  std::vector<LostRange> lost;  // in the content
};

// Every undamaged unit of `source` into `target`, zeros where one is lost in between.
Outcome salvage_file(InputFile& source, OutputFile& target, Salvaged& result);

}  // namespace glyd::cli
