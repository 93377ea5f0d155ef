// Which tranship this is.
#pragma once

#include <string_view>

namespace tranship {

/// "0.1.0".
std::string_view version();

}  // namespace tranship
