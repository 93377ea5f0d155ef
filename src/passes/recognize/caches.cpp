#include "passes/match.h"
#include "passes/recognize/recognize.h"
#include "passes/rewrite.h"

namespace tranship::passes {
namespace {

using ir::Value;

std::optional<std::vector<Value>> append(ir::Graph& to, const ir::Node& node,
                                         const std::vector<Value>& in) {
  if (node.kind() != ir::OpKind::kConcat || in.size() != 2 || in[0].rank() != 4)
    return std::nullopt;
  if (match::axis_of(ir::as<ir::Concat>(*node.op).axis, in[0]) != 2) return std::nullopt;
  if (match::op_of<ir::Input>(in[0]) == nullptr) return std::nullopt;
  return std::vector<Value>{to.add_one(ir::make(ir::CacheAppend{}), {in[0], in[1]}, node.name)};
}

}  // namespace

bool recognize_caches(GraphPtr& graph) { return rewrite(graph, append); }

}  // namespace tranship::passes
