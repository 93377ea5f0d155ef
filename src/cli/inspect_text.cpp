// A report of `tranship inspect` in tables that a person reads.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/json.h"
#include "cli/format.h"
#include "cli/inspect.h"

namespace tranship::cli {
namespace {

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string joined(const Json& list, std::string_view between = ", ") {
  std::string out;
  for (const Json& item : list) out += (out.empty() ? "" : std::string(between)) + text_of(item);
  return out;
}

std::string shape_text(const Json& shape) { return "[" + joined(shape) + "]"; }

uint64_t sum_of(const Json& list, const char* key) {
  uint64_t sum = 0;
  for (const Json& item : list) sum += item[key].get<uint64_t>();
  return sum;
}

/// Elements of all tensors; a shape that makes no sense counts as none.
uint64_t num_elements(const Json& tensors) {
  uint64_t sum = 0;
  for (const Json& tensor : tensors) {
    uint64_t product = 1;
    for (const Json& size : tensor["shape"]) {
      const int64_t n = size.get<int64_t>();
      if (n < 0 || __builtin_mul_overflow(product, static_cast<uint64_t>(n), &product)) product = 0;
    }
    sum += product;
  }
  return sum;
}

/// "model.layers.*.mlp.up_proj.weight", "constant_*": numbers replaced, so that layers fall into
/// one line.
std::string pattern_of(const std::string& name) {
  constexpr std::string_view kDigits = "0123456789";
  std::string out;
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('.', begin), name.size());
    std::string part = name.substr(begin, end - begin);
    const size_t digits = part.find_last_not_of(kDigits) + 1;  // where the number at the end begins
    const bool is_number = digits < part.size() && (digits == 0 || part[digits - 1] == '_');
    if (is_number) part.replace(digits, part.npos, "*");
    out += (begin > 0 ? "." : "") + part;
    begin = end + 1;
  }
  return out;
}

std::string tensor_table(const Json& tensors) {
  struct Group {
    std::string pattern;
    std::string dtype;
    std::string shape;
    size_t count = 0;
    uint64_t bytes = 0;
  };
  std::vector<Group> groups;
  std::map<std::array<std::string, 3>, size_t> places;
  for (const Json& tensor : tensors) {
    const std::array<std::string, 3> key = {pattern_of(tensor["name"].get<std::string>()),
                                            tensor["dtype"].get<std::string>(),
                                            shape_text(tensor["shape"])};
    const auto [place, is_new] = places.emplace(key, groups.size());
    if (is_new) groups.push_back({key[0], key[1], key[2], 0, 0});
    Group& group = groups[place->second];
    ++group.count;
    group.bytes += tensor["bytes"].get<uint64_t>();
  }
  Table table({"tensor", ">count", "dtype", "shape", ">size"});
  for (const Group& group : groups) {
    table.add({printable(group.pattern), std::to_string(group.count), group.dtype, group.shape,
               format_bytes(group.bytes)});
  }
  return table.text();
}

std::string dtype_summary(const Json& tensors) {
  std::map<std::string, uint64_t> bytes;
  for (const Json& tensor : tensors)
    bytes[tensor["dtype"].get<std::string>()] += tensor["bytes"].get<uint64_t>();
  std::vector<std::pair<std::string, uint64_t>> sorted(bytes.begin(), bytes.end());
  std::ranges::stable_sort(sorted, std::greater<>(),
                           [](const auto& entry) { return entry.second; });
  std::string out;
  for (const auto& [dtype, size] : sorted)
    out += (out.empty() ? "" : ", ") + fmt::format("{} {}", dtype, format_bytes(size));
  return out;
}

/// "label   value" lines.
class Facts {
 public:
  void add(const std::string& label, const std::string& value) {
    if (!value.empty()) table_.add({label, value});
  }
  std::string text() const { return table_.text(); }

 private:
  Table table_{{"", ""}};
};

std::string title(const Json& report) {
  return printable(report["path"].get<std::string>()) + "\n\n";
}

std::string describe_model(const Json& report, size_t width) {
  const Json& tensors = report["tensors"];
  Facts facts;
  const auto architecture = report["architecture"].get<std::string>();
  facts.add("architecture",
            fmt::format("{} ({})", printable(architecture.empty() ? "unknown" : architecture),
                        printable(report["model_type"].get<std::string>())));
  facts.add("tasks", joined(report["tasks"]));
  const uint64_t parameters =
      report.contains("parameters") ? report["parameters"].get<uint64_t>() : num_elements(tensors);
  facts.add("parameters",
            fmt::format("{} ({})", format_count(parameters), format_exact(parameters)));
  facts.add("weights", fmt::format("{} in {} tensors: {}", format_bytes(sum_of(tensors, "bytes")),
                                   tensors.size(), dtype_summary(tensors)));
  if (report.value("tied_embeddings", false))
    facts.add("embeddings", "tied: one weight embeds tokens and makes logits");
  if (const uint64_t bytes = report.value("state_bytes_per_token", uint64_t{0}); bytes > 0) {
    facts.add("cache", fmt::format("{} per token in {}", format_bytes(bytes),
                                   report["dtype"].get<std::string>()));
  }
  for (const auto& [key, value] : report["config"].items()) facts.add(key, text_of(value));
  facts.add("files", joined(report["files"]));
  std::string out = title(report) + facts.text() + "\n" + tensor_table(tensors);
  if (report.contains("problem")) {
    out +=
        "\n" +
        wrap("Cannot be exported: " + printable(report["problem"].get<std::string>()), width, 2) +
        "\n";
  }
  return out;
}

std::string port_table(const Json& inputs, const Json& outputs) {
  struct Group {
    size_t count = 0;
    std::array<std::string, 4> cells;
  };
  std::vector<Group> groups;
  for (const auto& [list, label] : {std::pair(&inputs, "input"), std::pair(&outputs, "output")}) {
    for (const Json& port : *list) {
      const std::array<std::string, 4> cells = {label, pattern_of(port["name"].get<std::string>()),
                                                port["dtype"].get<std::string>(),
                                                shape_text(port["shape"])};
      const auto same = std::ranges::find(groups, cells, &Group::cells);
      if (same == groups.end())
        groups.push_back({1, cells});
      else
        ++same->count;
    }
  }
  Table table({"", "", "", "", ""});
  for (const Group& group : groups) {
    const auto& [label, name, dtype, shape] = group.cells;
    table.add(
        {label, name, dtype, shape, group.count > 1 ? "x " + std::to_string(group.count) : ""});
  }
  return table.text(4);
}

std::string operator_text(const Json& operators, size_t width) {
  std::vector<std::pair<std::string, size_t>> sorted;
  for (const auto& [op, count] : operators.items()) sorted.emplace_back(op, count.get<size_t>());
  std::ranges::stable_sort(sorted, std::greater<>(),
                           [](const auto& entry) { return entry.second; });
  std::string line;
  for (const auto& [op, count] : sorted)
    line += (line.empty() ? "" : ", ") + fmt::format("{}({})", op, count);
  return "    " + wrap(line, width > 4 ? width - 4 : width, 4) + "\n";
}

/// The facts of one .onnx file.
std::string graph_text(const Json& graph, size_t width) {
  std::string opsets;
  for (const auto& [domain, version] : graph["opsets"].items()) {
    opsets += (opsets.empty() ? "" : ", ") + fmt::format("{} {}", domain, text_of(version));
  }
  const Json& weights = graph["weights"];
  std::string out =
      fmt::format("    {} nodes, opset {}, IR version {}, by {}\n", text_of(graph["nodes"]), opsets,
                  text_of(graph["ir_version"]), text_of(graph["producer"]));
  out += operator_text(graph["operators"], width) + port_table(graph["inputs"], graph["outputs"]);
  out += fmt::format("    {} initializers of {} numbers, {}", weights.size(),
                     format_exact(num_elements(weights)), format_bytes(sum_of(weights, "bytes")));
  for (const Json& file : graph["data_files"]) {
    const bool present = file["present"].get<bool>();
    out += fmt::format("{} {}{}", &file == &graph["data_files"].front() ? "; data in" : ",",
                       text_of(file["name"]), present ? "" : " (which is not there)");
  }
  return out + "\n";
}

std::string describe_artifact(const Json& report, size_t width) {
  std::string out = title(report);
  for (const Json& component : report["components"]) {
    out += fmt::format("  {}: {} in {}, {}\n", printable(text_of(component["name"])),
                       printable(text_of(component["architecture"])),
                       text_of(report["export_format"]), text_of(component["dtype"]));
    if (component.contains("nodes")) out += graph_text(component, width) + "\n";
  }
  Table files({"file", ">size"});
  for (const Json& file : report["files"])
    files.add({text_of(file["name"]), format_bytes(file["bytes"].get<uint64_t>())});
  files.add({"total", format_bytes(sum_of(report["files"], "bytes"))});
  return out + files.text();
}

std::string describe_program(const Json& report, size_t width) {
  std::string out = title(report);
  const auto architecture = report["architecture"].get<std::string>();
  out += fmt::format("    {}{} nodes, captured by torch {}\n",
                     architecture.empty() ? "" : architecture + ", ", text_of(report["nodes"]),
                     report["torch_version"].get<std::string>());
  out +=
      operator_text(report["operators"], width) + port_table(report["inputs"], report["outputs"]);
  out += fmt::format("    {} weights of {} numbers, {}\n\n", report["weights"].size(),
                     format_exact(num_elements(report["weights"])),
                     format_bytes(sum_of(report["weights"], "bytes")));
  out += tensor_table(report["weights"]);
  if (!report["unmapped"].empty()) out += "\nCannot be exported:\n";
  for (const Json& unmapped : report["unmapped"]) {
    out += fmt::format("  {} ({}), first in {}\n", text_of(unmapped["what"]),
                       text_of(unmapped["count"]), text_of(unmapped["where"]));
  }
  return out;
}

std::string describe_safetensors(const Json& report) {
  const Json& tensors = report["tensors"];
  Facts facts;
  facts.add("parameters", format_exact(num_elements(tensors)));
  facts.add("weights", fmt::format("{} in {} tensors: {}", format_bytes(sum_of(tensors, "bytes")),
                                   tensors.size(), dtype_summary(tensors)));
  for (const auto& [key, value] : report["metadata"].items())
    facts.add(printable(key), printable(text_of(value)));
  return title(report) + facts.text() + "\n" + tensor_table(tensors);
}

}  // namespace

std::string describe(const Json& report, size_t width) {
  const auto kind = report["kind"].get<std::string>();
  if (kind == "artifact") return describe_artifact(report, width);
  if (kind == "safetensors") return describe_safetensors(report);
  if (kind == "pt2") return describe_program(report, width);
  if (kind == "onnx")
    return title(report) + graph_text(report, width) + "\n" + tensor_table(report["weights"]);
  return describe_model(report, width);
}

}  // namespace tranship::cli
