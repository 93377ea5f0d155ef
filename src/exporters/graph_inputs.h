// Which optional inputs a model's graphs take.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/checkpoint_data.h"
#include "exporters/export_options.h"

namespace tranship::exporters {

/// In this order of precedence: what the config says, the names of the sample inputs,
/// attention_mask and what the checkpoint's tokenizer makes (tokenizer_config.json), as far as the
/// model takes it. Errors: those of tasks::select; corrupt for a bad tokenizer_config.json.
std::vector<std::string> choose_graph_inputs(const Checkpoint& checkpoint,
                                             const NamedTensors& sample_inputs,
                                             const ExportOptions& config);

}  // namespace tranship::exporters
