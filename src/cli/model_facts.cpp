#include "cli/model_facts.h"

#include <algorithm>
#include <set>

#include "base/error.h"

namespace tranship::cli {
namespace {

/// Bytes that one more token of one sequence adds to a state.
uint64_t bytes_per_token(const ir::Graph& graph, const ir::State& state) {
  const auto output = std::ranges::find(graph.outputs(), state.output, &ir::Output::name);
  if (output == graph.outputs().end()) return 0;
  const ir::Type& type = graph.type(output->value);
  uint64_t bytes = size_bytes(type.dtype);
  for (int64_t axis = 0; axis < type.shape.rank(); ++axis) {
    if (axis == state.growth_axis || axis == state.batch_axis) continue;
    if (type.shape[axis].is_static()) bytes *= static_cast<uint64_t>(type.shape[axis].value());
  }
  return bytes;
}

bool has_tied_embeddings(const ir::Graph& graph) {
  std::set<ir::ValueId> embedded;
  std::set<ir::ValueId> multiplied;
  for (const ir::Node& node : graph.nodes()) {
    if (node.kind() == ir::OpKind::kEmbedding) embedded.insert(node.inputs[0]);
    if (node.kind() == ir::OpKind::kLinear) multiplied.insert(node.inputs[1]);
  }
  return std::ranges::any_of(embedded, [&](ir::ValueId id) { return multiplied.contains(id); });
}

}  // namespace

ModelFacts facts_of(const tasks::TaskProgram& made) {
  ModelFacts facts;
  for (const auto& [name, source] : made.program.parameters) {
    facts.num_parameters += static_cast<uint64_t>(source->num_elements());
  }
  const ir::Component& last = made.program.components.back();
  for (const ir::State& state : last.states) facts.state_bytes_per_token += bytes_per_token(*last.graph, state);
  facts.tied_embeddings = has_tied_embeddings(*last.graph);
  return facts;
}

std::string default_task(const Config& config, const std::string& architecture) {
  return tasks::select(config, architecture).architecture->generates ? "generation" : "forward";
}

tasks::TaskProgram build_task(const std::string& task, const CheckpointData& checkpoint, const tasks::TaskOptions& options,
                              const Sink& sink) {
  if (task == "generation") return tasks::generation(checkpoint, options, sink);
  check(task == "forward", "the command line lets only known tasks pass");
  return tasks::forward(checkpoint, options, sink);
}

}  // namespace tranship::cli
