// `tranship export`: from a checkpoint to an artifact.
#include <fmt/core.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <memory>

#include "base/error.h"
#include "base/json.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/format.h"
#include "cli/interrupt.h"
#include "cli/model_facts.h"
#include "cli/usage.h"
#include "exporters/graph_inputs.h"
#include "formats/onnx/fusions/provider.h"
#include "tranship/exporters.h"

namespace tranship::cli {
namespace {

struct Options {
  std::string checkpoint;
  std::string format;
  std::string output;
  std::string task;
  std::string architecture;
  std::string dtype;
  bool dynamic = true;
  std::vector<std::string> static_sizes;
  std::vector<std::string> ranges;
  std::optional<int> opset;
  std::string ort_fusions;
  std::string weights = "copy";
  bool no_external_data = false;
  std::vector<std::string> also;
  std::vector<std::string> components;
  GenerationOptions generation = {};
  std::vector<std::string> graph_inputs;
  std::string cache_name = "past_key_values";
  std::vector<std::string> ignored_keys;
  bool synthetic = false;
  bool dry_run = false;
  bool json = false;
};

Checkpoint open_checkpoint(const Options& options, const Sink& sink) {
  if (!options.synthetic) return Checkpoint::open(options.checkpoint, sink);
  std::filesystem::path path = options.checkpoint;
  if (std::filesystem::is_directory(path)) path /= "config.json";
  return open_config(path);
}

/// What all formats' configurations have.
template <class Config>
Config shared_config(const Options& options) {
  Config config;
  config.dynamic = options.dynamic;
  config.static_shapes = parse_sizes(options.static_sizes);
  config.dims = parse_ranges(options.ranges);
  if (!options.dtype.empty()) config.dtype = find_dtype(options.dtype);
  config.architecture = options.architecture;
  if (!options.graph_inputs.empty()) config.graph_inputs = options.graph_inputs;
  config.cache_name = options.cache_name;
  config.ignored_config_keys = options.ignored_keys;
  return config;
}

GenerationOptions generation_of(const Options& options) {
  GenerationOptions generation = options.generation;
  if (!options.components.empty()) generation.components = options.components;
  return generation;
}

OnnxConfig onnx_config(const Options& options) {
  auto config = shared_config<OnnxConfig>(options);
  config.opset_version = options.opset;
  if (!options.ort_fusions.empty()) config.ort_fusions = options.ort_fusions;
  config.external_data = !options.no_external_data;
  if (options.weights == "reference") config.weights = WeightsPlacement::kReference;
  config.also = options.also;
  return config;
}

DynamoConfig dynamo_config(const Options& options) {
  std::vector<std::string> foreign;
  if (options.opset) foreign.emplace_back("--opset");
  if (!options.ort_fusions.empty()) foreign.emplace_back("--ort-fusions");
  if (options.weights != "copy") foreign.emplace_back("--weights");
  if (options.no_external_data) foreign.emplace_back("--no-external-data");
  if (!options.also.empty()) foreign.emplace_back("--also");
  if (!foreign.empty()) {
    throw UsageError(fmt::format("{}: only exports to onnx have that", listed(foreign)));
  }
  return shared_config<DynamoConfig>(options);
}

/// An exporter with its configuration: checkpoint, task -> export.
using Exporting = std::function<ExportedModel(const Checkpoint& checkpoint, const std::string& task,
                                              const Sink&)>;

template <class Exporter, class Config>
Exporting exporting_by(Exporter exporter, Config config, GenerationOptions generation) {
  return [=](const Checkpoint& checkpoint, const std::string& task, const Sink& sink) {
    return task == "generation"
               ? exporter.export_for_generation(checkpoint, config, generation, sink)
               : exporter.export_model(checkpoint, config, sink);
  };
}

Exporting exporting_of(const Options& options) {
  if (options.format == OnnxExporter::kExportFormat)
    return exporting_by(OnnxExporter(), onnx_config(options), generation_of(options));
  return exporting_by(DynamoExporter(), dynamo_config(options), generation_of(options));
}

/// What was exported, or would be.
struct Export {
  ExportedModel model;
  std::string task;
  std::vector<ArtifactFile> files = {};  // as they are, or would be, written
  double seconds = 0;
  ModelFacts facts;  // of a dry run
};

DType dtype_of(const ExportedModel& model) {
  return find_dtype(model.components().front().second.metadata.export_dtype).value_or(DType::kF32);
}

/// The graphs are built a second time, in milliseconds: an ExportedModel does not say what it
/// weighs.
ModelFacts weigh(const Checkpoint& checkpoint, const Options& options, const Export& made) {
  const tasks::TaskOptions task_options = {
      .dtype = dtype_of(made.model),
      .architecture = options.architecture,
      .graph_inputs =
          exporters::choose_graph_inputs(checkpoint, {}, shared_config<DynamoConfig>(options)),
      .cache_name = options.cache_name,
      .max_cache_len = options.generation.max_cache_len,
      .multi_token_decode = options.generation.multi_token_decode,
      .last_token_logits = options.generation.last_token_logits,
      .ignored_config_keys = options.ignored_keys};
  return facts_of(build_task(made.task, checkpoint.data(), task_options, {}).program);
}

bool changes_generation(const GenerationOptions& generation) {
  return generation.cache_implementation != GenerationOptions().cache_implementation ||
         generation.max_cache_len || generation.multi_token_decode ||
         generation.last_token_logits || generation.components;
}

/// A program that PyTorch captured has decided what a task would.
bool is_program(const Options& options) {
  if (std::filesystem::path(options.checkpoint).extension() != ".pt2") return false;
  if (!options.task.empty() || options.synthetic)
    throw UsageError("--task and --synthetic are for checkpoints, and a .pt2 is a program");
  if (changes_generation(generation_of(options)))
    throw UsageError("a .pt2 is a program: its cache is as it was captured");
  return true;
}

Export make_export(const Options& options, const Sink& sink) {
  const Exporting exporting = exporting_of(options);
  Export made{.model = ExportedModel(nullptr), .task = "program", .seconds = 0, .facts = {}};
  if (is_program(options)) {
    made.model =
        options.format == OnnxExporter::kExportFormat
            ? OnnxExporter().export_program(options.checkpoint, onnx_config(options), sink)
            : DynamoExporter().export_program(options.checkpoint, dynamo_config(options), sink);
    if (options.dry_run) made.facts = facts_of_program(options.checkpoint);
    return made;
  }
  const Checkpoint checkpoint = open_checkpoint(options, sink);
  made.task = options.task.empty() ? default_task(checkpoint.data().config, options.architecture)
                                   : options.task;
  if (made.task != "generation" && changes_generation(generation_of(options))) {
    throw UsageError(
        "--cache-implementation, --max-cache-len, --multi-token-decode, --last-token-logits and "
        "--components are for exports that generate (--task generation)");
  }
  made.model = exporting(checkpoint, made.task, sink);
  if (options.dry_run) made.facts = weigh(checkpoint, options, made);
  return made;
}

uint64_t total_bytes(const std::vector<ArtifactFile>& files) {
  uint64_t total = 0;
  for (const ArtifactFile& file : files) total += file.size_bytes;
  return total;
}

Export do_export(const Options& options, Console& console) {
  const auto begun = std::chrono::steady_clock::now();
  Export made = make_export(options, console.sink());
  made.files = made.model.files(options.output);
  if (!options.dry_run) {
    const InterruptGuard guard;
    made.model.save_pretrained(options.output, console.sink());
    check_interrupt();
  }
  console.progress().clear();
  made.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  return made;
}

bool has_tokenizer(const ExportedModel& model) {
  return std::ranges::any_of(model.files(),
                             [](const ArtifactFile& f) { return f.name == "tokenizer.json"; });
}

Json report(const Options& options, const Export& made) {
  const ExportMetadata& metadata = made.model.components().front().second.metadata;
  Json out;
  out["directory"] = printable(options.output);
  out["export_format"] = std::string(made.model.export_format());
  out["architecture"] = metadata.architecture;
  out["task"] = made.task;
  out["dtype"] = std::string(name(dtype_of(made.model)));
  out["components"] = Json::array();
  for (const auto& [name, component] : made.model.components()) {
    Json entry;
    entry["name"] = name;
    entry["nodes"] = component.program.num_nodes();
    out["components"].push_back(std::move(entry));
  }
  out["files"] = Json::array();
  for (const ArtifactFile& file : made.files) {
    Json entry;
    entry["name"] = file.name;
    entry["bytes"] = file.size_bytes;
    out["files"].push_back(std::move(entry));
  }
  out["bytes"] = total_bytes(made.model.files());
  out["written_bytes"] = total_bytes(made.files);
  out["tokenizer"] = has_tokenizer(made.model);
  if (options.dry_run) {
    out["parameters"] = made.facts.num_parameters;
    out["weight_bytes"] = made.facts.weight_bytes;
    out["state_bytes_per_token"] = made.facts.state_bytes_per_token;
  }
  out["dry_run"] = options.dry_run;
  out["seconds"] = made.seconds;
  return out;
}

std::string describe(const Options& options, const Export& made, const Console& console) {
  const ExportMetadata& metadata = made.model.components().front().second.metadata;
  std::string components;
  for (const auto& [name, component] : made.model.components()) {
    components += fmt::format("{}{} ({} nodes)", components.empty() ? "" : ", ", name,
                              component.program.num_nodes());
  }
  std::string out = fmt::format("{} to {} in {}: {}\n\n", printable(metadata.architecture),
                                made.model.export_format(), name(dtype_of(made.model)), components);
  Table files({"file", ">size"});
  for (const ArtifactFile& file : made.files) {
    files.add({file.name, options.dry_run ? format_exact(file.size_bytes) + " B"
                                          : format_bytes(file.size_bytes)});
  }
  out += files.text() + "\n";
  const uint64_t bytes = total_bytes(made.files);
  if (options.dry_run) {
    out +=
        fmt::format("{} parameters, in memory {} B when it runs",
                    format_exact(made.facts.num_parameters), format_exact(made.facts.weight_bytes));
    if (made.facts.state_bytes_per_token > 0) {
      out += fmt::format(", and {} B of cache per token of a sequence",
                         format_exact(made.facts.state_bytes_per_token));
    }
    return out + fmt::format("\n{} would write {} to {}\n",
                             console.tinted(Tint::kGreen, "Dry run:"), format_bytes(bytes),
                             printable(options.output));
  }
  return out + fmt::format("{} {} to {} in {}\n", console.tinted(Tint::kGreen, "Wrote"),
                           format_bytes(bytes), printable(options.output),
                           format_duration(made.seconds));
}

void run(const Options& options, Console& console) {
  const Export made = do_export(options, console);
  if (options.json) {
    console.print(to_python_json_line(report(options, made)) + "\n");
  } else {
    console.print(describe(options, made, console));
  }
}

constexpr Description kDescription = {
    .name = "export",
    .summary = "Exports a checkpoint to a runtime's format.",
    .text =
        "Writes a directory that holds the graphs, their weights, the configuration and the "
        "tokenizer. A class that generates text becomes the components prefill and decode (and an "
        "encoder before them, where the model has one), which share their weights in onnx and have "
        "a copy each in dynamo (.pt2); any other becomes one component, model. So does a program "
        "that PyTorch captured (torch.export.save), of any model; operators that cannot be "
        "exported are listed with their places. Weights stream from file to file: memory does not "
        "grow with the "
        "model. The directory's "
        "export.json is written last; without it there is no artifact.",
    .examples =
        "  tranship export SmolLM2-135M-Instruct --to onnx -o smollm2-onnx\n"
        "  tranship export model.gguf --to onnx -o out --dtype f32 --dry-run\n"
        "  tranship export all-MiniLM-L6-v2 --to onnx -o minilm --static batch=1,sequence=128\n"
        "  tranship export checkpoint --to onnx -o checkpoint --weights reference\n"
        "  tranship export captured.pt2 --to onnx -o captured-onnx\n"
        "  tranship export SmolLM2-135M-Instruct --to dynamo -o smollm2-pt2\n"
        "  tranship export qwen3 --to dynamo -o out --cache-implementation static --max-cache-len "
        "99"};

/// Names of formats; dynamo goes by its files' name too.
std::vector<std::string> export_formats() {
  return {std::string(OnnxExporter::kExportFormat), std::string(DynamoExporter::kExportFormat),
          "pt2"};
}

void add_shape_options(CLI::App& app, Options& options) {
  const std::string group = "Shapes";
  app.add_flag("--dynamic", options.dynamic,
               "Batch size and lengths stay open. This is the default.")
      ->group(group);
  add_list_option(app, "--static", options.static_sizes, "NAME=SIZE,...",
                  "Fixes axes by name, as in batch=1,sequence=128; those not named stay open. The "
                  "names are batch, sequence "
                  "(new tokens) and past (cached tokens).")
      ->group(group)
      ->excludes("--dynamic");
  add_repeated(app, "--dim", options.ranges, "NAME=MIN:MAX",
               "The range of an axis that stays open, as in sequence=1:2048; either end may be "
               "left out. May be repeated.")
      ->group(group);
}

std::string cache_name_problem(const std::string& word) {
  constexpr std::string_view kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  const bool is_word = !word.empty() && word.find_first_not_of(kLetters) == word.npos;
  return is_word ? "" : "'" + word + "' is not made of letters, digits and _";
}

void add_graph_options(CLI::App& app, Options& options) {
  const std::string group = "Graphs and weights";
  add_choice(app, "--dtype", options.dtype, {"f32", "f16", "bf16"},
             "dtype of weights and activations. By default the checkpoint's where the runtime has "
             "kernels for it, else f32. A "
             "weight that does not fit is an error.")
      ->group(group);
  limit(
      app.add_option("--opset", options.opset,
                     "ONNX opset, 18 to 24; by default 20. From 23 on attention, rotary positions "
                     "and RMS norms are operators; 24 writes a static cache in place.")
          ->type_name("N")
          ->group(group),
      18, 24);
  add_choice(app, "--ort-fusions", options.ort_fusions, onnx::provider_names(),
             "Operators of ONNX Runtime's own, for that provider: attention with its cache, norms, "
             "rotary positions, activations, experts, and projections as one. By default standard "
             "ONNX, which every runtime reads.")
      ->group(group);
  add_choice(app, "--weights", options.weights, {"copy", "reference"},
             "copy: into the artifact's own data file (the default). reference: the graphs point "
             "into the checkpoint's "
             "safetensors, and are written beside them; no byte of a weight is written.")
      ->group(group);
  app.add_flag("--no-external-data", options.no_external_data,
               "Puts the weights inside the .onnx: for models under 2 GB.")
      ->group(group);
  add_list_option(app, "--graph-inputs", options.graph_inputs, "NAME,...",
                  "Which optional inputs the graphs take (attention_mask, token_type_ids, "
                  "position_ids). By default those "
                  "that the checkpoint's tokenizer makes.")
      ->group(group);
  app.add_option("--cache-name", options.cache_name,
                 "What the names of cache inputs and outputs begin with: past_key_values (the "
                 "default), or cache as newer "
                 "Transformers say.")
      ->type_name("NAME")
      ->group(group)
      ->check(cache_name_problem, "");
}

void add_generation_options(CLI::App& app, Options& options) {
  const std::string group = "Generation";
  GenerationOptions& generation = options.generation;
  add_choice(app, "--cache-implementation", generation.cache_implementation, {"dynamic", "static"},
             "dynamic: a cache that grows with each token (the default). static: buffers of fixed "
             "length that each call writes in place, with a counter; the mask is bool [batch, 1, "
             "queries, slots].")
      ->group(group);
  limit(app.add_option("--max-cache-len", generation.max_cache_len,
                       "Slots of a static cache: the most tokens of a sequence.")
            ->type_name("N")
            ->group(group),
        1, std::numeric_limits<int32_t>::max());
  app.add_flag("--multi-token-decode", generation.multi_token_decode,
               "decode takes any number of tokens, so that one graph serves the prompt and what "
               "follows; else one token a call.")
      ->group(group);
  app.add_flag("--last-token-logits", generation.last_token_logits,
               "Logits of each row's last token alone, [batch, 1, vocabulary]: all that generating "
               "needs, and a prompt is read faster. By default of all tokens.")
      ->group(group);
  add_list_option(app, "--components", options.components, "NAME,...",
                  "Exports only these of encoder, prefill and decode: with --multi-token-decode, "
                  "decode alone generates.")
      ->group(group);
  add_list_option(
      app, "--also", options.also, "genai",
      "Also writes genai_config.json, so that onnxruntime-genai runs the directory: its "
      "loop feeds decode, as with --multi-token-decode. With --ort-fusions and --static "
      "batch=1 it writes its cache in place.")
      ->group(group);
}

}  // namespace

Command add_export(CLI::App& root, Console& console) {
  const auto options = std::make_shared<Options>();
  CLI::App* app = add_subcommand(root, console, kDescription);
  app->add_option("CHECKPOINT", options->checkpoint,
                  "A directory with config.json and safetensors, or a .gguf file; a .pt2 that "
                  "PyTorch captured; with --synthetic a config.json.")
      ->required();
  add_choice(*app, "--to", options->format, export_formats(), "The format.")->required();
  app->add_option("-o,--output", options->output,
                  "The directory to write; made if it is not there. Other files in it stay.")
      ->required()
      ->type_name("DIR");
  add_choice(*app, "--task", options->task, {"forward", "generation"},
             "forward: what model(**inputs) computes. generation: prefill and decode, with a cache "
             "between them. By default "
             "generation if the class generates, else forward.");
  app->add_option("--architecture", options->architecture,
                  "A class of Transformers, in place of the one that config.json names (`tranship "
                  "list` has all).")
      ->type_name("NAME");
  add_shape_options(*app, *options);
  add_graph_options(*app, *options);
  add_generation_options(*app, *options);
  add_repeated(*app, "--ignore-config", options->ignored_keys, "KEY",
               "A key of config.json that no definition knows, and that changes nothing you need. "
               "May be repeated.");
  app->add_flag(
      "--synthetic", options->synthetic,
      "CHECKPOINT is a config.json; the weights are made up (the same each time). For tests.");
  app->add_flag("--dry-run", options->dry_run,
                "Says what would be written, to the byte, and writes nothing.");
  app->add_flag("--json", options->json, "Prints one JSON object in place of the table.");
  return {app, [options, &console] { run(*options, console); }};
}

}  // namespace tranship::cli
