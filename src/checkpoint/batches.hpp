// batches.hpp - tensors in turn: large ones alone with all threads, small ones several at a time with a thread each.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/parallel.hpp"
#include "base/result.hpp"

namespace glyd {

inline constexpr uint64_t kAloneBytes = uint64_t{16} << 20;  // from here on a tensor keeps all threads busy by itself
inline constexpr uint64_t kBatchBytes = uint64_t{64} << 20;

// Cuts sizes[0..n) into runs: [begin, end) pairs in order. A run is one tensor, or several below kAloneBytes with
// kBatchBytes at most together.
inline std::vector<std::pair<size_t, size_t>> make_batches(std::span<const uint64_t> sizes) {
  std::vector<std::pair<size_t, size_t>> batches;
  for (size_t begin = 0; begin < sizes.size();) {
    size_t end = begin + 1;
    uint64_t total = sizes[begin];
    while (sizes[begin] < kAloneBytes && end < sizes.size() && sizes[end] < kAloneBytes &&
           total + sizes[end] <= kBatchBytes)
      total += sizes[end++];
    batches.emplace_back(begin, end);
    begin = end;
  }
  return batches;
}

// body(i, threads) for each i of a batch: one tensor gets all the threads, several share them. The error of the first
// that failed.
inline Result<void> run_batch(size_t begin, size_t end, int threads,
                              const std::function<Result<void>(size_t, int)>& body) {
  if (end - begin == 1) return body(begin, threads);
  std::vector<std::optional<Error>> errors(end - begin);
  parallel_for(end - begin, 1, threads, [&](uint64_t first, uint64_t last) {
    for (uint64_t i = first; i < last; ++i) {
      if (auto done = body(begin + i, 1); !done) errors[i] = std::move(done).error();
    }
  });
  for (auto& error : errors) {
    if (error) return *std::move(error);
  }
  return Ok{};
}

}  // namespace glyd
