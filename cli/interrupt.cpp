#include "interrupt.hpp"

namespace glyd::cli {
namespace {

volatile std::sig_atomic_t raised_signal = 0;

void note_signal(int signal_number) { raised_signal = signal_number; }

}  // namespace

Interrupt::Interrupt() {
  struct sigaction action {};
  action.sa_handler = note_signal;
  action.sa_flags =
      static_cast<int>(SA_RESETHAND) | SA_RESTART;  // RESETHAND: the second Ctrl-C does not wait for anybody
  for (int i = 0; i < 3; ++i) {
    ::sigaction(kSignals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN)
      ::sigaction(kSignals[i], &action, nullptr);  // nohup and background jobs stay deaf
  }
}

Interrupt::~Interrupt() {
  for (int i = 0; i < 3; ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
}

int Interrupt::raised() { return raised_signal; }

}  // namespace glyd::cli
