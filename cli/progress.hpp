// progress.hpp - a progress bar on standard error with bytes, rate and time left; and the way by which Ctrl-C stops a
// call.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "interrupt.hpp"
#include "verb.hpp"

namespace glyd::cli {

// A total that nobody knows, as of a pipe.
inline constexpr uint64_t kUnknownTotal = UINT64_MAX;

// One line of `width` columns: "packing  45% [####     ]  1.2 of 2.7 GB  812 MB/s  0:02 left  model.norm".
// With an unknown total: "packing  1.2 GB  812 MB/s". `before` bytes of `done` count for no rate.
std::string progress_line(std::string_view action, uint64_t done, uint64_t total, double seconds, std::string_view what,
                          size_t width, uint64_t before = 0);

// Drawn only on a terminal, and not under --quiet, --json, NO_COLOR or TERM=dumb. Lives as long as the call it shows.
class Progress {
 public:
  // Without `notes_signals` they end the program as they do without it.
  Progress(std::string action, const Common& common, bool notes_signals = true);
  ~Progress();  // takes the line away
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // What is done when the first call comes was done by an earlier run, and is no part of the rate.
  void goes_on() { goes_on_ = true; }

  // For the C API: `user` is the Progress. Not 0 when a signal came.
  static int callback(void* user, uint64_t done, uint64_t total, const char* what);
  // The same: prints the note on a line of its own.
  static void note(void* user, const char* text);

 private:
  using Clock = std::chrono::steady_clock;
  void draw(uint64_t done, uint64_t total, std::string_view what);

  std::string action_;
  const Common& common_;
  bool visible_;
  bool drawn_ = false;
  bool goes_on_ = false;
  std::optional<uint64_t> before_;  // done when the first call came
  Clock::time_point began_ = Clock::now();
  Clock::time_point last_drawn_{};
  std::optional<Interrupt> interrupt_;
};

}  // namespace glyd::cli
