// Everything that the command line prints goes through here: results to standard output, the rest
// to standard error.
#pragma once

#include <string>
#include <string_view>

#include "cli/progress.h"
#include "tranship/sink.h"

namespace tranship::cli {

/// Columns of the terminal that standard error is, or standard output; 80 if neither is one.
size_t terminal_width();

enum class Tint { kNone, kBold, kRed, kYellow, kGreen, kDim };

/// One a process.
class Console {
 public:
  /// Looks at what the two streams are, and at NO_COLOR and TERM.
  Console();

  /// No progress and no warnings from now on; results and errors still come.
  void set_quiet() { quiet_ = true; }

  /// Text for standard output, as it is. Errors: io if it cannot be written.
  void print(std::string_view text);
  /// Text that somebody else wrote, to be seen at once. A terminal gets it without control
  /// characters. Errors: io.
  void print_live(std::string_view text);
  /// Makes sure that all of it is written. Errors: io.
  void flush();
  /// In color where standard output is a terminal that has colors.
  std::string tinted(Tint tint, std::string_view text) const {
    return tint_if(color_out_, tint, text);
  }
  /// Columns to wrap at: the terminal's, or 100 where standard output is none.
  size_t width() const;

  /// Asks for a line: "> " on standard error; not when quiet.
  void ask(std::string_view text);
  /// A line of information on standard error; not when quiet.
  void note(std::string_view text);
  void warn(std::string_view message);
  /// "error: ...", in one paragraph, wrapped to the terminal.
  void error(std::string_view message);

  /// Takes the library's warnings and progress, and ends long work by Interrupted after Ctrl-C.
  /// The console must outlive it.
  Sink sink();
  ProgressBar& progress() { return progress_; }

 private:
  static std::string tint_if(bool colored, Tint tint, std::string_view text);
  void paragraph(Tint tint, std::string_view label, std::string_view message);

  bool quiet_ = false;
  bool terminal_out_;
  bool terminal_error_;
  bool color_out_;
  bool color_error_;
  ProgressBar progress_;
};

}  // namespace tranship::cli
