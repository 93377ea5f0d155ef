// For tests of formats/pt2: a graph of model.json in a form that people read.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "base/json.h"

namespace tranship::pt2 {

/// "x", "[x, y]", "2", "true", "s0": what an argument holds.
inline std::string shown(const Json& argument) {
  if (argument.contains("as_none")) return "None";
  const Json& value = argument.front();
  if (value.is_object())
    return value.contains("as_name") || value.contains("name")
               ? value.begin().value().get<std::string>()
               : value.dump();
  if (!value.is_array()) return value.is_string() ? value.get<std::string>() : value.dump();
  std::string list;
  for (const Json& item : value) {
    list += list.empty() ? "" : ", ";
    list += !item.is_object()          ? item.dump()
            : item.contains("name")    ? item["name"].get<std::string>()
            : item.contains("as_int")  ? item["as_int"].dump()
            : item.contains("as_name") ? item["as_name"].get<std::string>()
                                       : shown(item);
  }
  return "[" + list + "]";
}

/// "add = aten.add.Scalar(x, 2.0, alpha=1)": a node; keyword arguments have their names.
inline std::string shown_node(const Json& node) {
  std::string results, arguments;
  for (const Json& output : node["outputs"])
    results += (results.empty() ? "" : ", ") + shown(output);
  for (const Json& input : node["inputs"]) {
    arguments += arguments.empty() ? "" : ", ";
    if (input["kind"] == 2) arguments += input["name"].get<std::string>() + "=";
    arguments += shown(input["arg"]);
  }
  std::string target = node["target"];
  if (target.starts_with("torch.ops.")) target = target.substr(10);
  return fmt::format("{}{}({})", results.empty() ? "" : results + " = ", target, arguments);
}

/// All nodes of a graph, a line each, and what it returns.
inline std::string listing(std::string_view graph) {
  const Json json = parse_json("test", "graph", graph);
  std::string lines;
  for (const Json& node : json["nodes"]) lines += shown_node(node) + "\n";
  std::string results;
  for (const Json& output : json["outputs"])
    results += (results.empty() ? "" : ", ") + shown(output);
  return lines + "return " + results + "\n";
}

}  // namespace tranship::pt2
