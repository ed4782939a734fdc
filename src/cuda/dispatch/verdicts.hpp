// verdicts.hpp - which products are known to be exact, and the file that keeps this between processes. Pure host code.
// The file's format: docs/gpu.md.
#pragma once

#include <compare>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "base/result.hpp"

namespace glyd::cuda {

// What the sums of a product depend on.
struct ProductKey {
  uint64_t rows = 0, cols = 0, tokens = 0;
  bool bias = false;
  auto operator<=>(const ProductKey&) const = default;
};

// What a check found: cuBLAS's bits are those of sums over `splits` splits, or of none that was tried.
struct Verdict {
  bool exact = false;
  uint32_t splits = 1;
  uint64_t differing = 0;  // outputs of the best try
  bool operator==(const Verdict&) const = default;
};
using Verdicts = std::map<ProductKey, Verdict>;

// What verdicts depend on besides the product: those of another environment are kept in the file, but not used.
struct VerdictEnvironment {
  std::string gpu, driver, library;
  uint64_t cublas = 0, workspace_bytes = 0;
  bool reduced_precision = true;
  std::string line() const;  // as the file has it
};

// The file's verdicts of this environment; none where there is no file. GLYD_ERROR_CORRUPT names the first line that
// breaks the format, GLYD_ERROR_FOREIGN_FORMAT is for a file that is none of ours.
Result<Verdicts> read_verdicts(const std::filesystem::path& path, const VerdictEnvironment& environment);

// Adds verdicts to the file, which may be missing or damaged (then it is made anew): the new ones count. Another's
// file is left alone. Waits for other processes that do the same; a reader sees the old file or the new one.
Result<void> merge_verdicts(const std::filesystem::path& path, const VerdictEnvironment& environment,
                            const Verdicts& verdicts);

}  // namespace glyd::cuda
