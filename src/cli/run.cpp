// `tranship run`: runs one component of an artifact on tensors from files or from the line.
#include <fmt/core.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <memory>

#include "base/atomic_file.h"
#include "base/error.h"
#include "checkpoint/safetensors.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/print_tensor.h"
#include "cli/usage.h"
#include "tranship/exporters.h"

namespace tranship::cli {
namespace {

struct Options {
  std::string directory;
  std::string component;
  std::vector<std::string> input_files;
  std::vector<std::string> inputs;
  std::string output_file;
  RunOptions run;
  std::string library;
};

/// A file's tensor of that name, or its only one.
Tensor tensor_of_file(const std::string& name, const std::filesystem::path& path) {
  if (path.extension() != ".safetensors")
    return parse_tensor(name, read_text(path), "@" + path.string());
  NamedTensors tensors = read_safetensors(path);
  if (const auto found = tensors.find(name); found != tensors.end())
    return std::move(found->second);
  if (tensors.size() == 1) return std::move(tensors.begin()->second);
  std::vector<std::string> names;
  for (const auto& [tensor, value] : tensors) names.push_back(tensor);
  fail(ErrorKind::kInvalidArgument, "[run] '{}' has no tensor '{}', and not a single one, but {}",
       path.string(), name, listed(names));
}

void add_input(NamedTensors& inputs, const std::string& name, Tensor tensor) {
  if (!inputs.emplace(name, std::move(tensor)).second)
    throw UsageError(fmt::format("the input '{}' is given twice", name));
}

NamedTensors read_inputs(const Options& options) {
  NamedTensors inputs;
  for (const std::string& file : options.input_files) {
    for (auto& [name, tensor] : read_safetensors(file)) add_input(inputs, name, std::move(tensor));
  }
  for (const std::string& text : options.inputs) {
    const auto [name, value] = parse_assignment("--input", text);
    add_input(
        inputs, name,
        value.starts_with('@') ? tensor_of_file(name, value.substr(1)) : parse_tensor(name, value));
  }
  if (inputs.empty())
    throw UsageError(
        "there are no inputs: pass --inputs FILE.safetensors, or --input NAME=VALUE for each");
  return inputs;
}

void check_component(const Options& options, const ExportedModel& model) {
  std::vector<std::string> names;
  for (const auto& [name, component] : model.components()) names.push_back(name);
  const bool is_known = std::ranges::find(names, options.component) != names.end();
  if (options.component.empty() ? names.size() == 1 : is_known) return;
  const std::string what = options.component.empty() ? "say which one to run"
                                                     : "there is no '" + options.component + "'";
  throw UsageError(
      fmt::format("--component: {}; '{}' has {}", what, options.directory, listed(names)));
}

void run(const Options& options, Console& console) {
  const NamedTensors inputs = read_inputs(options);
  RunOptions run_options = options.run;
  run_options.library = options.library;
  const Sink sink = console.sink();
  const ExportedModel model = ExportedModel::from_pretrained(
      options.directory, {.subfolder = "", .run = run_options}, sink);
  check_component(options, model);
  const NamedTensors outputs =
      options.component.empty() ? model(inputs, sink) : model.run(options.component, inputs, sink);
  if (!options.output_file.empty()) {
    write_safetensors(options.output_file, outputs);
    return;
  }
  for (const auto& [name, tensor] : outputs) console.print(describe_tensor(name, tensor));
}

constexpr Description kDescription = {
    .name = "run",
    .summary = "Runs a component of an artifact on tensors.",
    .text =
        "Inputs and outputs have the names that the graph gives them (`tranship inspect DIR` lists "
        "them). Optional inputs "
        "that are left out get the model's own default: attention_mask ones, token_type_ids zeros, "
        "position_ids 0, 1, "
        "2 and so on. Without --outputs the results are printed, shortened.",
    .examples =
        "  tranship run minilm-onnx --input \"input_ids=[[101, 7592, 102]]\"\n"
        "  tranship run minilm-onnx --inputs batch.safetensors --outputs result.safetensors\n"
        "  tranship run smollm2-onnx --component prefill --input \"input_ids=[[1, 2, 3]]\""};

}  // namespace

Command add_run(CLI::App& root, Console& console) {
  const auto options = std::make_shared<Options>();
  CLI::App* app = add_subcommand(root, console, kDescription);
  app->add_option("DIR", options->directory, "The artifact: a directory with an export.json.")
      ->required();
  app->add_option("--component", options->component,
                  "Which one to run, where there are several: prefill or decode.")
      ->type_name("NAME");
  add_repeated(*app, "--inputs", options->input_files, "FILE",
               "A .safetensors file whose tensors are inputs by name. May be repeated.");
  add_repeated(*app, "--input", options->inputs, "NAME=VALUE",
               "One input. VALUE is a number, true, false or nested lists (whole numbers are i64, "
               "others f32), or @FILE: a "
               ".safetensors file with that tensor, or text like VALUE. May be repeated.");
  app->add_option("--outputs", options->output_file,
                  "The .safetensors file to write the outputs to.")
      ->type_name("FILE");
  add_runtime_options(*app, options->run, options->library);
  return {app, [options, &console] { run(*options, console); }};
}

}  // namespace tranship::cli
