// progress.hpp - how far a long operation is, told to the caller, who may stop it.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "base/result.hpp"

namespace glyd {

// Returns false to stop.
using ProgressCallback = std::function<bool(uint64_t done, uint64_t total, const char* what)>;

// Used from the calling thread only.
class Progress {
 public:
  Progress(ProgressCallback callback, uint64_t total) : callback_(std::move(callback)), total_(total) {}

  // `bytes` more are done, of `what`. Calls back at most every 20 ms.
  Result<void> advance(uint64_t bytes, const std::string& what) {
    done_ = std::min(total_, done_ + bytes);
    const auto now = std::chrono::steady_clock::now();
    if (started_ && now - last_ < std::chrono::milliseconds(20)) return Ok{};
    return report(now, what);
  }

  // All is done: calls back with the total, however long ago the last call was.
  Result<void> finish(const std::string& what) {
    done_ = total_;
    return report(std::chrono::steady_clock::now(), what);
  }

 private:
  Result<void> report(std::chrono::steady_clock::time_point now, const std::string& what) {
    started_ = true;
    last_ = now;
    if (callback_ && !callback_(done_, total_, what.c_str())) return cancelled("stopped while working on {}", what);
    return Ok{};
  }

  ProgressCallback callback_;
  uint64_t total_, done_ = 0;
  bool started_ = false;
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace glyd
