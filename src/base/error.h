// How the library reports what went wrong: fail() for users' mistakes and bad data, check() for our
// own bugs.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <vector>

#include "tranship/error.h"

namespace tranship {

[[noreturn]] void vfail(ErrorKind kind, fmt::string_view format, fmt::format_args args);

/// Throws Error{kind}. Message form: `[operation] what, expected, found, where, what to do`.
template <class... Args>
[[noreturn]] void fail(ErrorKind kind, fmt::format_string<Args...> format, const Args&... args) {
  vfail(kind, format, fmt::make_format_args(args...));
}

/// Throws Error{internal} if a condition that only a bug can break does not hold.
inline void check(bool condition, std::string_view what) {
  if (!condition) fail(ErrorKind::kInternal, "[internal] {}: this is a bug in tranship", what);
}

/// "'a', 'b', 'c' and 17 more": a list in an error, cut at `limit`.
std::string listed(const std::vector<std::string>& names, size_t limit = 20);

}  // namespace tranship
