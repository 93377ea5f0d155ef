// The version that artifacts are marked with.
#pragma once

#include <string_view>

namespace tranship::exporters {

inline constexpr std::string_view kVersion = TRANSHIP_VERSION;

}  // namespace tranship::exporters
