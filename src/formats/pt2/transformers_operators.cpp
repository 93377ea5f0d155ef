// Operators that Transformers registers itself, and PyTorch's own of the same meaning.
#include <array>

#include "base/error.h"
#include "formats/pt2/aten_support.h"

namespace tranship::pt2 {
namespace {

using ir::BinaryKind;
using ir::CompareKind;
using ir::concat;
using ir::Dim;
using ir::Shape;
using ir::Value;

Value body_input(ir::Graph& body, std::string name, DType dtype, Shape shape) {
  ir::Input op;
  op.name = std::move(name);
  op.dtype = dtype;
  op.shape = std::move(shape);
  return add_node(body, std::move(op), {});
}

/// One group of rows: (sum, weight, begin, end, x, row numbers) -> sum with x weight in the rows of
/// [begin, end).
std::unique_ptr<ir::Graph> group_body(const Value& x, const Value& weight) {
  auto body = std::make_unique<ir::Graph>("group");
  const Dim rows = x.shape()[0], in = x.shape()[1], out = weight.shape()[2];
  const Value sum = body_input(*body, "sum", x.dtype(), {rows, out});
  const Value w = body_input(*body, "weight", weight.dtype(), {in, out});
  const Value begin = body_input(*body, "begin", DType::kI64, {});
  const Value end = body_input(*body, "end", DType::kI64, {});
  const Value operand = body_input(*body, "x", x.dtype(), x.shape());
  const Value row = body_input(*body, "row", DType::kI64, {rows});
  const Value mine = binary(BinaryKind::kAnd, compare(CompareKind::kLessEqual, begin, row),
                            compare(CompareKind::kLess, row, end));
  body->add_output("new_sum", where(unsqueeze(mine, {1}), ir::matmul(operand, w), sum));
  return body;
}

/// x [S, in], weight [E, in, out], ends i32 or i64 [E] -> [S, out]: rows up to ends[0] by the first
/// matrix, from there to ends[1] by the second, ...; rows behind the last end are 0.
/// Source: transformers/integrations/moe.py _grouped_mm_fallback (5.23).
Value grouped_product(Value x, Value weight, Value ends) {
  ir::Graph& g = x.graph();
  const Value end = cast(ends, DType::kI64);
  const Dim count = weight.shape()[0];
  const Value zero = full(g, DType::kI64, 0, {1});
  const Value begin = concat({zero, slice(end, 0, 0, count - 1)}, 0);
  const Value sum = full(g, x.dtype(), 0, {x.shape()[0], weight.shape()[2]});
  ir::Scan op;
  op.num_carried = 1;
  op.num_scanned = 3;
  std::vector<std::unique_ptr<ir::Graph>> graphs;
  graphs.push_back(group_body(x, weight));
  const std::vector<Value> operands = {sum, weight, begin, end, x, iota(g, x.shape()[0])};
  return g.add(ir::make(op), operands, "", std::move(graphs))[0];
}

Results grouped_mm_fallback(Call& call) {
  const Value x = call.tensor("input"), weight = call.tensor("weight");
  return {grouped_product(x, weight, call.tensor("offs"))};
}

Results grouped_mm(Call& call) {
  const Value x = call.tensor("self"), weight = call.tensor("mat2");
  const Value ends = call.optional_tensor("offs");
  call.refuse("bias");
  call.ignore({"out_dtype"});
  if (!ends || x.rank() != 2 || weight.rank() != 3)
    fail(ErrorKind::kUnsupported, "groups other than rows of a matrix");
  return {cast(grouped_product(x, weight, ends), call.output_dtype())};
}

constexpr std::array kRows = std::to_array<Row>({
    {"transformers.grouped_mm_fallback.default", grouped_mm_fallback},
    {"aten._grouped_mm.default", grouped_mm},
});

}  // namespace

std::span<const Row> transformers_rows() { return kRows; }

}  // namespace tranship::pt2
