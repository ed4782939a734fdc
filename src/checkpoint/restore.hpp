// restore.hpp - the walk over a packed checkpoint that verify and unpack share, so that they refuse the same things.
// Spec: docs/spec/checkpoint.md 5.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/packed_directory.hpp"

namespace glyd {

// What a salvage could not bring back as it was.
struct Losses {
  uint64_t files_damaged = 0;  // zeros in place of some of their tensors
  uint64_t files_changed = 0;  // carried files, restored as they are now
  uint64_t files_missing = 0;  // left out
  uint64_t tensors = 0, bytes = 0;
};

struct RestoreOptions {
  int threads = 0;
  // The source is written again below it (for a file source: as the file of this name). On an error it may hold
  // anything.
  std::optional<std::filesystem::path> out;
  Faults* faults = nullptr;  // where given, every fault goes there; else the first one is the error
  // With `out` and `faults`: only what the source held is of interest. Whatever of it can be read is restored, zeros in
  // place of damaged tensors.
  bool salvage = false;
  Losses* losses = nullptr;                     // of a salvage
  std::vector<std::string>* ignored = nullptr;  // gets the files that are not of the checkpoint and do not matter
};

Result<void> check_everything(const PackedDirectory& packed, const RestoreOptions& options, Progress& progress);

}  // namespace glyd
