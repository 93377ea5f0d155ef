#include "cli/model_facts.h"

#include <algorithm>
#include <set>

#include "base/atomic_file.h"
#include "base/error.h"
#include "formats/pt2/import.h"

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
  std::set<std::string> embedded;
  std::set<std::string> multiplied;
  for (const ir::Node& node : graph.nodes()) {
    const bool embeds = node.kind() == ir::OpKind::kEmbedding;
    if (!embeds && node.kind() != ir::OpKind::kLinear) continue;
    const ir::Op& weight = *graph.producer(node.inputs[embeds ? 0 : 1]).op;
    if (weight.kind == ir::OpKind::kParam)
      (embeds ? embedded : multiplied).insert(ir::as<ir::Param>(weight).name);
  }
  return std::ranges::any_of(embedded,
                             [&](const std::string& name) { return multiplied.contains(name); });
}

}  // namespace

ModelFacts facts_of(const ir::Program& made) {
  ModelFacts facts;
  for (const auto& [name, source] : made.parameters) {
    facts.num_parameters += static_cast<uint64_t>(source->num_elements());
    facts.weight_bytes += source->size_bytes();
  }
  const ir::Component& last = made.components.back();
  for (const ir::State& state : last.states)
    if (state.kind == ir::State::Kind::kAppend || state.kind == ir::State::Kind::kSlots)
      facts.state_bytes_per_token += bytes_per_token(*last.graph, state);
  facts.tied_embeddings = has_tied_embeddings(*last.graph);
  return facts;
}

ModelFacts facts_of_program(const std::filesystem::path& pt2) {
  return facts_of(pt2::import_program(pt2::open_archive(pt2), pt2.string()).program);
}

namespace {

/// What a JSON file without a model_type is, and what to do with it.
std::string_view hint_of(const Config& config) {
  if (config.has("weight_map"))
    return "it is the index of a sharded checkpoint: give its directory";
  if (config.has("export_format")) return "it is an artifact's export.json: give its directory";
  if (config.has("model") && config.has("added_tokens")) return "it is a tokenizer";
  return "expected a model's config.json";
}

}  // namespace

Checkpoint open_config(const std::filesystem::path& path) {
  auto data = std::make_shared<CheckpointData>();
  data->config = Config::parse(path.string(), read_text(path));
  if (!data->config.has("model_type")) {
    fail(ErrorKind::kInvalidArgument, "[open] '{}' is JSON without a model_type: {}", path.string(),
         hint_of(data->config));
  }
  return Checkpoint(std::move(data));
}

std::string default_task(const Config& config, const std::string& architecture) {
  return tasks::select(config, architecture).architecture->generates ? "generation" : "forward";
}

tasks::TaskProgram build_task(const std::string& task, const CheckpointData& checkpoint,
                              const tasks::TaskOptions& options, const Sink& sink) {
  if (task == "generation") return tasks::generation(checkpoint, options, sink);
  check(task == "forward", "the command line lets only known tasks pass");
  return tasks::forward(checkpoint, options, sink);
}

}  // namespace tranship::cli
