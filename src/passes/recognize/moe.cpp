// Mixtures of experts, as Transformers spells them out (integrations/moe.py, 5.23): a slot for each
// token and each expert that it chose; slots sorted by expert and multiplied in groups
// (grouped_mm), or each with a copy of its expert's weights (batched_mm).
#include "passes/match.h"
#include "passes/recognize/function_of.h"
#include "passes/recognize/recognize.h"
#include "passes/rewrite.h"

namespace tranship::passes {
namespace {

using ir::BinaryKind;
using ir::Dim;
using ir::Value;
using match::binary;
using match::op_of;
using match::operand;
using match::same;
using match::through_views;

bool counts_well(DType dtype) {
  return dtype == DType::kI32 || dtype == DType::kI64 || dtype == DType::kF32 ||
         dtype == DType::kF64;
}

/// What is below casts that keep numbers of slots and of experts.
Value through_casts(Value v) {
  while (op_of<ir::Cast>(v) != nullptr && counts_well(v.dtype())) v = operand(v, 0);
  return v;
}

/// What is found of the factors of a product, in either order.
template <class Match>
auto either_factor(const Value& v, Match&& match_factors)
    -> decltype(match_factors(Value(), Value())) {
  const auto pair = binary(v, BinaryKind::kMul);
  if (!pair) return {};
  if (auto found = match_factors((*pair)[0], (*pair)[1])) return found;
  return match_factors((*pair)[1], (*pair)[0]);
}

/// The slots of a router: which expert stands in each, [T, k], flattened by token.
struct Slots {
  Value experts;  // i64 [T, k], the indices of a TopK over all experts: no token names one twice
  int64_t chosen = 0;
};
std::optional<Slots> slots_of(const Value& flat) {
  const Value experts = through_casts(through_views(through_casts(flat)));
  const auto* top_k = op_of<ir::TopK>(experts);
  if (top_k == nullptr || experts.rank() != 2 || !experts.shape()[1].is_static() ||
      match::producer(experts).outputs[1] != experts.id() ||
      match::axis_of(top_k->axis, operand(experts, 0)) != 1)
    return std::nullopt;
  return Slots{experts, experts.shape()[1].value()};
}

/// Number of experts that a router chooses from.
bool chooses_from(const Slots& slots, const Dim& experts) {
  return operand(slots.experts, 0).shape()[1] == experts;
}

/// Slots sorted by expert: `order` is what slot stands where, `sorted` its expert.
struct Sorting {
  Slots slots;
  Value sorted;
  Value order;
};
std::optional<Sorting> sorting_of(ir::Graph& graph, const Value& result) {
  const auto* sort = op_of<ir::TopK>(result);
  if (sort == nullptr || sort->largest || !sort->sorted || result.rank() != 1 ||
      !(sort->k == result.shape()[0]) || !(sort->k == operand(result, 0).shape()[0]))
    return std::nullopt;
  const auto slots = slots_of(operand(result, 0));
  if (!slots) return std::nullopt;
  const ir::Node& node = match::producer(result);
  return Sorting{*slots, graph.value(node.outputs[0]), graph.value(node.outputs[1])};
}

// ---- a product of each slot with its expert's weights

struct Projection {
  Value rows;                      // [T k, in]
  Value weights;                   // [E, out, in]
  std::optional<Sorting> sorting;  // the order of rows; absent: by token
  Slots slots;
};

/// Whether the element of `bins` [E, 1] that equals f of an expert is its own: tried for each.
bool counts_each(const Value& found, const Value& bins, const Sorting& sorting, int64_t experts) {
  const Tensor* numbers = match::constant(bins);
  if (numbers == nullptr || numbers->num_elements() != experts || found.rank() != 2 ||
      !(bins.shape()[0] == Dim(experts)))
    return false;
  const Place place = {Linear::number(0, 1), Linear::coordinate(0, 1)};
  const IsVariable is_expert = [&](const Value& v, const Place& at) {
    return same(v, sorting.sorted) && at == Place{Linear::coordinate(0, 1)};
  };
  const auto function = function_of(found, place, is_expert);
  if (function == nullptr) return false;
  Tensor all(DType::kI64, {experts});
  for (int64_t i = 0; i < experts; ++i) all.set(i, static_cast<double>(i));
  const Tensor bin = applied(*function, all);
  for (int64_t i = 0; i < experts; ++i) {
    for (int64_t j = 0; j < experts; ++j) {
      if ((bin.at(i) == numbers->at(j)) != (i == j)) return false;
    }
  }
  return true;
}

/// What slots were sorted to, below ops on each of them; absent if no sorting is found.
Value sorted_below(Value v) {
  while (v && op_of<ir::TopK>(v) == nullptr) {
    const ir::Node& node = match::producer(v);
    v = operand(v, node.kind() == ir::OpKind::kWhere ? 1 : 0);
  }
  return v;
}

/// How often each expert was chosen, of the numbers [E] behind which slot each one's end.
Value counts_below(const Value& ends) {
  const Value sums = through_casts(ends);
  return op_of<ir::CumSum>(sums) != nullptr && sums.rank() == 1 ? through_casts(operand(sums, 0))
                                                                : Value();
}

/// The sorting whose slots of each expert end where `ends` [E] says.
std::optional<Sorting> sorting_by_ends(const Value& ends, int64_t experts) {
  const Value ones = match::reduced(counts_below(ends), ir::ReduceKind::kSum, 1);
  if (!ones) return std::nullopt;
  const Value hits = through_casts(ones);
  const auto* compare = op_of<ir::Compare>(hits);
  if (compare == nullptr || compare->fn != ir::CompareKind::kEqual) return std::nullopt;
  const Value found = operand(hits, 0), expert = sorted_below(found);
  if (!expert) return std::nullopt;
  const auto sorting = sorting_of(found.graph(), expert);
  if (!sorting || !same(sorting->sorted, expert) ||
      !counts_each(found, operand(hits, 1), *sorting, experts))
    return std::nullopt;
  return sorting;
}

/// Whether `begins` is 0 and then all but the last of `ends`.
bool begin_where_others_end(const Value& begins, const Value& ends, int64_t experts) {
  const auto* concat = op_of<ir::Concat>(begins);
  if (concat == nullptr || match::producer(begins).inputs.size() != 2) return false;
  const Value zero = operand(begins, 0), others = operand(begins, 1);
  if (match::number(zero) != 0.0 || zero.rank() != 1) return false;
  if (experts == 1) return others.shape()[0] == Dim(0);
  const Value all = match::sliced(others, 0, 0, experts - 1);
  return all && same(all, ends);
}

bool is_compare(const Value& v, ir::CompareKind fn, const Value& a, const Value& b) {
  const auto* compare = op_of<ir::Compare>(v);
  return compare != nullptr && compare->fn == fn && same(operand(v, 0), a) &&
         same(operand(v, 1), b);
}

/// Whether it is begin <= row < end.
bool is_between(const Value& v, const Value& begin, const Value& row, const Value& end) {
  const auto both = binary(v, BinaryKind::kAnd);
  if (!both) return false;
  for (const size_t i : {size_t{0}, size_t{1}}) {
    if (is_compare((*both)[i], ir::CompareKind::kLessEqual, begin, row) &&
        is_compare((*both)[1 - i], ir::CompareKind::kLess, row, end))
      return true;
  }
  return false;
}

bool is_product(const Value& v, const Value& a, const Value& b) {
  return op_of<ir::MatMul>(v) != nullptr && same(operand(v, 0), a) && same(operand(v, 1), b);
}

/// Whether a Scan's body gives where(begin <= row < end, x weight, sum).
bool is_group(ir::Graph& body) {
  const std::vector<const ir::Node*> inputs = body.inputs();
  if (inputs.size() != 6 || body.outputs().size() != 1) return false;
  const auto in = [&](size_t i) { return body.value(inputs[i]->outputs[0]); };
  const Value out = body.value(body.outputs()[0].value);
  if (op_of<ir::Where>(out) == nullptr || !same(operand(out, 2), in(0))) return false;
  const Value column = operand(out, 0);
  return op_of<ir::Unsqueeze>(column) != nullptr && column.rank() == 2 &&
         column.shape()[1] == Dim(1) && is_product(operand(out, 1), in(4), in(1)) &&
         is_between(operand(column, 0), in(2), in(5), in(3));
}

/// grouped_mm: Scan(0, weights^T, begins, ends, rows, row numbers).
std::optional<Projection> grouped(const Value& v) {
  const auto* scan = op_of<ir::Scan>(v);
  if (scan == nullptr || scan->num_carried != 1 || scan->num_scanned != 3 ||
      match::producer(v).inputs.size() != 6 || !is_group(*match::producer(v).graphs[0]))
    return std::nullopt;
  const Value weights = operand(v, 1), ends = operand(v, 3), rows = operand(v, 4),
              numbers = operand(v, 5);
  const auto* turned = op_of<ir::Transpose>(weights);
  if (turned == nullptr || turned->perm != std::vector<int64_t>{0, 2, 1} ||
      !match::counts_up(numbers, rows.shape()[0]) || match::number(operand(v, 0)) != 0.0 ||
      !weights.shape()[0].is_static())
    return std::nullopt;
  const int64_t experts = weights.shape()[0].value();
  if (!begin_where_others_end(operand(v, 2), ends, experts)) return std::nullopt;
  const auto sorting = sorting_by_ends(ends, experts);
  if (!sorting || !(rows.shape()[0] == sorting->order.shape()[0])) return std::nullopt;
  return Projection{rows, operand(weights, 0), sorting, sorting->slots};
}

/// batched_mm: Squeeze(MatMul(Gather(weights, expert), Unsqueeze(rows))).
std::optional<Projection> batched(const Value& v) {
  const Value product = operand(v, 0);
  if (op_of<ir::Squeeze>(v) == nullptr || op_of<ir::MatMul>(product) == nullptr || v.rank() != 2 ||
      product.rank() != 3 || !(product.shape()[2] == Dim(1)))
    return std::nullopt;
  const auto copies = match::gathered(operand(product, 0), 0);
  const Value column = operand(product, 1), rows = operand(column, 0);
  if (!copies || op_of<ir::Unsqueeze>(column) == nullptr || rows.rank() != 2 ||
      !(column.shape()[2] == Dim(1)))
    return std::nullopt;
  const auto& [weights, expert] = *copies;
  if (weights.rank() != 3 || expert.rank() != 1) return std::nullopt;
  const auto slots = slots_of(expert);
  if (!slots) return std::nullopt;
  return Projection{rows, weights, std::nullopt, *slots};
}

std::optional<Projection> projection(const Value& v) {
  auto found = batched(v);
  if (!found) found = grouped(v);
  if (!found || !chooses_from(found->slots, found->weights.shape()[0])) return std::nullopt;
  return found;
}

// ---- the expert, from its end to its beginning

/// x [T, H] of Reshape(Expand(Unsqueeze(x, 1), [T, k, H])); absent if it is no such thing.
Value repeated_in_place(const Value& rows, int64_t times) {
  const Value wide = operand(rows, 0);
  if (op_of<ir::Reshape>(rows) == nullptr || op_of<ir::Expand>(wide) == nullptr) return {};
  const Value column = operand(wide, 0), x = through_views(column);
  if (x.rank() != 2) return {};
  const ir::Shape once = {x.shape()[0], 1, x.shape()[1]},
                  expected = {x.shape()[0], times, x.shape()[1]};
  return column.shape() == once && wide.shape() == expected ? x : Value();
}

/// x [T, H] of rows that hold each token for each of its slots, in their order; absent if they do
/// not.
Value tokens_of(const Projection& p) {
  if (!p.sorting) return repeated_in_place(p.rows, p.slots.chosen);
  const auto rows = match::gathered(p.rows, 0);
  if (!rows || (*rows)[0].rank() != 2) return {};
  const auto token = match::binary_with_number((*rows)[1], BinaryKind::kFloorDiv);
  const bool by_slot = token && token->number == static_cast<double>(p.slots.chosen) &&
                       same(token->x, p.sorting->order);
  return by_slot ? (*rows)[0] : Value();
}

/// The halves of one projection: act(gate) * up.
struct Gated {
  Value both;
  ir::ActivationKind fn = ir::ActivationKind::kSilu;
};
std::optional<Gated> gated(const Value& v) {
  return either_factor(v, [](const Value& active, const Value& up) -> std::optional<Gated> {
    const auto* activation = op_of<ir::Activation>(active);
    if (activation == nullptr || match::producer(active).inputs.size() != 1 || up.rank() != 2)
      return std::nullopt;
    const Dim width = up.shape()[1];
    const Value both = match::sliced(operand(active, 0), 1, 0, width);
    const Value other = match::sliced(up, 1, width, width * 2);
    if (!both || !other || !same(both, other) || !(both.shape()[1] == width * 2))
      return std::nullopt;
    return Gated{both, activation->fn};
  });
}

/// The weights of each slot, [T, k]; absent if `column` [T k, 1] is not these in the rows' order.
Value shares_of(const Value& column, const Projection& p) {
  Value flat = through_views(column);
  if (p.sorting) {
    const auto moved = match::gathered(flat, 0);
    if (!moved || !same((*moved)[1], p.sorting->order)) return {};
    flat = through_views((*moved)[0]);
  }
  const bool fits =
      column.rank() == 2 && column.shape()[1] == Dim(1) && flat.shape() == p.slots.experts.shape();
  return fits ? flat : Value();
}

/// Whether `v` says where each slot stands in the order: the order scattered the other way.
bool is_inverse(const Value& v, const Value& order) {
  if (op_of<ir::ScatterNd>(v) == nullptr ||
      op_of<ir::ScatterNd>(v)->reduction != ir::ScatterReduction::kNone)
    return false;
  const Value places = operand(v, 1);
  return match::counts_up(operand(v, 2), order.shape()[0]) && v.shape() == order.shape() &&
         places.rank() == 2 && same(through_views(places), order);
}

struct Experts {
  Projection down, gate_up;
  ir::ActivationKind fn = ir::ActivationKind::kSilu;
  Value shares;
};
std::optional<Experts> experts_of(const Value& weighted) {
  return either_factor(weighted,
                       [](const Value& made, const Value& column) -> std::optional<Experts> {
                         const auto down = projection(made);
                         if (!down) return std::nullopt;
                         const auto halves = gated(down->rows);
                         if (!halves) return std::nullopt;
                         const auto gate_up = projection(halves->both);
                         const Value shares = shares_of(column, *down);
                         if (!gate_up || !shares) return std::nullopt;
                         return Experts{*down, *gate_up, halves->fn, shares};
                       });
}

bool same_order(const Projection& a, const Projection& b) {
  return a.sorting.has_value() == b.sorting.has_value() &&
         (!a.sorting || same(a.sorting->order, b.sorting->order)) &&
         same(a.slots.experts, b.slots.experts);
}

/// What is summed by token, as it was made: put back into the tokens' order if it was sorted.
struct Weighted {
  Value made;
  Value back;  // where each slot stands; absent: in order
};
Weighted weighted_of(const Value& slots) {
  const auto moved = match::gathered(slots, 0);
  return moved ? Weighted{(*moved)[0], (*moved)[1]} : Weighted{slots, {}};
}

bool is_put_back(const Weighted& weighted, const std::optional<Sorting>& sorting) {
  if (!sorting) return !weighted.back;
  return weighted.back && is_inverse(weighted.back, sorting->order);
}

/// Reduce(slots [T, k, H], sum over k).
std::optional<std::vector<Value>> moe(ir::Graph& to, const ir::Node& node,
                                      const std::vector<Value>& in) {
  if (node.kind() != ir::OpKind::kReduce || in[0].rank() != 3) return std::nullopt;
  const auto& reduce = ir::as<ir::Reduce>(*node.op);
  if (reduce.fn != ir::ReduceKind::kSum || reduce.keepdims || reduce.axes.size() != 1 ||
      match::axis_of(reduce.axes[0], in[0]) != 1 || op_of<ir::Reshape>(in[0]) == nullptr)
    return std::nullopt;
  const Weighted weighted = weighted_of(operand(in[0], 0));
  const auto found = experts_of(weighted.made);
  if (!found || !same_order(found->down, found->gate_up) ||
      !is_put_back(weighted, found->down.sorting))
    return std::nullopt;
  const Value x = tokens_of(found->gate_up), experts = found->down.slots.experts;
  if (!x || found->shares.dtype() != x.dtype()) return std::nullopt;
  const ir::Shape slots = {x.shape()[0], experts.shape()[1], found->down.weights.shape()[1]};
  if (!(in[0].shape() == slots) || !(x.shape()[0] == experts.shape()[0])) return std::nullopt;
  ir::Moe op;
  op.fn = found->fn;
  return std::vector<Value>{to.add_one(
      ir::make(op), {x, experts, found->shares, found->gate_up.weights, found->down.weights},
      node.name)};
}

}  // namespace

bool recognize_moe(GraphPtr& graph) { return rewrite(graph, moe); }

}  // namespace tranship::passes
