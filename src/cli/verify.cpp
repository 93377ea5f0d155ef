// `tranship verify`: is an artifact whole, and does it compute what its checkpoint does?
#include "exporters/verify.h"

#include <fmt/core.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/format.h"
#include "cli/usage.h"
#include "exporters/compare.h"
#include "tranship/exporters.h"

namespace tranship::cli {
namespace {

using exporters::Comparison;
using exporters::Difference;
using exporters::FileVerdict;
using exporters::Side;

struct Options {
  std::string directory;
  std::string against;
  bool layers = false;
  exporters::InputSizes inputs;
  RunOptions run;
  std::string library;
  bool json = false;
};

struct Verdict {
  std::vector<FileVerdict> files;
  Comparison numbers;
  size_t num_wrong() const {
    const auto files_wrong =
        std::ranges::count(files, FileVerdict::Kind::kWrong, &FileVerdict::kind);
    const auto outputs_wrong = std::ranges::count(numbers.outputs, false, &Difference::is_same);
    return static_cast<size_t>(files_wrong + outputs_wrong);
  }
};

ExportedModel open_artifact(const Options& options, const std::string& directory,
                            const Sink& sink) {
  RunOptions run = options.run;
  run.library = options.library;
  return ExportedModel::from_pretrained(directory, {.subfolder = "", .run = run}, sink);
}

Side reference_of(const Options& options, const ExportedModel& model, const Sink& sink) {
  std::error_code ignored;
  const std::filesystem::path against = options.against;
  const bool is_artifact = std::filesystem::exists(against / "export.json", ignored) &&
                           !std::filesystem::equivalent(against, options.directory, ignored);
  if (is_artifact)
    return exporters::side_of(open_artifact(options, against, sink), options.layers, sink);
  if (against.extension() == ".pt2")
    return exporters::side_of_capture(against, model, options.layers);
  return exporters::side_of(Checkpoint::open(against, sink), model, options.layers, sink);
}

Comparison compare(const Options& options, const Sink& sink) {
  const ExportedModel model = open_artifact(options, options.directory, sink);
  const Side reference = reference_of(options, model, sink);
  const Side found = exporters::side_of(model, options.layers, sink);
  Comparison numbers = exporters::compare(model, found, reference, options.inputs);
  if (options.layers && numbers.modules.empty()) {
    fail(ErrorKind::kUnsupported,
         "[verify] '{}' and '{}' have no modules in common, so layers cannot be compared: of .onnx "
         "files only those that tranship exported name their modules. Leave out --layers",
         printable(options.directory), printable(options.against));
  }
  return numbers;
}

// ---- layers

/// "model.layers.3" of "model.layers.3.mlp.up_proj"; all of a path without a number.
std::string layer_of(const std::string& path) {
  const auto is_digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  for (size_t begin = 0; begin < path.size();) {
    const size_t end = std::min(path.find('.', begin), path.size());
    const std::string_view part = std::string_view(path).substr(begin, end - begin);
    if (std::ranges::all_of(part, is_digit)) return path.substr(0, end);
    begin = end + 1;
  }
  return path;
}

/// How many times its tolerance a difference is.
double excess(const Difference& d) {
  if (d.largest_difference == 0) return 0;
  return d.tolerance > 0 ? d.largest_difference / d.tolerance
                         : std::numeric_limits<double>::infinity();
}

/// Of each layer the module that is furthest away, in the order in which they run.
std::vector<Difference> worst_of_layers(const std::vector<Difference>& modules) {
  std::vector<Difference> worst;
  for (const Difference& module : modules) {
    const auto same_layer = [&](const Difference& other) {
      return other.component == module.component && layer_of(other.name) == layer_of(module.name);
    };
    const auto known = std::ranges::find_if(worst, same_layer);
    if (known == worst.end()) {
      worst.push_back(module);
    } else if (excess(module) > excess(*known)) {
      *known = module;
    }
  }
  return worst;
}

// ---- what is printed

std::string_view word(FileVerdict::Kind kind) {
  switch (kind) {
    case FileVerdict::Kind::kSame:
      return "same";
    case FileVerdict::Kind::kWrong:
      return "wrong";
    case FileVerdict::Kind::kUnknown:
      return "unknown";
  }
  return "";
}

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

/// How near the numbers of an output are, and those of a module: only outputs are judged.
std::string_view word_of_output(const Difference& d) { return d.is_same() ? "same" : "wrong"; }
std::string_view word_of_module(const Difference& d) { return d.is_same() ? "near" : "far"; }

Json report(std::string_view key, const Difference& d, std::string_view verdict) {
  return {{"component", d.component},
          {key, d.name},
          {"difference", number(d.largest_difference)},
          {"largest", number(d.largest_reference)},
          {"tolerance", number(d.tolerance)},
          {"verdict", verdict}};
}

Json report(const Options& options, const Verdict& verdict) {
  Json out;
  out["directory"] = printable(options.directory);
  out["files"] = Json::array();
  for (const FileVerdict& file : verdict.files) {
    out["files"].push_back(
        {{"name", printable(file.file)}, {"verdict", word(file.kind)}, {"reason", file.text}});
  }
  out["outputs"] = Json::array();
  for (const Difference& d : verdict.numbers.outputs)
    out["outputs"].push_back(report("output", d, word_of_output(d)));
  if (options.layers) {
    out["modules"] = Json::array();
    for (const Difference& d : verdict.numbers.modules)
      out["modules"].push_back(report("module", d, word_of_module(d)));
  }
  if (!options.against.empty()) out["seed"] = options.inputs.seed;
  out["faults"] = verdict.num_wrong();
  return out;
}

std::string table(std::string_view what, const std::vector<Difference>& differences,
                  std::string_view (*word)(const Difference&)) {
  Table table({"component", std::string(what), ">difference", ">relative", ">tolerance", ""});
  for (const Difference& d : differences) {
    const double relative =
        d.largest_reference > 0 ? d.largest_difference / d.largest_reference : 0;
    table.add({d.component, printable(d.name), fmt::format("{:.2e}", d.largest_difference),
               fmt::format("{:.2e}", relative), fmt::format("{:.2e}", d.tolerance),
               std::string(word(d))});
  }
  return table.text();
}

std::string describe(const Options& options, const Comparison& numbers) {
  std::string out;
  if (!numbers.modules.empty())
    out += "\n" +
           table("furthest module of each layer", worst_of_layers(numbers.modules), word_of_module);
  if (!numbers.outputs.empty()) {
    out += "\n" + table("output", numbers.outputs, word_of_output) +
           fmt::format("  random inputs of seed {}, one token masked\n", options.inputs.seed);
  }
  const bool is_wrong = std::ranges::count(numbers.outputs, false, &Difference::is_same) > 0;
  const auto first = std::ranges::find(numbers.modules, false, &Difference::is_same);
  if (is_wrong && first != numbers.modules.end()) {
    out += fmt::format("  the first module that is far away: {} of {}\n", printable(first->name),
                       first->component);
  }
  return out;
}

std::string describe(const Options& options, const Verdict& verdict, const Console& console) {
  Table files({"file", "", ""});
  for (const FileVerdict& file : verdict.files)
    files.add({printable(file.file), std::string(word(file.kind)), printable(file.text)});
  std::string out = files.text() + describe(options, verdict.numbers);
  const size_t wrong = verdict.num_wrong();
  const auto unknown =
      std::ranges::count(verdict.files, FileVerdict::Kind::kUnknown, &FileVerdict::kind);
  out += wrong > 0 ? fmt::format("\n{}: {} of them\n", console.tinted(Tint::kRed, "Faults"), wrong)
                   : fmt::format("\n{}", console.tinted(Tint::kGreen, "No fault found"));
  if (wrong > 0) return out;
  return out + (unknown > 0 ? fmt::format("; {} could not be checked\n", unknown) : "\n");
}

void run(const Options& options, Console& console) {
  if (options.inputs.batch.value_or(1) < 1 || options.inputs.sequence < 1)
    throw UsageError("--batch and --tokens begin at 1");
  if (options.layers && options.against.empty())
    throw UsageError("--layers compares with something: --against CHECKPOINT or ARTIFACT");
  const Sink sink = console.sink();
  Verdict verdict;
  verdict.files = exporters::check_files(options.directory, sink);
  const bool is_whole = verdict.num_wrong() == 0;
  if (!options.against.empty()) {
    if (!is_whole) console.warn("[verify] files are wrong: what the artifact computes may be too");
    try {
      verdict.numbers = compare(options, sink);
    } catch (const Error& error) {
      if (is_whole) throw;
      console.warn(error.what());  // the faults of its files are why, and are reported
    }
  }
  console.progress().clear();
  console.print(options.json ? to_python_json_line(report(options, verdict)) + "\n"
                             : describe(options, verdict, console));
  if (const size_t wrong = verdict.num_wrong(); wrong > 0) {
    fail(ErrorKind::kCorrupt, "[verify] '{}': {} {} wrong, see above", printable(options.directory),
         wrong, wrong == 1 ? "is" : "are");
  }
}

constexpr Description kDescription = {
    .name = "verify",
    .summary = "Checks that an artifact is whole, and that it computes what its checkpoint does.",
    .text =
        "Reads every file of the artifact and compares its size and hash with what the export "
        "recorded in export.json, that file included. What no hash was recorded of (an artifact "
        "that Transformers wrote; all but samples of weights that stayed in the checkpoint) is "
        "named as unknown.\n\n"
        "With --against it also runs each component, and on the same random inputs the reference: "
        "an .onnx on ONNX Runtime; a .pt2, as it is read, and a checkpoint's definition in a plain "
        "interpreter. The largest difference of each output is shown. It is wrong beyond "
        "max|reference| times 4 eps sqrt(K L) in f32, K the longest sum in the model, L its "
        "layers; in f16 and bf16, which round each result, 4 eps sqrt(16 L) more. The interpreter "
        "takes seconds for 100 million parameters.\n\n"
        "Exit code 0: no fault. 1: a fault, or the artifact cannot be read. 2: wrong usage.",
    .examples =
        "  tranship verify smollm2-onnx\n"
        "  tranship verify smollm2-onnx --against SmolLM2-135M-Instruct\n"
        "  tranship verify smollm2-onnx --against smollm2-older --layers\n"
        "  tranship verify smollm2-onnx --against SmolLM2-135M-Instruct.Q4_1.gguf --json\n"
        "  tranship verify captured-onnx --against captured.pt2"};

void add_input_options(CLI::App& app, exporters::InputSizes& inputs) {
  const std::string group = "Inputs";
  app.add_option("--batch", inputs.batch,
                 "Sequences, where that is open; by default 2, or 1 if the model takes but one.")
      ->type_name("N")
      ->group(group);
  app.add_option("--tokens", inputs.sequence, "Tokens of each, where that is open; by default 4.")
      ->type_name("N")
      ->group(group);
  app.add_option("--seed", inputs.seed, "Of the random inputs; by default 0.")
      ->type_name("N")
      ->group(group);
}

}  // namespace

Command add_verify(CLI::App& root, Console& console) {
  const auto options = std::make_shared<Options>();
  CLI::App* app = add_subcommand(root, console, kDescription);
  app->add_option("DIR", options->directory, "The artifact: a directory with an export.json.")
      ->required();
  app->add_option(
         "--against", options->against,
         "What it was exported from, a checkpoint or a .pt2 that PyTorch captured; or another "
         "artifact of the model.")
      ->type_name("PATH");
  app->add_flag("--layers", options->layers,
                "Shows too what modules with weights gave: of each layer the one that is furthest "
                "away, and the first beyond its tolerance. Needs --against.");
  add_input_options(*app, options->inputs);
  app->add_flag("--json", options->json, "Prints one JSON object in place of the tables.");
  add_runtime_options(*app, options->run, options->library);
  return {app, [options, &console] { run(*options, console); }};
}

}  // namespace tranship::cli
