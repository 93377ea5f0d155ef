// `tranship inspect`: looks at whatever there is at a path.
#include "cli/inspect.h"

#include <CLI/App.hpp>
#include <memory>

#include "base/error.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/usage.h"
#include "ir/text.h"

namespace tranship::cli {
namespace {

struct Options {
  std::string path;
  bool json = false;
  bool graph = false;
  std::string component;
  ModelChoice choice;
};

bool is_model(PathKind kind) {
  return kind == PathKind::kCheckpoint || kind == PathKind::kGguf || kind == PathKind::kConfig;
}

void print_graphs(const Options& options, PathKind kind, Console& console) {
  const OpenedModel model = open_model(kind, options.path, console.sink());
  const tasks::TaskProgram made = build_model(model, options.choice, console.sink());
  std::vector<std::string> names;
  bool printed = false;
  for (const ir::Component& component : made.program.components) {
    names.push_back(component.name);
    if (!options.component.empty() && component.name != options.component) continue;
    console.print((printed ? "\n" : "") + ir::print(*component.graph));
    printed = true;
  }
  if (!printed)
    throw UsageError(fmt::format("--component: there is no '{}' here, but {}", options.component,
                                 listed(names)));
}

/// Leaves only the component that was asked for.
void choose_component(Json& report, const std::string& name) {
  Json chosen = Json::array();
  std::vector<std::string> names;
  for (const Json& component : report["components"]) {
    names.push_back(component["name"].get<std::string>());
    if (component["name"] == name) chosen.push_back(component);
  }
  if (chosen.empty())
    throw UsageError(
        fmt::format("--component: there is no '{}' here, but {}", name, listed(names)));
  report["components"] = std::move(chosen);
}

Json make_report(const Options& options, PathKind kind, const Sink& sink) {
  switch (kind) {
    case PathKind::kArtifact:
      return report_artifact(options.path, sink);
    case PathKind::kSafetensors:
      return report_safetensors(options.path);
    case PathKind::kOnnx:
      return report_onnx(options.path);
    case PathKind::kCheckpoint:
    case PathKind::kGguf:
    case PathKind::kConfig:
      return report_model(open_model(kind, options.path, sink), options.choice, sink);
  }
  fail(ErrorKind::kInternal, "[inspect] a kind of path that nobody knows");
}

void run(const Options& options, Console& console) {
  const PathKind kind = kind_of(options.path);
  const bool chooses_model =
      options.graph || !options.choice.architecture.empty() || !options.choice.task.empty();
  if (chooses_model && !is_model(kind)) {
    throw UsageError(
        fmt::format("--graph, --architecture and --task are for checkpoints and config.json files; "
                    "'{}' is neither",
                    options.path));
  }
  if (!options.component.empty() && !options.graph && kind != PathKind::kArtifact) {
    throw UsageError(
        "--component chooses one of an artifact, or with --graph one of a model's graphs");
  }
  if (options.graph) {
    print_graphs(options, kind, console);
    return;
  }
  Json report = make_report(options, kind, console.sink());
  if (!options.component.empty()) choose_component(report, options.component);
  console.print(options.json ? to_python_json_line(report) + "\n"
                             : describe(report, console.width()));
}

constexpr Description kDescription = {
    .name = "inspect",
    .summary = "Shows what a checkpoint, an artifact or a model file holds.",
    .text =
        "PATH is one of: a checkpoint (a directory, or a .gguf file), a bare config.json, an "
        "artifact that `tranship "
        "export` or Transformers wrote, an .onnx file, a .safetensors file. No weight is read, so "
        "that the size of a "
        "model does not matter.",
    .examples =
        "  tranship inspect SmolLM2-135M-Instruct.Q4_1.gguf\n"
        "  tranship inspect smollm2-onnx --component decode\n"
        "  tranship inspect model.safetensors --json\n"
        "  tranship inspect config.json --graph --task forward"};

}  // namespace

PathKind kind_of(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return std::filesystem::exists(path / "export.json", ignored) ? PathKind::kArtifact
                                                                  : PathKind::kCheckpoint;
  }
  if (!std::filesystem::exists(path, ignored))
    fail(ErrorKind::kIo, "[inspect] there is nothing at '{}'", path.string());
  const std::string extension = path.extension().string();
  if (extension == ".gguf") return PathKind::kGguf;
  if (extension == ".json") return PathKind::kConfig;
  if (extension == ".safetensors") return PathKind::kSafetensors;
  if (extension == ".onnx") return PathKind::kOnnx;
  fail(ErrorKind::kUnsupported,
       "[inspect] '{}' is nothing that can be looked at: expected a directory (a checkpoint or an "
       "artifact), or a file that "
       "ends in .gguf, .json (a config.json), .safetensors or .onnx",
       path.string());
}

Command add_inspect(CLI::App& root, Console& console) {
  const auto options = std::make_shared<Options>();
  CLI::App* app = add_subcommand(root, console, kDescription);
  app->add_option("PATH", options->path, "What to look at: a directory or a file.")->required();
  app->add_flag("--json", options->json,
                "Prints one JSON object, with every tensor, for programs.");
  app->add_flag("--graph", options->graph,
                "Prints the graphs that an export of this checkpoint or config.json would have.");
  app->add_option("--component", options->component, "Only this one: model, or prefill or decode.")
      ->type_name("NAME");
  app->add_option("--architecture", options->choice.architecture,
                  "A class of Transformers, in place of the one that config.json names.")
      ->type_name("NAME");
  add_choice(*app, "--task", options->choice.task, {"forward", "generation"},
             "Whose graphs to build. By default generation if the class generates, else forward.");
  return {app, [options, &console] { run(*options, console); }};
}

}  // namespace tranship::cli
