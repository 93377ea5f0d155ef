// The exporters: from a checkpoint to an artifact of a runtime, and from an artifact to numbers.
// Names and meaning are those of Transformers' "Exporters" guide; `export` is a keyword in C++, so
// it is export_model.
//
//   tranship::Checkpoint checkpoint = tranship::Checkpoint::open("SmolLM2-135M-Instruct");
//   tranship::OnnxExporter exporter;
//   tranship::ExportedModel exported = exporter.export_for_generation(checkpoint, {.dynamic =
//   true}); exported.save_pretrained("smollm2-onnx");
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tranship/checkpoint.h"
#include "tranship/sink.h"
#include "tranship/tensor.h"

namespace tranship {

/// An axis of an input that stays open: torch.export.Dim(name, min=..., max=...).
struct DynamicDim {
  std::string name;
  int64_t min = 1;
  std::optional<int64_t> max = {};
};

/// Where an artifact's weights are.
enum class WeightsPlacement {
  kCopy,       // in the artifact's own data file, in the export's dtype
  kReference,  // in the checkpoint's safetensors, which the artifact is written beside; nothing of
               // them is copied
};

/// Options of an ONNX export. Fields of Transformers first, with its names and defaults; then ours.
struct OnnxConfig {
  /// Every axis that may vary stays open, under the names batch, sequence, past. False: the shapes
  /// of sample_inputs, or `static_shapes`. The length of a cache that grows (past) stays open
  /// unless static_shapes names it.
  bool dynamic = false;
  /// By input, then axis: the axes that stay open, and their range; all others are those of
  /// sample_inputs. Wins over `dynamic`. One name is one size, wherever it stands; two names for
  /// what the model makes one size are an error. An axis of the same size in another input need not
  /// be listed. In the graph, axes keep their names (batch, sequence).
  std::map<std::string, std::map<int64_t, DynamicDim>> dynamic_shapes = {};
  /// Accepted for the guide's sake: sizes are never guessed here, so there are no guards to defer.
  bool prefer_deferred_runtime_asserts_over_guards = false;
  std::optional<int> opset_version = {};  // 18 to 24; absent: 20
  /// Accepted for the guide's sake. Graphs are made small, not traced: the passes, which only drop
  /// what changes nothing, run either way.
  bool optimize = true;
  /// Operators of ONNX Runtime's own, for this provider: "cpu", "cuda", "webgpu" or "dml". Absent:
  /// standard ONNX.
  std::optional<std::string> ort_fusions = {};

  /// Sizes of axes by name ("batch", "sequence", "past"): what is named here is fixed, the rest is
  /// as `dynamic` says.
  std::map<std::string, int64_t> static_shapes = {};
  /// Ranges of axes by name, recorded in the graph: these axes stay open, whatever `dynamic` says.
  std::map<std::string, DynamicDim> dims = {};
  /// dtype of weights and activations: f32, f16 or bf16. Absent: f32, since ONNX Runtime's CPU has
  /// no kernels for f16 and bf16.
  std::optional<DType> dtype = {};
  bool external_data = true;  // false: weights inside the .onnx, at most 2 GB
  WeightsPlacement weights = WeightsPlacement::kCopy;
  /// A class of Transformers. Empty: the one that config.json names.
  std::string architecture = {};
  /// Which optional inputs the graphs take. Absent: those of sample_inputs if there are any, else
  /// attention_mask and those that the checkpoint's tokenizer makes.
  std::optional<std::vector<std::string>> graph_inputs = {};
  /// What the names of cache inputs and outputs begin with.
  std::string cache_name = "past_key_values";
  /// For whom else files shall be there: "genai" writes the genai_config.json by which
  /// onnxruntime-genai runs decode, which then takes any number of tokens (multi_token_decode).
  std::vector<std::string> also = {};
  /// Keys of config.json that no definition knows and that may be passed over all the same.
  std::vector<std::string> ignored_config_keys = {};

  /// Reads a JSON object with these names, `export_format` allowed. Errors: invalid_argument for an
  /// unknown key (all of them), a wrong type, ort_fusions without optimize.
  static OnnxConfig from_json(std::string_view json);
  /// As Transformers' to_json_string: indent 2, sorted keys. Its fields always, ours where they are
  /// not the default: so Transformers reads what it could have written.
  std::string to_json() const;
};

/// Options of an export to PyTorch's archives of torch.export (.pt2). Fields of Transformers first,
/// with its names and defaults; then ours, which mean what they mean in OnnxConfig.
struct DynamoConfig {
  bool dynamic = false;
  std::map<std::string, std::map<int64_t, DynamicDim>> dynamic_shapes = {};
  /// Accepted for the guide's sake: sizes are never guessed here. What a graph assumes of sizes is
  /// always checked when it runs, by nodes.
  bool prefer_deferred_runtime_asserts_over_guards = false;
  /// Accepted for the guide's sake: it says how Python traces, and nothing is traced here.
  bool strict = false;

  std::map<std::string, int64_t> static_shapes = {};
  std::map<std::string, DynamicDim> dims = {};
  /// dtype of weights and activations: f32, f16 or bf16. Absent: the checkpoint's.
  std::optional<DType> dtype = {};
  std::string architecture = {};
  std::optional<std::vector<std::string>> graph_inputs = {};
  std::string cache_name = "past_key_values";
  std::vector<std::string> ignored_config_keys = {};

  /// Reads a JSON object with these names, `export_format` allowed. Errors: invalid_argument for an
  /// unknown key (all of them), a wrong type; unsupported for a quantizer.
  static DynamoConfig from_json(std::string_view json);
  /// As Transformers' to_json_string.
  std::string to_json() const;
};

/// How an export for generation keeps what it has seen: what Transformers' export_for_generation
/// takes beside a configuration, with its names.
struct GenerationOptions {
  /// "dynamic": a cache that grows with each token. "static": buffers of max_cache_len slots, which
  /// each call writes in place, and a counter a layer; the mask is bool [batch, 1, queries, slots].
  std::string cache_implementation = "dynamic";
  std::optional<int64_t> max_cache_len = {};  // of a static cache, which needs it
  /// decode takes any number of tokens, so that it serves the prompt too; else one.
  bool multi_token_decode = false;
  /// Logits of each row's last token alone, [batch, 1, vocab], as with logits_to_keep = 1 in
  /// Transformers: a prompt's other tokens need no head. The last token is what the mask says,
  /// padding on either side.
  bool last_token_logits = false;
  /// Which components to export; absent: all. Names that there are: decompose_for_generation().
  std::optional<std::vector<std::string>> components = {};
};

/// What was recorded when a component was made: export.json's metadata.
struct ExportMetadata {
  std::string architecture;
  std::map<std::string, std::string> packages;  // name -> version of what made it: tranship
  std::string export_config;                    // JSON object
  std::string export_dtype;                     // "float32"
  std::string export_device;                    // "cpu"
  std::string kwargs;   // JSON object: rank, shape and dtype of each argument
  std::string in_spec;  // PyTorch's tree specs, as its own JSON
  std::string out_spec;
  std::string in_constants;    // JSON object
  std::string out_constants;   // JSON list
  int64_t logits_to_keep = 0;  // of each row, from the last token on; 0: all
};

/// An input or output of a program.
struct Port {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<std::string> shape;  // "2", "batch", "past + 1"
};

/// A backend's program: a graph with its ports.
class ExportedProgram {
 public:
  const std::vector<Port>& inputs() const { return inputs_; }
  const std::vector<Port>& outputs() const { return outputs_; }
  size_t num_nodes() const { return num_nodes_; }

  ExportedProgram(std::vector<Port> inputs, std::vector<Port> outputs, size_t num_nodes)
      : inputs_(std::move(inputs)), outputs_(std::move(outputs)), num_nodes_(num_nodes) {}

 private:
  std::vector<Port> inputs_;
  std::vector<Port> outputs_;
  size_t num_nodes_;
};

/// A component that export_for_generation exports, before any format.
struct GenerationComponent {
  std::string name;  // "encoder", "prefill", "decode"
  std::vector<Port> inputs;
  std::vector<Port> outputs;
};

struct ExportedComponent {
  ExportedProgram program;
  ExportMetadata metadata;
};

/// How and where an artifact runs.
struct RunOptions {
  std::string device = "cpu";  // "cpu", "cuda", "cuda:1"
  int threads = 0;             // 0: the CPUs that the process may use
  /// Whether the runtime keeps memory that it used once: without it, less stays taken between runs,
  /// and each is slower.
  bool memory_arena = true;
  /// Whether it takes one block for a run's tensors, where inputs have the shapes of an earlier
  /// run.
  bool memory_pattern = true;
  /// The runtime's own settings (ONNX Runtime: session configuration entries):
  /// "session.intra_op.allow_spinning" = "0" lets idle threads sleep at once,
  /// "session.disable_prepacking" = "1" keeps weights as they are, for less memory.
  std::map<std::string, std::string> session_config = {};
  std::filesystem::path library = {};  // the runtime's shared library; empty: where it is found
};

/// A file of an artifact.
struct ArtifactFile {
  std::string name;
  uint64_t size_bytes = 0;
  std::string hash = {};  // as export.json records it; empty if it is not known
};

/// Where an artifact is within a directory, and how it shall run.
struct ArtifactSource {
  std::string subfolder = {};
  RunOptions run = {};
};

/// An export: its components, and what it takes to save and to run them. Cheap to copy.
class ExportedModel {
 public:
  /// In the order of the export: "model", or "prefill" and "decode".
  const std::vector<std::pair<std::string, ExportedComponent>>& components() const;
  /// Errors: invalid_argument for an unknown name.
  const ExportedComponent& component(std::string_view name) const;
  /// The only component's. Errors: invalid_argument if there are several.
  const ExportedProgram& program() const;
  const ExportMetadata& metadata() const;
  std::string_view export_format() const;  // "onnx", "dynamo"
  /// config.json and generation_config.json as text; empty if the model has none.
  const std::string& config() const;
  const std::string& generation_config() const;

  /// What save_pretrained writes into `directory`, with exact sizes: the files of the components,
  /// the small ones, and export.json. (In the checkpoint's own directory, small files that are
  /// there already stay as they are: they are not listed.) Without a directory: into a new one.
  std::vector<ArtifactFile> files(const std::filesystem::path& directory = {}) const;

  /// Writes the components, config.json, generation_config.json, the tokenizer's files, and last
  /// export.json: without it there is no artifact. An older export.json goes first. Other files of
  /// the directory stay as they are. Errors: io; those of reading the checkpoint's weights.
  void save_pretrained(const std::filesystem::path& directory, const Sink& sink = {}) const;

  using Source = ArtifactSource;
  /// Opens what save_pretrained (ours, or Transformers') wrote. Runtimes are opened at the first
  /// run. Errors: io without an export.json, or without a file that it names; corrupt if it is not
  /// one, or a file has not the size that it says; unsupported for another format.
  static ExportedModel from_pretrained(const std::filesystem::path& directory, const Source& source,
                                       const Sink& sink = {});
  static ExportedModel from_pretrained(const std::filesystem::path& directory) {
    return from_pretrained(directory, Source{});
  }
  /// The directory it was loaded from; empty for a fresh export.
  const std::filesystem::path& directory() const;

  /// Runs on another device from now on; copies of this model stay on theirs. The first run says
  /// whether there is such a device: invalid_argument for an unknown name, unsupported for one that
  /// the runtime lacks.
  ExportedModel& to(const std::string& device);
  ExportedModel& to(const RunOptions& options);

  /// Runs the only component; of the formats, ONNX runs here (unsupported for others: PyTorch runs
  /// an export to dynamo). Inputs that the graph does not have are dropped with one warning; an
  /// optional input that the graph has and the call has not gets the model's default
  /// (attention_mask: ones; token_type_ids: zeros; position_ids: 0 ... S-1, after what is cached).
  /// Names of cache inputs may have their prefix "input." or not. A fresh export is written to a
  /// private temporary folder for its first run; one that refers to its checkpoint's weights runs
  /// only after it was saved and loaded (unsupported). Errors: invalid_argument naming the missing
  /// inputs, or if there are several components; what the runtime says.
  NamedTensors operator()(const NamedTensors& inputs, const Sink& sink = {}) const;
  /// Runs one component. Errors: the same.
  NamedTensors run(std::string_view component, const NamedTensors& inputs,
                   const Sink& sink = {}) const;

  struct Impl;
  const Impl& impl() const { return *impl_; }
  explicit ExportedModel(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

 private:
  std::shared_ptr<Impl> impl_;
};

/// Configurations by the name of the component that each is for.
template <class Config>
class ConfigByComponent {
 public:
  explicit ConfigByComponent(std::map<std::string, Config> by_name)
      : by_name_(std::move(by_name)) {}
  const std::map<std::string, Config>& by_name() const { return by_name_; }

 private:
  std::map<std::string, Config> by_name_;
};

/// Exports to ONNX: model.onnx and model.onnx.data, to be run by ONNX Runtime and others.
class OnnxExporter {
 public:
  static constexpr std::string_view kExportFormat = "onnx";

  /// One component, "model": what model(**inputs) computes.
  /// sample_inputs: like Transformers', they say which inputs the graph takes, and their shapes
  /// where nothing is dynamic. Errors: those of Checkpoint and of the tasks: unsupported for a
  /// model without a definition, corrupt for missing tensors; invalid_argument if neither
  /// sample_inputs nor the config give the shapes.
  ExportedModel export_model(const Checkpoint& checkpoint, const NamedTensors& sample_inputs,
                             const OnnxConfig& config, const Sink& sink = {}) const;
  ExportedModel export_model(const Checkpoint& checkpoint, const OnnxConfig& config,
                             const Sink& sink = {}) const {
    return export_model(checkpoint, {}, config, sink);
  }

  /// Components "prefill" and "decode", which share one copy of the weights. The checkpoint's
  /// generation configuration goes along. Errors: those of export_model; invalid_argument for
  /// generation options that contradict each other; unsupported for a static cache where layers
  /// keep something else than keys and values.
  ExportedModel export_for_generation(const Checkpoint& checkpoint, const OnnxConfig& config,
                                      const GenerationOptions& generation = {},
                                      const Sink& sink = {}) const;
  /// The same with a configuration for each component, by its name. Components with the same one
  /// share their weights. Errors: invalid_argument for a component without one, with the names of
  /// all, and for a name that is none.
  ExportedModel export_for_generation(const Checkpoint& checkpoint,
                                      const ConfigByComponent<OnnxConfig>& configs,
                                      const GenerationOptions& generation = {},
                                      const Sink& sink = {}) const;
  /// What export_for_generation exports, in its order: to see what each component takes and gives,
  /// and to name those that are wanted. Graphs are made for it, and no weight is read. Errors:
  /// those of export_for_generation.
  std::vector<GenerationComponent> decompose_for_generation(
      const Checkpoint& checkpoint, const OnnxConfig& config,
      const GenerationOptions& generation = {}) const;

  /// A program that PyTorch captured (a .pt2 of torch.export.save), one component "model". Its
  /// shapes and dtypes are those of the capture: of the config, opset_version and external_data
  /// count. The tree specs of its arguments and results go along; beside an export.json of
  /// Transformers that names the file, so do its metadata and config.json. Errors: io and corrupt
  /// for what is not a whole archive; unsupported for operators that nobody has mapped, all of them
  /// with their places; invalid_argument for options that a capture has decided already.
  ExportedModel export_program(const std::filesystem::path& pt2, const OnnxConfig& config,
                               const Sink& sink = {}) const;
};

/// Exports to PyTorch: an archive of torch.export a component, model.pt2, to be run by PyTorch, and
/// compiled by AOTInductor. Nothing of PyTorch is needed to write it.
class DynamoExporter {
 public:
  static constexpr std::string_view kExportFormat = "dynamo";

  /// Errors: as OnnxExporter's.
  ExportedModel export_model(const Checkpoint& checkpoint, const NamedTensors& sample_inputs,
                             const DynamoConfig& config, const Sink& sink = {}) const;
  ExportedModel export_model(const Checkpoint& checkpoint, const DynamoConfig& config,
                             const Sink& sink = {}) const {
    return export_model(checkpoint, {}, config, sink);
  }

  /// Components "prefill" and "decode", each with its own copy of the weights.
  /// A static cache's buffers are written in place, as Transformers' programs do; the sample inputs
  /// hold an empty cache to begin with.
  ExportedModel export_for_generation(const Checkpoint& checkpoint, const DynamoConfig& config,
                                      const GenerationOptions& generation = {},
                                      const Sink& sink = {}) const;
  /// As OnnxExporter's.
  ExportedModel export_for_generation(const Checkpoint& checkpoint,
                                      const ConfigByComponent<DynamoConfig>& configs,
                                      const GenerationOptions& generation = {},
                                      const Sink& sink = {}) const;
  std::vector<GenerationComponent> decompose_for_generation(
      const Checkpoint& checkpoint, const DynamoConfig& config,
      const GenerationOptions& generation = {}) const;

  /// A program that PyTorch captured, written again: as OnnxExporter's, with the same names, tree
  /// specs and sample inputs. Errors: the same; unsupported for arguments that are ints given in
  /// each call, and for a program that changes its own buffers.
  ExportedModel export_program(const std::filesystem::path& pt2, const DynamoConfig& config,
                               const Sink& sink = {}) const;
};

/// Reads a configuration of any format by its "export_format".
class AutoExportConfig {
 public:
  /// Errors: invalid_argument for a missing or unknown export_format (with those there are), and
  /// for unknown keys.
  static AutoExportConfig from_json(std::string_view json);
  const std::string& export_format() const { return export_format_; }
  /// The one of its format; the others are defaults.
  const OnnxConfig& onnx() const { return onnx_; }
  const DynamoConfig& dynamo() const { return dynamo_; }

 private:
  std::string export_format_;
  OnnxConfig onnx_;
  DynamoConfig dynamo_;
};

/// The exporter that a configuration asks for.
class AutoHfExporter {
 public:
  static AutoHfExporter from_config(const AutoExportConfig& config);
  ExportedModel export_model(const Checkpoint& checkpoint, const NamedTensors& sample_inputs,
                             const Sink& sink = {}) const;
  ExportedModel export_for_generation(const Checkpoint& checkpoint,
                                      const GenerationOptions& generation = {},
                                      const Sink& sink = {}) const;

 private:
  explicit AutoHfExporter(AutoExportConfig config) : config_(std::move(config)) {}
  AutoExportConfig config_;
};

}  // namespace tranship
