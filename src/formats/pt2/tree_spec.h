// PyTorch's tree specs: how what a module takes and returns was flattened to a list of leaves.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tranship::pt2 {

/// A leaf's place in what was flattened: {"past_key_values", "layers", "0", "keys"}. Attributes,
/// keys and indices; empty for a bare leaf.
struct LeafPath {
  std::vector<std::string> steps;
  /// With dots between; `bare` for a leaf that is all there is.
  std::string text(std::string_view bare) const;
};

/// The leaves in order. Keys are those of dicts and of registered classes that record them
/// (Transformers' model outputs and caches); children of other classes are counted.
/// Errors: corrupt for what is not a tree spec.
std::vector<LeafPath> leaves_of(std::string_view spec);

/// The leaves of a module's arguments, whose spec is (positional tuple, keyword dict). Positional
/// ones are called by `argument_names`, as far as it reaches, or by their number.
std::vector<LeafPath> argument_leaves_of(std::string_view spec,
                                         const std::vector<std::string>& argument_names);

}  // namespace tranship::pt2
