#include "base/error.h"

namespace tranship {

std::string_view name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInvalidArgument:
      return "invalid argument";
    case ErrorKind::kUnsupported:
      return "unsupported";
    case ErrorKind::kCorrupt:
      return "corrupt";
    case ErrorKind::kIo:
      return "io";
    case ErrorKind::kInternal:
      return "internal";
  }
  return "internal";
}

void vfail(ErrorKind kind, fmt::string_view format, fmt::format_args args) {
  throw Error(kind, fmt::vformat(format, args));
}

std::string listed(const std::vector<std::string>& names, size_t limit) {
  std::string text;
  for (size_t i = 0; i < names.size() && i < limit; ++i) {
    if (i > 0) text += ", ";
    text += "'" + names[i] + "'";
  }
  if (names.size() > limit) text += fmt::format(" and {} more", names.size() - limit);
  return text;
}

}  // namespace tranship
