// `tranship inspect`: looks at whatever there is at a path.
#include "cli/inspect.h"

#include <CLI/App.hpp>
#include <memory>
#include <utility>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/usage.h"
#include "ir/draw.h"
#include "ir/text.h"

namespace tranship::cli {
namespace {

struct Options {
  std::string path;
  bool json = false;
  bool graph = false;
  std::string graph_file;  // empty: the graphs are printed as text
  std::string component;
  ModelChoice choice;
};

bool is_model(PathKind kind) {
  return kind == PathKind::kCheckpoint || kind == PathKind::kGguf || kind == PathKind::kConfig;
}

bool is_drawing(std::string_view file) { return file.ends_with(".svg") || file.ends_with(".dot"); }

/// `--graph PATH` is an option without a value before the argument.
Options settled(Options options) {
  if (options.path.empty() && !options.graph_file.empty() && !is_drawing(options.graph_file))
    std::swap(options.path, options.graph_file);
  if (options.path.empty()) throw UsageError("PATH is missing: a directory or a file to look at");
  if (!options.graph_file.empty() && !is_drawing(options.graph_file)) {
    throw UsageError(fmt::format("--graph: expected a FILE that ends in .svg or .dot, found '{}'",
                                 options.graph_file));
  }
  return options;
}

/// The graphs that an export would write.
ir::Program build_program(const Options& options, PathKind kind, const Sink& sink) {
  if (kind == PathKind::kProgram) return open_program(options.path);
  return build_model(open_model(kind, options.path, sink), options.choice, sink).program;
}

void draw_graph(const Options& options, PathKind kind, Console& console) {
  const ir::Program made = build_program(options, kind, console.sink());
  std::vector<std::string> names;
  const ir::Component* chosen = nullptr;
  for (const ir::Component& component : made.components) {
    names.push_back(component.name);
    if (component.name == options.component) chosen = &component;
  }
  if (options.component.empty() && names.size() == 1) chosen = &made.components.front();
  if (chosen == nullptr) {
    throw UsageError(fmt::format("--graph FILE draws one graph: choose it with --component, of {}",
                                 listed(names)));
  }
  const ir::Folded folded = ir::fold(*chosen);
  write_text(options.graph_file,
             options.graph_file.ends_with(".svg") ? draw_svg(folded) : draw_dot(folded));
}

void print_graphs(const Options& options, PathKind kind, Console& console) {
  const ir::Program made = build_program(options, kind, console.sink());
  std::vector<std::string> names;
  bool printed = false;
  for (const ir::Component& component : made.components) {
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
    case PathKind::kProgram:
      return report_program(options.path);
    case PathKind::kCheckpoint:
    case PathKind::kGguf:
    case PathKind::kConfig:
      return report_model(open_model(kind, options.path, sink), options.choice, sink);
  }
  fail(ErrorKind::kInternal, "[inspect] a kind of path that nobody knows");
}

void run(const Options& given, Console& console) {
  const Options options = settled(given);
  const PathKind kind = kind_of(options.path);
  const bool chooses_model = !options.choice.architecture.empty() || !options.choice.task.empty();
  const bool has_graph = is_model(kind) || kind == PathKind::kProgram;
  if ((chooses_model && !is_model(kind)) || (options.graph && !has_graph)) {
    throw UsageError(
        fmt::format("--architecture and --task are for checkpoints and config.json files, --graph "
                    "for these and for .pt2 files; '{}' is none",
                    options.path));
  }
  if (!options.component.empty() && !options.graph && kind != PathKind::kArtifact) {
    throw UsageError(
        "--component chooses one of an artifact, or with --graph one of a model's graphs");
  }
  if (!options.graph_file.empty()) {
    draw_graph(options, kind, console);
    return;
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
        "export` or Transformers wrote, an .onnx file, a .safetensors file, a .pt2 that PyTorch "
        "captured. No weight is read, so "
        "that the size of a "
        "model does not matter.\n\n"
        "--graph shows the graphs that an export of a checkpoint, a .gguf, a .pt2 or a config.json "
        "would "
        "have: as text, or with FILE.svg or FILE.dot drawn, by modules, with equal layers once. "
        "Artifacts and .onnx files cannot be drawn.",
    .examples =
        "  tranship inspect SmolLM2-135M-Instruct.Q4_1.gguf\n"
        "  tranship inspect smollm2-onnx --component decode\n"
        "  tranship inspect model.safetensors --json\n"
        "  tranship inspect config.json --graph --task forward\n"
        "  tranship inspect SmolLM2-135M-Instruct.Q4_1.gguf --component decode --graph decode.svg"};

/// Whether a directory holds an export, be it one that is not whole.
bool is_artifact(const std::filesystem::path& directory) {
  std::error_code ignored;
  if (std::filesystem::exists(directory / "export.json", ignored)) return true;
  bool has_programs = false;
  for (const auto& entry : std::filesystem::directory_iterator(directory, ignored)) {
    const std::string extension = entry.path().extension().string();
    if (extension == ".safetensors" || extension == ".gguf") return false;
    has_programs |= extension == ".onnx";
  }
  return has_programs;
}

}  // namespace

PathKind kind_of(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    return is_artifact(path) ? PathKind::kArtifact : PathKind::kCheckpoint;
  if (!std::filesystem::exists(path, ignored))
    fail(ErrorKind::kIo, "[inspect] there is nothing at '{}'", path.string());
  const std::string extension = path.extension().string();
  if (extension == ".gguf") return PathKind::kGguf;
  if (extension == ".json") return PathKind::kConfig;
  if (extension == ".safetensors") return PathKind::kSafetensors;
  if (extension == ".onnx") return PathKind::kOnnx;
  if (extension == ".pt2") return PathKind::kProgram;
  fail(ErrorKind::kUnsupported,
       "[inspect] '{}' is nothing that can be looked at: expected a directory (a checkpoint or an "
       "artifact), or a file that "
       "ends in .gguf, .json (a config.json), .safetensors, .onnx or .pt2",
       path.string());
}

Command add_inspect(CLI::App& root, Console& console) {
  const auto options = std::make_shared<Options>();
  CLI::App* app = add_subcommand(root, console, kDescription);
  app->add_option("PATH", options->path, "What to look at: a directory or a file.");
  app->add_flag("--json", options->json,
                "Prints one JSON object, with every tensor, for programs.");
  CLI::Option* graph =
      app->add_option("--graph", options->graph_file,
                      "Prints the graphs that an export of this checkpoint or config.json would "
                      "have; with a FILE that ends in .svg or .dot, draws one of them there.");
  graph->expected(0, 1)->type_name("[FILE]");
  app->add_option("--component", options->component, "Only this one: model, or prefill or decode.")
      ->type_name("NAME");
  app->add_option("--architecture", options->choice.architecture,
                  "A class of Transformers, in place of the one that config.json names.")
      ->type_name("NAME");
  add_choice(*app, "--task", options->choice.task, {"forward", "generation"},
             "Whose graphs to build. By default generation if the class generates, else forward.");
  return {app, [options, graph, &console] {
            options->graph = graph->count() > 0;
            run(*options, console);
          }};
}

}  // namespace tranship::cli
