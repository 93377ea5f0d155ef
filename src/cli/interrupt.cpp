#include "cli/interrupt.h"

#include <csignal>
#include <cstdlib>

namespace tranship::cli {
namespace {

// The one thing that a signal's handler may touch.
volatile std::sig_atomic_t noted_signal = 0;

void note(int signal) { noted_signal = signal; }

void install(int signal, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // the second one ends the program
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
}

}  // namespace

InterruptGuard::InterruptGuard() {
  install(SIGINT, note);
  install(SIGTERM, note);
}

InterruptGuard::~InterruptGuard() {
  install(SIGINT, SIG_DFL);
  install(SIGTERM, SIG_DFL);
}

void check_interrupt() {
  if (noted_signal != 0) throw Interrupted();
}

bool take_interrupt() {
  if (noted_signal == 0) return false;
  if (noted_signal != SIGINT) throw Interrupted();
  noted_signal = 0;
  install(SIGINT, note);
  return true;
}

void end_by_signal() {
  const int signal = noted_signal != 0 ? noted_signal : SIGINT;
  install(signal, SIG_DFL);
  std::raise(signal);
  std::_Exit(128 + signal);
}

}  // namespace tranship::cli
