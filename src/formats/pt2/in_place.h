// What a graph writes into its inputs. Internal to formats/pt2.
#pragma once

#include <optional>
#include <vector>

#include "ir/program.h"

namespace tranship::pt2 {

/// A state whose new value goes into the tensor that the caller passed.
struct InPlace {
  ir::ValueId from, to;
  bool is_slots;  // `to` is a scatter into `from`, which nobody else reads: it can be the write
  bool is_counter;
};

/// Those of a graph, in the states' order, without the ones that it does not change. Errors:
/// internal for a state without its input or output.
std::vector<InPlace> writes_in_place(const ir::Graph& graph, const std::vector<ir::State>& states);

/// The value whose memory a value may share: itself, or what it looks at.
ir::ValueId viewed(const ir::Graph& graph, ir::ValueId id);

/// The places along the axis, 1-D, if a scatter writes whole slices over what was there.
std::optional<ir::ValueId> slice_places(const ir::Graph& graph, const ir::Node& scatter);

/// By value: whether anything that is written needs it. The index of a scatter of whole slices is
/// not needed, its places are.
std::vector<bool> needed_values(const ir::Graph& graph);

/// Value of an input or output by its port; kAbsent if there is none.
ir::ValueId input_of(const ir::Graph& graph, std::string_view port);
ir::ValueId output_of(const ir::Graph& graph, std::string_view port);

}  // namespace tranship::pt2
