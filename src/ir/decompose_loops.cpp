#include "ir/decompose_loops.h"

#include "ir/build.h"
#include "ir/decompose.h"

namespace tranship::ir {
namespace {

Value input_like(Graph& body, std::string name, const Type& type) {
  Input op;
  op.name = std::move(name);
  op.dtype = type.dtype;
  op.shape = type.shape;
  return body.add_one(make(std::move(op)), {});
}

Value matmul_transposed(Value x, Value weight) { return matmul(x, transpose(weight, {1, 0})); }

/// What one expert adds. Inputs: trip, y [T, H]; hits [n], x [T, H], expert [T k], weight [T k],
/// gate_up, down. Outputs: going, y.
std::unique_ptr<Graph> expert_body(ActivationKind fn, int64_t chosen, const Type& y,
                                   std::span<const Value> captured) {
  auto body = std::make_unique<Graph>("expert");
  Graph& g = *body;
  const Value trip = input_like(g, "trip", {DType::kI64, {}});
  const Value sum = input_like(g, "sum", y);
  std::vector<Value> in;
  for (const std::string_view name : {"hits", "x", "expert", "weight", "gate_up", "down"})
    in.push_back(input_like(g, std::string(name), captured[in.size()].type()));
  const auto [hits, x, expert, weight, gate_up, down] =
      std::array<Value, 6>{in[0], in[1], in[2], in[3], in[4], in[5]};
  const Value e = gather(hits, trip, 0);
  const Places mine = non_zero(compare(CompareKind::kEqual, expert, e), "rows");  // [n, 1]
  const Value choices = squeeze(mine.indices, {1});
  const Value rows =
      binary(BinaryKind::kFloorDiv, choices, scalar(g, DType::kI64, static_cast<double>(chosen)));
  const Value both = matmul_transposed(gather(x, rows, 0), gather(gate_up, e, 0));  // [n, 2 I]
  const Dim& inner = down.shape()[2];
  const Value gate = slice(both, 1, 0, inner), up = slice(both, 1, inner, inner * 2);
  const Value made =
      matmul_transposed(decompose_activation(fn, gate) * up, gather(down, e, 0));  // [n, H]
  const Value scaled = made * unsqueeze(gather(weight, choices, 0), {1});
  g.add_output("going", constant(g, Tensor::of_bool({true}, {})));
  g.add_output("sum", scatter_nd(sum, unsqueeze(rows, {1}), cast(scaled, sum.dtype()),
                                 ScatterReduction::kAdd));
  return body;
}

/// One step. -> y [B, D] and the state after it.
std::pair<Value, Value> scan_step(Value x, Value step, Value a, Value b, Value c, Value state) {
  const Value wide = unsqueeze(step, {2});  // [B, D, 1]
  state = unary(UnaryKind::kExp, wide * a) * state + wide * unsqueeze(x, {2}) * unsqueeze(b, {1});
  return {squeeze(matmul(state, unsqueeze(c, {2})), {2}), state};
}

}  // namespace

Value decompose_moe(Graph& to, ActivationKind fn, std::span<const Value> operands) {
  const Value gate_up = operands[3], down = operands[4];
  const Shape shape = operands[0].shape();
  const Dim& size = shape.back();
  Dim tokens = 1;
  for (int64_t i = 0; i + 1 < shape.rank(); ++i) tokens = tokens * shape[i];
  const int64_t chosen = operands[1].shape().back().value();
  const Value x = reshape(operands[0], {tokens, size});
  const Value expert = reshape(cast(operands[1], DType::kI64), {tokens * chosen});
  const Value weight = reshape(operands[2], {tokens * chosen});
  const Value all = unsqueeze(iota(to, gate_up.shape()[0]), {1});
  const Value is_hit =
      reduce(ReduceKind::kAny, compare(CompareKind::kEqual, all, expert), {1}, false);
  const Places hits = non_zero(is_hit, "hits");
  const std::vector<Value> captured = {
      squeeze(hits.indices, {1}), x, expert, weight, gate_up, down};
  std::vector<std::unique_ptr<Graph>> graphs;
  graphs.push_back(expert_body(fn, chosen, {DType::kF32, x.shape()}, captured));
  Loop loop;
  loop.num_carried = 1;
  std::vector<Value> inputs = {dim_to_tensor(to, hits.count),
                               constant(to, Tensor::of_bool({true}, {})),
                               full(to, DType::kF32, 0, x.shape())};
  inputs.insert(inputs.end(), captured.begin(), captured.end());
  const Value sum = to.add(make(loop), inputs, "", std::move(graphs))[0];
  return reshape(cast(sum, x.dtype()), shape);
}

std::vector<Value> decompose_selective_scan(Graph& to, std::span<const Value> operands) {
  const auto wide = [&](size_t i) { return cast(operands[i], DType::kF32); };
  const Value x = wide(0), step = wide(1), a = operands[2], b = wide(3), c = wide(4),
              state = operands[5];
  if (x.shape()[1] == Dim(1)) {
    const auto row = [](Value v) { return squeeze(v, {1}); };
    const auto [y, last] = scan_step(row(x), row(step), a, row(b), row(c), state);
    return {unsqueeze(y, {1}), last};
  }
  std::vector<Value> inputs = {state};
  for (const Value& v : {x, step, b, c}) inputs.push_back(transpose(v, {1, 0, 2}));  // [L, B, ...]
  inputs.push_back(a);
  auto body = std::make_unique<Graph>("step");
  std::vector<Value> in;
  for (const std::string_view name : {"state", "x", "step", "b", "c", "a"}) {
    Type type = inputs[in.size()].type();
    const bool is_scanned = !in.empty() && in.size() < 5;
    if (is_scanned) type.shape.dims.erase(type.shape.dims.begin());
    in.push_back(input_like(*body, std::string(name), type));
  }
  const auto [y, last] = scan_step(in[1], in[2], in[5], in[3], in[4], in[0]);
  body->add_output("state", last);
  body->add_output("y", y);
  Scan scan;
  scan.num_carried = 1;
  scan.num_scanned = 4;
  std::vector<std::unique_ptr<Graph>> graphs;
  graphs.push_back(std::move(body));
  const std::vector<Value> results = to.add(make(scan), inputs, "", std::move(graphs));
  return {transpose(results[1], {1, 0, 2}), results[0]};
}

}  // namespace tranship::ir
