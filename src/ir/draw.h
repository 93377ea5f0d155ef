// Pictures of a graph for people: folded (fold.h), laid out from the top down.
#pragma once

#include <string>

#include "ir/fold.h"

namespace tranship::ir {

/// For Graphviz; modules are clusters.
std::string draw_dot(const Folded& folded);
/// A whole SVG file, laid out here. The same graph gives the same bytes.
std::string draw_svg(const Folded& folded);

}  // namespace tranship::ir
