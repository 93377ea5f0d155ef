// What the command line throws beside tranship::Error.
#pragma once

#include <stdexcept>
#include <string>

namespace tranship::cli {

/// The command was not written as it must be: exit code 2, and a pointer to --help.
class UsageError : public std::runtime_error {
 public:
  explicit UsageError(const std::string& message) : std::runtime_error(message) {}
};

}  // namespace tranship::cli
