// `tranship list`: what can be exported to what.
#include <CLI/App.hpp>
#include <memory>

#include "base/json.h"
#include "cli/command.h"
#include "cli/format.h"
#include "models/families.h"
#include "tranship/exporters.h"

namespace tranship::cli {
namespace {

std::vector<std::string> tasks_of(const nn::Architecture& architecture) {
  std::vector<std::string> tasks = {"forward"};
  if (architecture.generates) tasks.emplace_back("generation");
  return tasks;
}

Json report() {
  Json out = Json::array();
  for (const nn::Family* family : models::families()) {
    for (const nn::Architecture& architecture : family->architectures) {
      Json entry;
      entry["model_type"] = std::string(family->model_type);
      entry["architecture"] = std::string(architecture.name);
      entry["tasks"] = tasks_of(architecture);
      entry["formats"] = {OnnxExporter::kExportFormat, DynamoExporter::kExportFormat};
      out.push_back(std::move(entry));
    }
  }
  return out;
}

std::string words(const Json& list) {
  std::string out;
  for (const Json& word : list) out += (out.empty() ? "" : ", ") + word.get<std::string>();
  return out;
}

std::string table(const Json& list) {
  Table table({"model_type", "architecture", "tasks", "formats"});
  std::string last;
  for (const Json& entry : list) {
    const auto family = entry["model_type"].get<std::string>();
    table.add({family.compare(last) == 0 ? "" : family, entry["architecture"].get<std::string>(),
               words(entry["tasks"]), words(entry["formats"])});
    last = family;
  }
  return table.text();
}

}  // namespace

Command add_list(CLI::App& root, Console& console) {
  CLI::App* app = add_subcommand(
      root, console,
      {.name = "list",
       .summary = "Lists architectures, their tasks, and the formats they can be exported to.",
       .text = "`forward` is what model(**inputs) computes; `generation` is a prefill and a decode "
               "graph with a cache "
               "between them, as generate() uses them.",
       .examples = "  tranship list\n  tranship list --json"});
  const auto json = std::make_shared<bool>(false);
  app->add_flag("--json", *json, "Prints a JSON array, an object for each architecture.");
  return {app, [&console, json] {
            const Json list = report();
            console.print(*json ? to_python_json_line(list) + "\n" : table(list));
          }};
}

}  // namespace tranship::cli
