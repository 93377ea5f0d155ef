// A conversation in a terminal, or line by line from a pipe.
#pragma once

#include <functional>
#include <string>

#include "cli/console.h"

namespace tranship::cli {

/// What is to be done with what was read.
struct Talk {
  std::function<void(const std::string& text)> answer;
  std::function<void()> clear;  // the conversation begins anew
};

/// Reads lines from standard input until it ends or one is "/bye". A line that ends with a
/// backslash goes on in the next. "/clear" forgets what was said, "/help" lists these. In a
/// terminal an Error is shown, and the conversation goes on. Errors: those of `answer` where
/// standard input is no terminal; io if it cannot be read.
void talk(const Talk& talk, Console& console);

}  // namespace tranship::cli
