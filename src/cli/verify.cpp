// `tranship verify`: is an artifact whole, and does it compute what its checkpoint does?
#include "exporters/verify.h"

#include <fmt/core.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <cmath>
#include <memory>

#include "base/error.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/format.h"
#include "cli/usage.h"
#include "tranship/exporters.h"

namespace tranship::cli {
namespace {

using exporters::FileVerdict;
using exporters::OutputVerdict;
using exporters::Reference;

struct Options {
  std::string directory;
  std::string against;
  exporters::Inputs inputs;
  RunOptions run;
  std::string library;
  bool json = false;
};

struct Verdict {
  std::vector<FileVerdict> files;
  std::vector<OutputVerdict> outputs;
  size_t num_wrong() const {
    const auto files_wrong =
        std::ranges::count(files, FileVerdict::Kind::kWrong, &FileVerdict::kind);
    const auto outputs_wrong = std::ranges::count(outputs, false, &OutputVerdict::is_same);
    return static_cast<size_t>(files_wrong + outputs_wrong);
  }
};

exporters::Runner runner_of(const ExportedModel& model, const Sink& sink) {
  return [model, sink](const std::string& component, const NamedTensors& inputs) {
    return model.run(component, inputs, sink);
  };
}

ExportedModel open_artifact(const Options& options, const std::string& directory,
                            const Sink& sink) {
  RunOptions run = options.run;
  run.library = options.library;
  return ExportedModel::from_pretrained(directory, {.subfolder = "", .run = run}, sink);
}

/// The longest sum of a model that only its artifacts are there of: a tolerance needs one.
constexpr int64_t kUsualLongestSum = 4096;

std::vector<OutputVerdict> compare(const Options& options, const Sink& sink) {
  const ExportedModel model = open_artifact(options, options.directory, sink);
  std::error_code ignored;
  const bool is_artifact =
      std::filesystem::exists(std::filesystem::path(options.against) / "export.json", ignored) &&
      !std::filesystem::equivalent(options.against, options.directory, ignored);
  const Reference reference =
      is_artifact
          ? Reference{.runner = runner_of(open_artifact(options, options.against, sink), sink),
                      .longest_sum = kUsualLongestSum}
          : exporters::reference_of(model, Checkpoint::open(options.against, sink), sink);
  return exporters::compare(model, runner_of(model, sink), reference.runner, reference.longest_sum,
                            options.inputs);
}

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

Json report(const Options& options, const Verdict& verdict) {
  Json out;
  out["directory"] = printable(options.directory);
  out["files"] = Json::array();
  for (const FileVerdict& file : verdict.files) {
    out["files"].push_back(
        {{"name", printable(file.file)}, {"verdict", word(file.kind)}, {"reason", file.text}});
  }
  out["outputs"] = Json::array();
  for (const OutputVerdict& output : verdict.outputs) {
    out["outputs"].push_back({{"component", output.component},
                              {"output", output.output},
                              {"difference", number(output.largest_difference)},
                              {"largest", number(output.largest_reference)},
                              {"tolerance", number(output.tolerance)},
                              {"verdict", output.is_same() ? "same" : "wrong"}});
  }
  if (!options.against.empty()) out["seed"] = options.inputs.seed;
  out["faults"] = verdict.num_wrong();
  return out;
}

std::string describe(const Options& options, const Verdict& verdict, const Console& console) {
  Table files({"file", "", ""});
  for (const FileVerdict& file : verdict.files)
    files.add({printable(file.file), std::string(word(file.kind)), printable(file.text)});
  std::string out = files.text();
  if (!options.against.empty()) {
    Table outputs({"component", "output", ">difference", ">relative", ">tolerance", ""});
    for (const OutputVerdict& o : verdict.outputs) {
      const double relative =
          o.largest_reference > 0 ? o.largest_difference / o.largest_reference : 0;
      outputs.add({o.component, o.output, fmt::format("{:.2e}", o.largest_difference),
                   fmt::format("{:.2e}", relative), fmt::format("{:.2e}", o.tolerance),
                   o.is_same() ? "same" : "wrong"});
    }
    out += "\n" + outputs.text() +
           fmt::format("  random inputs of seed {}, batch {}, {} tokens, one of them masked\n",
                       options.inputs.seed, options.inputs.batch, options.inputs.sequence);
  }
  const size_t wrong = verdict.num_wrong();
  const auto unknown =
      std::ranges::count(verdict.files, FileVerdict::Kind::kUnknown, &FileVerdict::kind);
  out += wrong > 0 ? fmt::format("\n{}: {} of them\n", console.tinted(Tint::kRed, "Faults"), wrong)
                   : fmt::format("\n{}", console.tinted(Tint::kGreen, "No fault found"));
  if (wrong > 0) return out;
  return out + (unknown > 0 ? fmt::format("; {} could not be checked\n", unknown) : "\n");
}

void run(const Options& options, Console& console) {
  if (options.inputs.batch < 1 || options.inputs.sequence < 1)
    throw UsageError("--batch and --tokens begin at 1");
  const Sink sink = console.sink();
  Verdict verdict;
  verdict.files = exporters::check_files(options.directory, sink);
  const bool is_whole = verdict.num_wrong() == 0;
  if (!options.against.empty()) {
    if (!is_whole) console.warn("[verify] files are wrong: what the artifact computes may be too");
    try {
      verdict.outputs = compare(options, sink);
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
        "recorded in export.json, that file included. What an artifact does not record (one that "
        "Transformers wrote, or weights that stay in a checkpoint) is named as unknown. With "
        "--against it also runs each component on ONNX Runtime and the model's definition in a "
        "plain interpreter, on the same random inputs, and shows the largest difference of each "
        "output. The tolerance is 4 eps sqrt(K) max|reference|, K the longest sum in the model. "
        "Exit code 1 for any fault.",
    .examples =
        "  tranship verify smollm2-onnx\n"
        "  tranship verify smollm2-onnx --against SmolLM2-135M-Instruct\n"
        "  tranship verify smollm2-onnx --against smollm2-older --json"};

}  // namespace

Command add_verify(CLI::App& root, Console& console) {
  const auto options = std::make_shared<Options>();
  CLI::App* app = add_subcommand(root, console, kDescription);
  app->add_option("DIR", options->directory, "The artifact: a directory with an export.json.")
      ->required();
  app->add_option("--against", options->against,
                  "The checkpoint that it was exported from, or another artifact of the model.")
      ->type_name("PATH");
  const std::string group = "Inputs";
  app->add_option("--batch", options->inputs.batch, "Sequences, where that is open; by default 2.")
      ->type_name("N")
      ->group(group);
  app->add_option("--tokens", options->inputs.sequence,
                  "Tokens of each, where that is open; by default 4. The interpreter is slow.")
      ->type_name("N")
      ->group(group);
  app->add_option("--seed", options->inputs.seed, "Of the random inputs; by default 0.")
      ->type_name("N")
      ->group(group);
  app->add_flag("--json", options->json, "Prints one JSON object in place of the tables.");
  add_runtime_options(*app, options->run, options->library);
  return {app, [options, &console] { run(*options, console); }};
}

}  // namespace tranship::cli
