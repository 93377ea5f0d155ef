#include "formats/pt2/in_place.h"

#include <algorithm>
#include <ranges>

#include "base/error.h"
#include "ir/infer.h"

namespace tranship::pt2 {

using ir::as;
using ir::Node;
using ir::OpKind;
using ir::ValueId;

namespace {

int64_t num_uses(const ir::Graph& graph, ValueId id) {
  int64_t count = 0;
  for (const Node& node : graph.nodes()) count += std::ranges::count(node.inputs, id);
  return count + std::ranges::count(graph.outputs(), id, &ir::Output::value);
}

bool is_write_into(const ir::Graph& graph, ValueId to, ValueId from) {
  const Node& node = graph.producer(to);
  return node.kind() == OpKind::kScatterElements && node.inputs[0] == from &&
         as<ir::ScatterElements>(*node.op).reduction == ir::ScatterReduction::kNone &&
         num_uses(graph, from) == 1;
}

}  // namespace

ValueId input_of(const ir::Graph& graph, std::string_view port) {
  for (const Node* node : graph.inputs()) {
    if (as<ir::Input>(*node->op).name == port) return node->outputs[0];
  }
  return ir::kAbsent;
}

ValueId output_of(const ir::Graph& graph, std::string_view port) {
  const auto found = std::ranges::find(graph.outputs(), port, &ir::Output::name);
  return found == graph.outputs().end() ? ir::kAbsent : found->value;
}

std::vector<InPlace> writes_in_place(const ir::Graph& graph, const std::vector<ir::State>& states) {
  using Kind = ir::State::Kind;
  std::vector<InPlace> writes;
  for (const ir::State& state : states) {
    if (state.input.empty() || (state.kind != Kind::kSlots && state.kind != Kind::kCounter))
      continue;
    const ValueId from = input_of(graph, state.input), to = output_of(graph, state.output);
    check(from != ir::kAbsent && to != ir::kAbsent, "pt2: the graph lacks " + state.name);
    if (from == to) continue;
    writes.push_back({.from = from,
                      .to = to,
                      .is_slots = is_write_into(graph, to, from),
                      .is_counter = state.kind == Kind::kCounter});
  }
  return writes;
}

ValueId viewed(const ir::Graph& graph, ValueId id) {
  for (;;) {
    const Node& node = graph.producer(id);
    switch (node.kind()) {
      case OpKind::kReshape:
      case OpKind::kTranspose:
      case OpKind::kExpand:
      case OpKind::kUnsqueeze:
      case OpKind::kSqueeze:
      case OpKind::kSlice:
        id = node.inputs[0];
        break;
      default:
        return id;
    }
  }
}

std::optional<ValueId> slice_places(const ir::Graph& graph, const Node& scatter) {
  if (as<ir::ScatterElements>(*scatter.op).reduction != ir::ScatterReduction::kNone)
    return std::nullopt;
  const ir::Shape& written = graph.type(scatter.inputs[2]).shape;
  const ir::Shape& into = graph.type(scatter.inputs[0]).shape;
  const int64_t axis =
      ir::normal_axis(as<ir::ScatterElements>(*scatter.op).axis, into.rank(), "ScatterElements");
  for (int64_t i = 0; i < into.rank(); ++i) {
    if (i != axis && !(into[i] == written[i])) return std::nullopt;  // a part of a slice
  }
  ValueId places = scatter.inputs[1];
  if (graph.producer(places).kind() == OpKind::kExpand) places = graph.producer(places).inputs[0];
  // [n] before the axis, and ones behind
  const ir::Shape& along = graph.type(places).shape;
  const int64_t behind = into.rank() - 1 - axis;
  if (along.rank() <= behind || !(along[along.rank() - 1 - behind] == written[axis]))
    return std::nullopt;
  for (int64_t i = 0; i < along.rank(); ++i) {
    if (i != along.rank() - 1 - behind && !(along[i] == 1)) return std::nullopt;
  }
  const Node& made = graph.producer(places);
  const bool is_reshaped = made.kind() == OpKind::kUnsqueeze || made.kind() == OpKind::kReshape;
  if (is_reshaped && graph.type(made.inputs[0]).shape.rank() == 1) return made.inputs[0];
  return along.rank() == 1 ? std::optional(places) : std::nullopt;
}

std::vector<bool> needed_values(const ir::Graph& graph) {
  std::vector<bool> needed(graph.num_values());
  const auto need = [&](ValueId id) {
    if (id != ir::kAbsent) needed[static_cast<size_t>(id)] = true;
  };
  for (const ir::Output& output : graph.outputs()) need(output.value);
  for (const Node& node : std::views::reverse(graph.nodes())) {
    const bool is_needed = std::ranges::any_of(
        node.outputs, [&](ValueId id) { return needed[static_cast<size_t>(id)]; });
    if (!is_needed && !ir::born_symbol(*node.op)) continue;
    const bool scatters = node.kind() == OpKind::kScatterElements;
    const std::optional<ValueId> places = scatters ? slice_places(graph, node) : std::nullopt;
    for (size_t i = 0; i < node.inputs.size(); ++i)
      need(places && i == 1 ? *places : node.inputs[i]);
  }
  return needed;
}

}  // namespace tranship::pt2
