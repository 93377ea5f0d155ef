// Ctrl-C that cleans up: what is half written is removed before the program ends.
#pragma once

#include <exception>

namespace tranship::cli {

/// Thrown where work notices Ctrl-C. Destructors then remove temporary files.
class Interrupted : public std::exception {
 public:
  const char* what() const noexcept override { return "interrupted"; }
};

/// While it lives, a first Ctrl-C (SIGINT) or SIGTERM is only noted; a second one ends the program
/// at once. One at a time.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
};

/// Errors: Interrupted if a signal was noted.
void check_interrupt();

/// Whether Ctrl-C was noted, which it then is no more. Errors: Interrupted for SIGTERM.
bool take_interrupt();

/// Ends the program as the signal that was noted would have: the caller sees that it was
/// interrupted.
[[noreturn]] void end_by_signal();

}  // namespace tranship::cli
