#include "formats/pt2/tree_spec.h"

#include <algorithm>

#include "base/error.h"
#include "base/json.h"

namespace tranship::pt2 {
namespace {

constexpr std::string_view kWhere = "tree spec";
constexpr size_t kMaxDepth = 64;

[[noreturn]] void corrupt(std::string_view what) {
  fail(ErrorKind::kCorrupt, "[pt2] a tree spec {}", what);
}

std::string key_text(const Json& key) {
  return key.is_string() ? key.get<std::string>() : key.dump();
}

using Children = std::vector<std::pair<std::string, const Json*>>;

/// What a recorded state holds, by attribute, key or index: {"_t": "items", "v": [[key, ...]]},
/// a plain object or list; a tagged object holds its state itself, under no name.
Children children_of(const Json& state) {
  Children out;
  if (state.is_array()) {
    for (size_t i = 0; i < state.size(); ++i) out.emplace_back(std::to_string(i), &state[i]);
    return out;
  }
  const auto tag = state.find("_t");
  if (tag == state.end()) {
    for (auto it = state.begin(); it != state.end(); ++it) out.emplace_back(it.key(), &it.value());
    return out;
  }
  const bool has_items = *tag == "items" && state.contains("v") && state["v"].is_array();
  if (!has_items) {
    for (const char* inside : {"s", "v"}) {
      if (state.contains(inside)) out.emplace_back("", &state[inside]);
    }
    return out;
  }
  for (const Json& item : state["v"]) {
    if (!item.is_array() || item.size() != 2) corrupt("has an item that is not a key and a value");
    out.emplace_back(key_text(item[0]), &item[1]);
  }
  return out;
}

/// Paths of the tensors in a cache's recorded state, by their number: {"_t": "obj", "p": class,
/// "s": {attribute: ...}}, {"_t": "tensor", "i": 0}.
void find_tensors(const Json& state, LeafPath& path, size_t depth,
                  std::map<int64_t, LeafPath>& found) {
  if (depth > kMaxDepth) corrupt("is nested too deeply");
  if (!state.is_structured()) return;
  if (state.is_object() && state.contains("_t") && state["_t"] == "tensor") {
    const auto index = state.find("i");
    if (index == state.end() || !index->is_number_integer())
      corrupt("has a tensor without a number");
    found.emplace(index->get<int64_t>(), path);
    return;
  }
  for (const auto& [step, child] : children_of(state)) {
    if (!step.empty()) path.steps.push_back(step);
    find_tensors(*child, path, depth + 1, found);
    if (!step.empty()) path.steps.pop_back();
  }
}

class Walker {
 public:
  const std::vector<LeafPath>& leaves() const { return leaves_; }

  void walk(const Json& node, const std::vector<std::string>* names = nullptr) {
    if (path_.steps.size() > kMaxDepth) corrupt("is nested too deeply");
    if (!node.is_object() || !node.contains("type") || !node.contains("children_spec") ||
        !node["children_spec"].is_array()) {
      corrupt("has a node without type and children_spec");
    }
    if (node["type"].is_null()) {
      leaves_.push_back(path_);
      return;
    }
    const Json& children = node["children_spec"];
    const std::vector<LeafPath> steps = steps_of(node, children.size());
    for (size_t i = 0; i < children.size(); ++i) {
      const size_t before = path_.steps.size();
      if (names != nullptr && i < names->size()) {
        path_.steps.push_back((*names)[i]);
      } else {
        path_.steps.insert(path_.steps.end(), steps[i].steps.begin(), steps[i].steps.end());
      }
      walk(children[i]);
      path_.steps.resize(before);
    }
  }

 private:
  /// How the children are reached from the node.
  static std::vector<LeafPath> steps_of(const Json& node, size_t count) {
    std::vector<LeafPath> steps(count);
    for (size_t i = 0; i < count; ++i) steps[i].steps = {std::to_string(i)};
    if (!node.contains("context") || !node["context"].is_string()) return steps;
    const Json context = parse_json("pt2", kWhere, node["context"].get<std::string>());
    if (context.is_array() && context.size() == count) {
      for (size_t i = 0; i < count; ++i) steps[i].steps = {key_text(context[i])};
    }
    std::map<int64_t, LeafPath> tensors;
    LeafPath path;
    if (context.is_object()) find_tensors(context, path, 0, tensors);
    for (const auto& [index, where] : tensors) {
      if (index < 0 || static_cast<size_t>(index) >= count) corrupt("counts tensors it has not");
      steps[static_cast<size_t>(index)] = where;
    }
    return steps;
  }

  LeafPath path_;
  std::vector<LeafPath> leaves_;
};

/// [1, root].
Json root_of(std::string_view spec) {
  Json document = parse_json("pt2", kWhere, spec);
  if (!document.is_array() || document.size() != 2 || document[0] != 1) corrupt("is not [1, node]");
  return std::move(document[1]);
}

}  // namespace

std::string LeafPath::text(std::string_view bare) const {
  if (steps.empty()) return std::string(bare);
  std::string out;
  for (const std::string& step : steps) out += (out.empty() ? "" : ".") + step;
  return out;
}

std::vector<LeafPath> leaves_of(std::string_view spec) {
  Walker walker;
  walker.walk(root_of(spec));
  return walker.leaves();
}

std::vector<LeafPath> argument_leaves_of(std::string_view spec,
                                         const std::vector<std::string>& argument_names) {
  const Json root = root_of(spec);
  if (!root.is_object() || !root.contains("children_spec") || !root["children_spec"].is_array() ||
      root["children_spec"].size() != 2) {
    corrupt("is not of positional and keyword arguments");
  }
  Walker walker;
  walker.walk(root["children_spec"][0], &argument_names);
  walker.walk(root["children_spec"][1]);
  return walker.leaves();
}

}  // namespace tranship::pt2
