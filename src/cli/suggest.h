// "Did you mean ...?"
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tranship::cli {

/// How many letters must be added, removed, changed or swapped with their neighbour to make `b` of
/// `a`.
size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate that was probably meant: the one that `word` begins, or the nearest within a third
/// of its letters (at least one). Nothing if none is near.
std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates);

}  // namespace tranship::cli
