// Learned biases by distance: a row of a small table for each pair of a query and a key.
#include <numeric>

#include "ir/build.h"
#include "passes/match.h"
#include "passes/recognize/function_of.h"
#include "passes/recognize/recognize.h"
#include "passes/rewrite.h"

namespace tranship::passes {
namespace {

using ir::Dim;
using ir::Value;
using match::op_of;
using match::operand;

/// No axis of a tensor of pairs is as long.
constexpr double kFarthest = 1e9;

/// An index as a function of a distance, which is a formula of the coordinates.
struct ByDistance {
  std::unique_ptr<ir::Graph> function;
  Linear distance;
};

std::optional<ByDistance> by_distance(const Value& ids) {
  const auto coordinates = static_cast<size_t>(ids.rank());
  Place place;
  for (size_t i = 0; i < coordinates; ++i) {
    const bool is_one = ids.shape()[static_cast<int64_t>(i)] == Dim(1);
    place.push_back(is_one ? Linear::number(0, coordinates) : Linear::coordinate(i, coordinates));
  }
  std::optional<Linear> distance;
  const IsVariable is_distance = [&](const Value& v, const Place& at) {
    const auto found = number_at(v, at);
    if (!found || found->is_number()) return false;
    if (!distance) distance = found;
    return *distance == *found;
  };
  auto function = function_of(ids, place, is_distance);
  if (function == nullptr || !distance) return std::nullopt;
  return ByDistance{std::move(function), *distance};
}

/// The distance beyond which, either way, the function is one number; nothing if it is too far.
std::optional<int64_t> reach_of(ir::Graph& function) {
  constexpr int64_t kMost = 4096;
  for (int64_t reach = 4; reach <= kMost; reach *= 2) {
    const auto far = static_cast<double>(reach);
    if (constant_on(function, far, kFarthest) && constant_on(function, -kFarthest, -far))
      return reach;
  }
  return std::nullopt;
}

/// f(-reach), ..., f(reach).
Tensor table_of(const ir::Graph& function, int64_t reach) {
  std::vector<int64_t> distances(static_cast<size_t>(2 * reach + 1));
  std::iota(distances.begin(), distances.end(), -reach);
  return applied(function, Tensor::of(distances, {2 * reach + 1}));
}

/// In front of axes that are there.
Value with_ones(const Value& x, int64_t rank) {
  std::vector<int64_t> axes(static_cast<size_t>(rank - x.rank()));
  std::iota(axes.begin(), axes.end(), int64_t{0});
  return axes.empty() ? x : ir::unsqueeze(x, axes);
}

/// The formula's number at each place of a shape, i64; absent if it is none of sums and
/// differences.
Value tensor_of(ir::Graph& g, const Linear& formula, const ir::Shape& shape) {
  Value sum;
  for (const int64_t sign : {int64_t{1}, int64_t{-1}}) {
    for (int64_t axis = 0; axis < shape.rank(); ++axis) {
      const Dim& c = formula.coefficients[static_cast<size_t>(axis)];
      if (!(c == Dim(0) || c == Dim(1) || c == Dim(-1))) return {};
      if (!(c == Dim(sign))) continue;
      std::vector<int64_t> behind(static_cast<size_t>(shape.rank() - axis - 1));
      std::iota(behind.begin(), behind.end(), int64_t{1});
      Value along = ir::iota(g, shape[axis]);
      if (!behind.empty()) along = ir::unsqueeze(along, behind);
      if (sum) {
        sum = sign > 0 ? sum + along : sum - along;
      } else if (sign > 0) {
        sum = formula.constant == Dim(0) ? along : along + ir::dim_to_tensor(g, formula.constant);
      } else {
        return {};
      }
    }
  }
  if (!sum) return {};
  sum = with_ones(sum, shape.rank());
  return sum.shape() == shape ? sum : Value();
}

/// Embedding(weight, f(distance)) -> the rows of all distances that matter, read by distance.
std::optional<std::vector<Value>> biases(ir::Graph& to, const ir::Node& node,
                                         const std::vector<Value>& in) {
  constexpr size_t kWorthwhile = 8;
  if (in[1].rank() < 2) return std::nullopt;
  const auto found = by_distance(in[1]);
  if (!found || found->function->nodes().size() < kWorthwhile) return std::nullopt;
  const auto reach = reach_of(*found->function);
  if (!reach) return std::nullopt;
  Value distance = tensor_of(to, found->distance, in[1].shape());
  if (!distance) return std::nullopt;
  const auto far = static_cast<double>(*reach);
  distance = ir::binary(ir::BinaryKind::kMin, distance, ir::scalar(to, DType::kI64, far));
  distance = ir::binary(ir::BinaryKind::kMax, distance, ir::scalar(to, DType::kI64, -far));
  const Value rows = ir::constant(to, table_of(*found->function, *reach));
  const Value learned = to.add_one(node.op, {in[0], rows}, node.name);
  return std::vector<Value>{ir::gather(learned, distance + far, 0)};
}

/// Rows of a table, then its columns in front: the table is turned instead.
std::optional<std::vector<Value>> turned(const ir::Node& node, const std::vector<Value>& in) {
  const auto* gather = op_of<ir::Gather>(in[0]);
  if (gather == nullptr || in[0].rank() != 3 ||
      ir::as<ir::Transpose>(*node.op).perm != std::vector<int64_t>{2, 0, 1})
    return std::nullopt;
  const Value table = operand(in[0], 0), indices = operand(in[0], 1);
  if (table.rank() != 2 || match::axis_of(gather->axis, table) != 0) return std::nullopt;
  return std::vector<Value>{ir::gather(ir::transpose(table, {1, 0}), indices, 1)};
}

std::optional<std::vector<Value>> by_table(ir::Graph& to, const ir::Node& node,
                                           const std::vector<Value>& in) {
  if (node.kind() == ir::OpKind::kEmbedding) return biases(to, node, in);
  if (node.kind() == ir::OpKind::kTranspose) return turned(node, in);
  return std::nullopt;
}

}  // namespace

bool recognize_tables(GraphPtr& graph) { return rewrite(graph, by_table); }

}  // namespace tranship::passes
