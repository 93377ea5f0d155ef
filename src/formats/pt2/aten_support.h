// What the rows of the operators' table share.
#pragma once

#include <optional>
#include <vector>

#include "formats/pt2/aten.h"
#include "ir/build.h"

namespace tranship::pt2 {

/// A scalar of a dtype; integers are exact.
ir::Value number_value(ir::Graph& graph, const Number& number, DType dtype);
/// A tensor or a number as a tensor of a dtype.
ir::Value operand_value(ir::Graph& graph, const Operand& operand, DType dtype);
DType promoted(const std::vector<Operand>& operands);
/// The dtype that PyTorch computes a float function of an operand in: integers become f32.
DType float_of(DType dtype);

/// The argument as an axis, counted from the front. A scalar has an axis 0 of size 1.
int64_t axis_of(Call& call, int64_t axis, int64_t rank);
std::vector<int64_t> axes_of(Call& call, const std::vector<int64_t>& axes, int64_t rank);
/// 0, 1, ... rank - 1.
std::vector<int64_t> all_axes(int64_t rank);

/// As large as the larger of each axis; sizes that are not 1 are taken to be equal.
ir::Shape broadcast_shape(const ir::Shape& a, const ir::Shape& b);
/// The value itself if it has the shape.
ir::Value expanded(ir::Value x, const ir::Shape& shape);
/// Truth of numbers: not 0.
ir::Value truth_of(ir::Value x);
ir::Value negated(ir::Value condition);
/// begin, begin + step, ...: count integers.
ir::Value counted(ir::Graph& graph, ir::Dim begin, ir::Dim step, ir::Dim count);
/// Axis `from` becomes axis `to`, the others keep their order.
ir::Value move_axis(ir::Value x, int64_t from, int64_t to);
ir::Value with_axis_of_one(ir::Value x);  // a scalar as [1]
/// The last axis as a weight has it, where PyTorch knew that it is but the graph does not.
ir::Value with_features(ir::Value x, ir::Dim size);

/// What slice.Tensor takes of an axis: bounds are clamped to it, but where the file says that
/// PyTorch knew better. In aten_views.cpp.
Reference slice_view(Call& call, const Reference& x, int64_t axis);

/// Adds a node with one result.
template <class Op>
ir::Value add_node(ir::Graph& graph, Op op, std::initializer_list<ir::Value> inputs) {
  return graph.add_one(ir::make(std::move(op)), inputs);
}

}  // namespace tranship::pt2
