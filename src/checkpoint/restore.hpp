// restore.hpp - the walk over a packed checkpoint that verify and unpack share, so that they refuse the same things.
// Spec: docs/spec/checkpoint.md 5.
#pragma once

#include <filesystem>
#include <optional>

#include "checkpoint/packed_directory.hpp"

namespace glyd {

// Checks everything, and writes the source again below `out` if given (for a file source: as the file `out`). On an
// error `out` may hold anything.
Result<void> check_everything(const PackedDirectory& packed, int threads, Progress& progress,
                              const std::optional<std::filesystem::path>& out);

}  // namespace glyd
