// interrupt.hpp - Ctrl-C during a long call: noted by a handler, asked for by the progress callback.
#pragma once

#include <csignal>

namespace glyd::cli {

// While it lives, the first SIGINT, SIGTERM or SIGHUP is noted; a second one of the same kind ends the program at once.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  static int raised();  // the signal's number; 0 if none came

 private:
  static constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
  struct sigaction before_[3];
};

}  // namespace glyd::cli
