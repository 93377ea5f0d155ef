// Whether bytes are text.
#pragma once

#include <cstddef>
#include <string_view>

namespace tranship {

/// Bytes of the code point that starts at `text`, which is not empty; 0 if it is not valid UTF-8
/// (overlong forms, surrogates and what lies past U+10FFFF are not).
size_t code_point_bytes(std::string_view text);

/// The place of the first byte that is not UTF-8; npos if all are.
size_t find_invalid_utf8(std::string_view text);

}  // namespace tranship
