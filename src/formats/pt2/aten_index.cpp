// Operators that read elements by index.
#include <algorithm>
#include <array>

#include "base/error.h"
#include "formats/pt2/advanced_index.h"
#include "formats/pt2/aten_support.h"

namespace tranship::pt2 {
namespace {

using ir::Dim;
using ir::Shape;
using ir::Value;

Results index(Call& call) {
  const Value x = call.tensor("self");
  const std::vector<Value> indices = call.tensors("indices");
  const AdvancedIndex place = advanced_index(call, x, indices, call.output_sizes());
  return {read(x, place)};
}

Results index_select(Call& call) {
  const Value x = call.tensor("self");
  const int64_t axis = axis_of(call, call.integer("dim"), x.rank());
  const Value indices = with_axis_of_one(call.tensor("index"));
  if (x.rank() > 0) return {gather(x, indices, axis)};
  return {reshape(gather(unsqueeze(x, {0}), indices, 0), {})};
}

Results gather_along(Call& call) {
  const Value x = call.tensor("self");
  const int64_t axis = axis_of(call, call.integer("dim"), x.rank());
  const Value indices = call.tensor("index");
  call.ignore({"sparse_grad"});
  if (x.rank() == 0 || indices.rank() == 0) {
    const Value y = gather_elements(with_axis_of_one(x), with_axis_of_one(indices), 0);
    return {indices.rank() == 0 ? reshape(y, {}) : y};
  }
  return {gather_elements(x, indices, axis)};
}

/// Indices and data broadcast to each other beside the axis.
Results take_along_dim(Call& call) {
  Value x = call.tensor("self");
  Value indices = call.tensor("indices");
  const std::optional<int64_t> dim = call.optional_integer("dim");
  if (!dim) {
    x = reshape(x, {x.shape().num_elements()});
    indices = reshape(indices, {indices.shape().num_elements()});
    return {gather_elements(x, indices, 0)};
  }
  const int64_t axis = axis_of(call, *dim, x.rank());
  Shape beside = broadcast_shape(x.shape(), indices.shape());
  beside[axis] = indices.shape()[axis];
  indices = expanded(indices, beside);
  beside[axis] = x.shape()[axis];
  return {gather_elements(expanded(x, beside), indices, axis)};
}

Results take(Call& call) {
  const Value x = call.tensor("self");
  return {gather(reshape(x, {x.shape().num_elements()}), call.tensor("index"), 0)};
}

Results nonzero(Call& call) {
  const Value x = call.tensor("self");
  return {places_of(call, with_axis_of_one(x), call.output_sizes()[0])};
}

Results nonzero_columns(Call& call) {
  const Value x = with_axis_of_one(call.tensor("self"));
  const Value places = places_of(call, x, call.output_sizes()[0]);
  Results out;
  for (int64_t i = 0; i < x.rank(); ++i) out.emplace_back(squeeze(slice(places, 1, i, i + 1), {1}));
  return out;
}

Results masked_select(Call& call) {
  const Value x = call.tensor("self"), mask = call.tensor("mask");
  const Shape shape = broadcast_shape(x.shape(), mask.shape());
  const Value places =
      places_of(call, with_axis_of_one(expanded(mask, shape)), call.output_sizes()[0]);
  return {add_node(call.graph(), ir::GatherNd(), {with_axis_of_one(expanded(x, shape)), places})};
}

/// Where the mask is true, the elements of the source in order.
Results masked_scatter(Call& call) {
  const Value x = call.tensor("self");
  Value mask = call.tensor("mask");
  const Value source = call.tensor("source");
  const Shape shape = broadcast_shape(x.shape(), mask.shape());
  mask = expanded(mask, shape);
  const Value flat = reshape(cast(mask, DType::kI64), {shape.num_elements()});
  ir::Graph& g = call.graph();
  const Value place = binary(ir::BinaryKind::kMax, cumsum(flat, 0) - 1, scalar(g, DType::kI64, 0));
  const Value values = gather(reshape(source, {source.shape().num_elements()}), place, 0);
  return {where(mask, reshape(cast(values, x.dtype()), shape), expanded(x, shape))};
}

Results embedding(Call& call) {
  const Value weight = call.tensor("weight");
  const Value indices = call.tensor("indices");
  call.ignore({"padding_idx", "scale_grad_by_freq", "sparse"});
  return {add_node(call.graph(), ir::Embedding(), {weight, indices})};
}

/// Which elements are among the others; either may be one number.
Results isin(Call& call) {
  const std::string& target = call.node().target;
  const Operand x = call.operand(target.ends_with("Scalar_Tensor") ? "element" : "elements");
  const Operand others =
      call.operand(target.ends_with("Tensor_Scalar") ? "test_element" : "test_elements");
  call.ignore({"assume_unique"});
  const bool invert = call.flag("invert", false);
  const DType dtype = promoted({x, others});
  ir::Graph& g = call.graph();
  const Value list = operand_value(g, others, dtype);
  const Value flat = reshape(list, {list.shape().num_elements()});
  const Value hits =
      compare(ir::CompareKind::kEqual, unsqueeze(operand_value(g, x, dtype), {-1}), flat);
  const Value found = reduce(ir::ReduceKind::kAny, hits, {-1}, false);
  return {invert ? negated(found) : found};
}

constexpr std::array kRows = std::to_array<Row>({
    {"aten.index.Tensor", index},
    {"aten._unsafe_index.Tensor", index},
    {"aten.index_select.default", index_select},
    {"aten.gather.default", gather_along},
    {"aten.take_along_dim.default", take_along_dim},
    {"aten.take.default", take},
    {"aten.nonzero.default", nonzero},
    {"aten.argwhere.default", nonzero},
    {"aten.nonzero_numpy.default", nonzero_columns},
    {"aten.where.default", nonzero_columns},
    {"aten.masked_select.default", masked_select},
    {"aten.masked_scatter.default", masked_scatter},
    {"aten.embedding.default", embedding},
    {"aten.isin.Tensor_Tensor", isin},
    {"aten.isin.Tensor_Scalar", isin},
    {"aten.isin.Scalar_Tensor", isin},
});

}  // namespace

std::span<const Row> index_rows() { return kRows; }

}  // namespace tranship::pt2
