// What a checkpoint or a config.json holds, as JSON.
#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/json.h"
#include "checkpoint/gguf_file.h"
#include "cli/format.h"
#include "cli/inspect.h"
#include "cli/model_facts.h"
#include "exporters/graph_inputs.h"
#include "models/families.h"

namespace tranship::cli {
namespace {

/// The dtype that most bytes have, or what a configuration says.
DType dtype_of(const CheckpointData& data) {
  if (data.kind == CheckpointKind::kSynthetic) return data.find_tensor("weight", {1})->dtype();
  std::map<DType, size_t> bytes;
  for (const auto& [name, source] : data.tensors) {
    if (is_floating(source->dtype())) bytes[source->dtype()] += source->size_bytes();
  }
  const auto most =
      std::ranges::max_element(bytes, {}, [](const auto& entry) { return entry.second; });
  return most == bytes.end() ? DType::kF32 : most->first;
}

Json tensor_entry(const std::string& tensor, std::string_view dtype,
                  const std::vector<int64_t>& shape, size_t bytes) {
  Json entry;
  entry["name"] = printable(tensor);
  entry["dtype"] = std::string(dtype);
  entry["shape"] = shape;
  entry["bytes"] = bytes;
  return entry;
}

Json tensor_entries(const std::map<std::string, TensorSourcePtr>& tensors) {
  Json out = Json::array();
  for (const auto& [tensor, source] : tensors) {
    out.push_back(
        tensor_entry(tensor, name(source->dtype()), source->shape(), source->size_bytes()));
  }
  return out;
}

/// A GGUF's tensors under its own names, as they lie in the file.
Json gguf_entries(const GgufFile& gguf) {
  Json out = Json::array();
  for (const GgufTensor& tensor : gguf.tensors()) {
    out.push_back(tensor_entry(tensor.name, name(tensor.type), tensor.shape, tensor.range.size));
  }
  return out;
}

/// The sizes that people compare models by, under Transformers' names.
Json dimensions_of(const Config& config) {
  Json out = Json::object();
  for (const char* key : {"num_hidden_layers", "hidden_size", "intermediate_size",
                          "num_attention_heads", "num_key_value_heads", "head_dim", "vocab_size",
                          "max_position_embeddings", "sliding_window"}) {
    if (const auto value = config.find_integer(key)) out[key] = *value;
  }
  return out;
}

Json companions_of(const CheckpointData& data) {
  Json out = Json::array();
  for (const auto& [name, path] : data.companions) out.push_back(printable(name));
  for (const auto& [name, text] : data.made_companions) out.push_back(name);
  return out;
}

void add_architecture(const Config& config, const ModelChoice& choice, Json& report) {
  const std::string model_type = config.text("model_type", "");
  const models::Family* family = models::find_family(model_type);
  const std::vector<std::string> named = config.texts("architectures");
  std::string architecture = choice.architecture;
  if (architecture.empty() && !named.empty()) architecture = named.front();
  if (architecture.empty() && family != nullptr) architecture = family->architectures.front().name;
  report["model_type"] = model_type;
  report["architecture"] = architecture;
  report["tasks"] = Json::array();
  const nn::Architecture* known =
      family == nullptr ? nullptr : models::find_architecture(*family, architecture);
  if (known == nullptr) return;  // building the graphs says why
  report["tasks"].push_back("forward");
  if (known->generates) report["tasks"].push_back("generation");
}

void add_facts(const ModelFacts& facts, Json& report) {
  report["parameters"] = facts.num_parameters;
  report["tied_embeddings"] = facts.tied_embeddings;
  report["state_bytes_per_token"] = facts.state_bytes_per_token;
}

std::string_view word(PathKind kind) {
  return kind == PathKind::kConfig ? "config" : kind == PathKind::kGguf ? "gguf" : "checkpoint";
}

}  // namespace

OpenedModel open_model(PathKind kind, const std::filesystem::path& path, const Sink& sink) {
  if (kind == PathKind::kConfig) return {kind, path, open_config(path)};
  const Checkpoint checkpoint = Checkpoint::open(path, sink);
  if (checkpoint.data().kind != CheckpointKind::kGguf || !std::filesystem::is_directory(path))
    return {kind, path, checkpoint};
  for (const auto& entry : std::filesystem::directory_iterator(path)) {  // it has only one of them
    if (entry.path().extension() == ".gguf") return {PathKind::kGguf, entry.path(), checkpoint};
  }
  return {kind, path, checkpoint};
}

tasks::TaskProgram build_model(const OpenedModel& model, const ModelChoice& choice,
                               const Sink& sink) {
  const CheckpointData& data = model.checkpoint.data();
  OnnxConfig config;
  config.architecture = choice.architecture;
  tasks::TaskOptions options;
  options.dtype = dtype_of(data);
  options.architecture = choice.architecture;
  options.graph_inputs = exporters::choose_graph_inputs(model.checkpoint, {}, config);
  const std::string task =
      choice.task.empty() ? default_task(data.config, choice.architecture) : choice.task;
  return build_task(task, data, options, sink);
}

Json report_model(const OpenedModel& model, const ModelChoice& choice, const Sink& sink) {
  const CheckpointData& data = model.checkpoint.data();
  Json report;
  report["kind"] = std::string(word(model.kind));
  report["path"] = printable(model.path.string());
  add_architecture(data.config, choice, report);
  report["dtype"] = std::string(name(dtype_of(data)));
  Json tensors = model.kind == PathKind::kGguf ? gguf_entries(GgufFile::open(model.path))
                                               : tensor_entries(data.tensors);
  try {
    const tasks::TaskProgram made = build_model(model, choice, sink);
    add_facts(facts_of(made.program), report);
    if (model.kind == PathKind::kConfig) tensors = tensor_entries(made.program.parameters);
  } catch (const Error& error) {
    report["problem"] = printable(error.what());
  }
  report["config"] = dimensions_of(data.config);
  report["files"] = companions_of(data);
  report["tensors"] = std::move(tensors);
  return report;
}

}  // namespace tranship::cli
