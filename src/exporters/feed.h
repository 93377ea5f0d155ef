// From what a caller passes to what a graph takes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "exporters/ranges.h"
#include "tranship/exporters.h"

namespace tranship::exporters {

struct Feed {
  NamedTensors tensors;              // by the graph's names, all that it takes
  std::vector<std::string> dropped;  // names that the graph does not have
};

/// Whether the call has exactly what the graph takes, name by name: then nothing need be copied.
bool is_complete(const std::vector<Port>& inputs, const NamedTensors& given);

/// Names may have the prefix "input." or not, whatever the graph's have. Absent optional inputs get
/// the model's default: attention_mask (and decoder_attention_mask) ones, token_type_ids zeros,
/// position_ids counted on from what is cached. Errors: invalid_argument naming all inputs that are
/// missing, or one that is there under both names, or one with another number of axes.
Feed feed(std::string_view component, const std::vector<Port>& inputs, const NamedTensors& given);

/// Axes of one name have one size in all inputs, and sums of them theirs: runtimes would broadcast
/// instead, and give numbers for inputs that make no sense. Sizes lie in their ranges, and a static
/// cache has slots for the tokens. Errors: invalid_argument with what was given and expected.
void check_sizes(const std::vector<Port>& inputs, const Ranges& ranges, const NamedTensors& given);

}  // namespace tranship::exporters
