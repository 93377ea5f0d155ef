// Taking and putting by indices, orders, and sizes born from data, in ATen's words.
#include "base/error.h"
#include "formats/pt2/in_place.h"
#include "formats/pt2/lowering.h"
#include "ir/infer.h"

namespace tranship::pt2 {

using ir::as;
using ir::Dim;
using ir::Node;
using ir::ScatterReduction;

void Lowering::lower_gather(const Node& n) {
  const int64_t along =
      ir::normal_axis(as<ir::Gather>(*n.op).axis, shape(n.inputs[0]).rank(), "Gather");
  std::vector<std::string> indices(static_cast<size_t>(along));  // of the axes before: all
  indices.push_back(tensor(n.inputs[1]));
  const std::string list = along == 0 ? as_tensors(indices) : as_optional_tensors(indices);
  say(n, "aten.index.Tensor", {self(n), {"indices", list}});
}

/// Whether indices are known to count from the front.
bool Lowering::is_from_front(ir::ValueId id) const {
  const Node& made = graph_.producer(id);
  switch (made.kind()) {
    case ir::OpKind::kIota:
    case ir::OpKind::kArgMax:
    case ir::OpKind::kArgMin:
    case ir::OpKind::kTopK:
    case ir::OpKind::kNonZero:
    case ir::OpKind::kDimToTensor:
      return true;
    case ir::OpKind::kExpand:
    case ir::OpKind::kReshape:
    case ir::OpKind::kUnsqueeze:
    case ir::OpKind::kSqueeze:
    case ir::OpKind::kTranspose:
    case ir::OpKind::kSlice:
      return is_from_front(made.inputs[0]);
    case ir::OpKind::kConstant: {
      const Tensor& value = as<ir::Constant>(*made.op).value;
      for (int64_t i = 0; i < value.num_elements(); ++i) {
        if (value.at(i) < 0) return false;
      }
      return true;
    }
    case ir::OpKind::kBinary:
      return as<ir::Binary>(*made.op).fn == ir::BinaryKind::kAdd && is_from_front(made.inputs[0]) &&
             is_from_front(made.inputs[1]);
    case ir::OpKind::kInput:
      return counters_.contains(id);
    default:
      return false;
  }
}

/// Indices along an axis of the data, none counted from the end: gather and scatter of ATen take
/// no others.
std::string Lowering::from_front(const Node& n, size_t index, int64_t axis) {
  const std::string at = tensor(n.inputs[index]);
  return is_from_front(n.inputs[index])
             ? at
             : counted_from_front(at, type(n.inputs[index]), shape(n.inputs[0])[axis]);
}

std::string Lowering::counted_from_front(const std::string& at, const ir::Type& made,
                                         const Dim& size) {
  const std::string is_behind =
      emit_.node("aten.lt.Scalar", {{"self", as_tensor(at)}, {"other", as_int(0)}},
                 {DType::kBool, made.shape});
  const std::string counted =
      emit_.node("aten.add.Scalar", {{"self", as_tensor(at)}, {"other", emit_.size(size)}}, made);
  return emit_.node(
      "aten.where.self",
      {{"condition", as_tensor(is_behind)}, {"self", as_tensor(counted)}, {"other", as_tensor(at)}},
      made);
}

/// Column `column` of the last axis of indices (operand 1).
std::string Lowering::index_column(const Node& n, int64_t column) {
  ir::Type made = type(n.inputs[1]);
  made.shape.dims.pop_back();
  return emit_.node("aten.select.int",
                    {self(n, 1), {"dim", as_int(made.shape.rank())}, {"index", as_int(column)}},
                    made);
}

void Lowering::lower_gather_nd(const Node& n) {
  const int64_t batch = as<ir::GatherNd>(*n.op).batch_dims;
  const ir::Shape places = shape(n.inputs[1]);
  std::vector<std::string> indices;
  for (int64_t axis = 0; axis < batch; ++axis) {  // its own place, along the indices' axes
    std::vector<Operand> range = {{"end", emit_.size(places[axis])}};
    for (Operand& o : made_of(DType::kI64)) range.push_back(std::move(o));
    const std::string at = emit_.node("aten.arange.default", range, {DType::kI64, {places[axis]}});
    std::vector<Dim> sizes(static_cast<size_t>(places.rank() - 1), 1);
    sizes[static_cast<size_t>(axis)] = places[axis];
    indices.push_back(emit_.node("aten.reshape.default",
                                 {{"self", as_tensor(at)}, {"shape", emit_.sizes(sizes)}},
                                 {DType::kI64, ir::Shape(sizes)}));
  }
  for (int64_t i = 0; i < places.back().value(); ++i) indices.push_back(index_column(n, i));
  say(n, "aten.index.Tensor", {self(n), {"indices", as_tensors(indices)}});
}

namespace {

/// scatter_reduce's words.
std::string_view reduction_name(ScatterReduction reduction) {
  switch (reduction) {
    case ScatterReduction::kAdd:
      return "sum";
    case ScatterReduction::kMul:
      return "prod";
    case ScatterReduction::kMin:
      return "amin";
    case ScatterReduction::kMax:
      return "amax";
    case ScatterReduction::kNone:
      break;
  }
  return {};
}

}  // namespace

namespace {

/// The one number that a value holds everywhere, if that is known.
std::optional<int64_t> known_number(const ir::Graph& graph, ir::ValueId id) {
  const Node* node = &graph.producer(id);
  while (node->kind() == ir::OpKind::kFull || node->kind() == ir::OpKind::kExpand)
    node = &graph.producer(node->inputs[0]);
  if (node->kind() != ir::OpKind::kConstant) return std::nullopt;
  const Tensor& value = as<ir::Constant>(*node->op).value;
  for (int64_t i = 1; i < value.num_elements(); ++i) {
    if (value.at(i) != value.at(0)) return std::nullopt;
  }
  return value.num_elements() == 0 ? std::nullopt
                                   : std::optional(static_cast<int64_t>(value.at(0)));
}

}  // namespace

/// Where every index is one known number, a row is cut out: Inductor has no lowering for that index
/// (2.13).
void Lowering::lower_embedding(const Node& n) {
  const std::optional<int64_t> row = known_number(graph_, n.inputs[1]);
  if (!row || *row < 0)
    return say(n, "aten.embedding.default", {operand("weight", n, 0), operand("indices", n, 1)});
  const DType of = dtype(n.inputs[0]);
  const Dim width = shape(n.inputs[0])[1];
  const std::string cut = emit_.node(
      "aten.select.int",
      {{"self", as_tensor(tensor(n.inputs[0]))}, {"dim", as_int(0)}, {"index", as_int(*row)}},
      {of, {width}});
  say(n, "aten.expand.default",
      {{"self", as_tensor(cut)}, {"size", emit_.sizes(shape(n.outputs[0]).dims)}});
}

/// Whole slices, at places along an axis.
void Lowering::lower_slice_write(const Node& n, ir::ValueId places) {
  const int64_t along = as<ir::ScatterElements>(*n.op).axis;
  const std::string at = tensor(places);
  const std::vector<Operand> operands = {
      self(n),
      axis(n, along),
      {"index", as_tensor(is_from_front(places)
                              ? at
                              : counted_from_front(at, type(places), shape(n.inputs[0])[along]))},
      operand("source", n, 2)};
  if (!in_place_.contains(&n)) return say(n, "aten.index_copy.default", operands);
  set(n, emit_.effect("aten.index_copy_.default", operands, &type(n.outputs[0])));
}

void Lowering::lower_scatter_elements(const Node& n) {
  const auto& op = as<ir::ScatterElements>(*n.op);
  if (const auto places = slice_places(graph_, n)) return lower_slice_write(n, *places);
  std::vector<Operand> operands = {self(n),
                                   axis(n, op.axis),
                                   {"index", as_tensor(from_front(n, 1, op.axis))},
                                   operand("src", n, 2)};
  if (in_place_.contains(&n))
    return set(n, emit_.effect("aten.scatter_.src", operands, &type(n.outputs[0])));
  if (op.reduction == ScatterReduction::kNone) return say(n, "aten.scatter.src", operands);
  if (op.reduction == ScatterReduction::kAdd) return say(n, "aten.scatter_add.default", operands);
  operands.push_back({"reduce", as_string(reduction_name(op.reduction))});
  say(n, "aten.scatter_reduce.two", operands);
}

void Lowering::lower_scatter_nd(const Node& n) {
  const auto& op = as<ir::ScatterNd>(*n.op);
  const ir::Shape data = shape(n.inputs[0]), places = shape(n.inputs[1]);
  const int64_t depth = places.back().value();
  std::vector<std::string> columns;
  for (int64_t i = 0; i < depth; ++i) columns.push_back(index_column(n, i));
  if (op.reduction == ScatterReduction::kNone || op.reduction == ScatterReduction::kAdd) {
    return say(n, "aten.index_put.default",
               {self(n),
                {"indices", as_tensors(columns)},
                operand("values", n, 2),
                {"accumulate", as_bool(op.reduction == ScatterReduction::kAdd)}});
  }
  // One index into the first axes as if they were one, spread over the axes behind.
  ir::Shape points(std::vector<Dim>(places.dims.begin(), places.dims.end() - 1));
  const ir::Type index{DType::kI64, points};
  std::string at = counted_from_front(columns[0], index, data[0]);
  for (int64_t i = 1; i < depth; ++i) {
    at = emit_.node("aten.mul.Scalar", {{"self", as_tensor(at)}, {"other", emit_.size(data[i])}},
                    index);
    const std::string next = counted_from_front(columns[static_cast<size_t>(i)], index, data[i]);
    at =
        emit_.node("aten.add.Tensor", {{"self", as_tensor(at)}, {"other", as_tensor(next)}}, index);
  }
  Dim rows = 1, size = 1;
  for (int64_t i = 0; i < depth; ++i) rows = rows * data[i];
  for (int64_t i = depth; i < data.rank(); ++i) size = size * data[i];
  const Dim count = points.num_elements();
  const auto reshaped = [&](const std::string& x, DType dtype, std::vector<Dim> to) {
    return emit_.node("aten.reshape.default", {{"self", as_tensor(x)}, {"shape", emit_.sizes(to)}},
                      {dtype, ir::Shape(to)});
  };
  at = emit_.node("aten.expand.default",
                  {{"self", as_tensor(reshaped(at, DType::kI64, {count, 1}))},
                   {"size", emit_.sizes({count, size})}},
                  {DType::kI64, {count, size}});
  const DType of = dtype(n.inputs[0]);
  const std::string flat =
      emit_.node("aten.scatter_reduce.two",
                 {{"self", as_tensor(reshaped(tensor(n.inputs[0]), of, {rows, size}))},
                  {"dim", as_int(0)},
                  {"index", as_tensor(at)},
                  {"src", as_tensor(reshaped(tensor(n.inputs[2]), of, {count, size}))},
                  {"reduce", as_string(reduction_name(op.reduction))}},
                 {of, {rows, size}});
  set(n, reshaped(flat, of, data.dims));
}

/// topk of ATen has no order among equals: a stable sort has.
void Lowering::lower_top_k(const Node& n) {
  const auto& op = as<ir::TopK>(*n.op);
  const ir::Type sorted[] = {type(n.inputs[0]), {DType::kI64, shape(n.inputs[0])}};
  const Operand along = axis(n, op.axis);
  const std::vector<std::string> both = emit_.node("aten.sort.stable",
                                                   {self(n),
                                                    {"stable", as_bool(true), true},
                                                    {along.name, along.json, true},
                                                    {"descending", as_bool(op.largest), true}},
                                                   sorted);
  for (size_t i = 0; i < both.size(); ++i) {
    std::string& result = names_[index(n.outputs[i])];
    result = both[i];
    if (op.k == sorted[i].shape[op.axis]) continue;
    result = emit_.node(
        "aten.slice.Tensor",
        {{"self", as_tensor(both[i])}, along, {"start", as_int(0)}, {"end", emit_.size(op.k)}},
        type(n.outputs[i]));
  }
}

/// A size that only the data knows.
void Lowering::lower_birth(const Node& n) {
  const Dim size = Dim::symbol(ir::born_symbol(*n.op).value());
  if (n.kind() == ir::OpKind::kNonZero) {
    say(n, "aten.nonzero.default", {self(n)});
    emit_.set_origin(size, tensor(n.outputs[0]), 0);
    return;
  }
  emit_.give_birth(size, tensor(n.inputs[0]));
  set(n, tensor(n.inputs[0]));
}

}  // namespace tranship::pt2
