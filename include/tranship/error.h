// The one exception of the library, and the five kinds of what can go wrong.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace tranship {

enum class ErrorKind {
  kInvalidArgument,  // the caller asked for something that makes no sense
  kUnsupported,      // it makes sense, but tranship cannot do it (yet): the message names what is
                     // needed
  kCorrupt,          // a file is not what it claims to be: the message says where
  kIo,               // the operating system said no
  kInternal,         // a bug in tranship
};

/// The word for a kind: "invalid argument", "unsupported", "corrupt", "io", "internal".
std::string_view name(ErrorKind kind);

/// Thrown by every function of the library. The message is one paragraph: `[operation] what,
/// expected, found, where, what to do`.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

}  // namespace tranship
