// How much memory this process has.
#pragma once

#include <string_view>

#include "tranship/generation.h"

namespace tranship::generation {

/// As the kernel counts it now (/proc/self/status); zeros where there is no such file.
MemoryUse memory_use();
/// The same from the file's text.
MemoryUse read_memory_use(std::string_view status);

/// The larger number of each kind.
MemoryUse most_of(const MemoryUse& a, const MemoryUse& b);

}  // namespace tranship::generation
