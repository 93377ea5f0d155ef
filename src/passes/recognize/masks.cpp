#include <algorithm>
#include <array>
#include <cstdlib>

#include "ir/decompose.h"
#include "passes/match.h"
#include "passes/recognize/index_formula.h"
#include "passes/recognize/recognize.h"
#include "passes/rewrite.h"

namespace tranship::passes {
namespace {

using ir::Dim;
using ir::Value;

// The coordinates of a mask [B, H, S, T].
enum : size_t { kBatch, kHead, kQuery, kKey, kCoordinates };
using Sizes = std::array<Dim, kCoordinates>;

/// What an Attention can say of which keys are seen.
struct Structure {
  bool causal = false;
  std::optional<int64_t> window;
  std::vector<Flag> flags;  // of keys
};

/// The most that a sum can be, sizes being what their ranges allow; nothing if there is no end.
std::optional<int64_t> upper_bound(const Dim& sum, const ir::Graph& graph) {
  constexpr int64_t kEnough = 1'000'000;  // as a lower bound of a size
  int64_t bound = 0;
  for (const Dim::Term& term : sum.terms()) {
    int64_t least = 1;
    for (const Dim::Factor& factor : term.factors) {
      if (factor.kind != Dim::Factor::Kind::kSymbol || term.coefficient > 0 ||
          term.factors.size() > 1)
        return std::nullopt;
      const auto range = graph.symbols().find(factor.symbol);
      least = range == graph.symbols().end() ? 1 : std::min(range->second.min, kEnough);
      if (least < 0) return std::nullopt;
    }
    if (std::abs(term.coefficient) > kEnough) return std::nullopt;
    bound += term.coefficient * least;
  }
  return bound;
}

/// Whether it is at most 0 at every place of a mask of these sizes.
bool holds_everywhere(const Linear& value, const Sizes& sizes, const ir::Graph& graph) {
  Dim largest = value.constant;
  for (size_t i = 0; i < value.coefficients.size(); ++i) {
    const Dim& c = value.coefficients[i];
    if (!c.is_static()) return false;
    if (c.value() > 0) largest = largest + c * (sizes[i] - 1);
  }
  const std::optional<int64_t> bound = upper_bound(largest, graph);
  return bound && *bound <= 0;
}

/// Reads one condition; false if it is nothing that an Attention can say.
class Reader {
 public:
  Reader(const Sizes& sizes, const ir::Graph& graph)
      : sizes_(sizes),
        graph_(graph),
        past_(sizes[kKey] - sizes[kQuery]),
        one_query_(sizes[kQuery] == 1) {}

  bool operator()(const AtMostZero& c) {
    std::vector<Dim> k = c.value.coefficients;
    k.resize(kCoordinates);
    const Dim& constant = c.value.constant;
    const auto against_query = [&](int64_t sign) {  // a single query is 0, whatever its factor
      return k[kBatch] == Dim(0) && k[kHead] == Dim(0) && k[kKey] == Dim(sign) &&
             (one_query_ || k[kQuery] == Dim(-sign));
    };
    if (against_query(1) && constant == Dim(0) - past_)
      return found_.causal = true;  // key <= query + past
    if (holds_everywhere(c.value, sizes_, graph_)) return true;
    if (!against_query(-1)) return false;
    const Dim window = past_ + 1 - constant;  // query + past - window + 1 <= key
    if (!window.is_static() || window.value() < 1) return false;
    found_.window = std::min(found_.window.value_or(window.value()), window.value());
    return true;
  }

  /// Flags of the keys of each row, or of all rows; axes of one place between do not matter.
  bool operator()(const Flag& c) {
    const size_t rank = c.place.size();
    if (const Tensor* known = match::constant(c.flags); known != nullptr && is_of_pairs(c))
      return read_pairs(*known);
    if (rank < 2) return false;
    const Linear &row = c.place.front(), &key = c.place.back();
    const bool of_each_row = row == Linear::coordinate(kBatch, kCoordinates);
    const bool of_all_rows = row == Linear::number(0, kCoordinates);
    if (!(of_each_row || of_all_rows) || !(key == Linear::coordinate(kKey, kCoordinates)))
      return false;
    for (size_t i = 1; i + 1 < rank; ++i) {
      if (!(c.flags.shape()[static_cast<int64_t>(i)] == Dim(1))) return false;
    }
    found_.flags.push_back(c);
    return true;
  }

  /// A window counts back from the query: without causal there is none.
  std::optional<Structure> result() const {
    if (found_.window && !found_.causal) return std::nullopt;
    return found_;
  }

 private:
  /// Whether the flags are of each query and key, and of nothing else.
  bool is_of_pairs(const Flag& c) const {
    const size_t rank = c.place.size();
    if (rank < 2 || !past_.is_static() || !c.flags.shape().is_static()) return false;
    for (size_t i = 0; i < rank; ++i) {
      const bool is_one = c.flags.shape()[static_cast<int64_t>(i)] == Dim(1);
      const size_t which = kCoordinates - rank + i;
      const Linear expected =
          is_one ? Linear::number(0, kCoordinates) : Linear::coordinate(which, kCoordinates);
      if (!(c.place[i] == expected) || (i + 2 < rank && !is_one)) return false;
    }
    return c.flags.shape().back() == sizes_[kKey] && c.flags.shape()[-2] == sizes_[kQuery];
  }

  /// A mask [queries, keys] that is known by its elements: each must be what the rule says.
  bool read_pairs(const Tensor& seen) {
    const int64_t queries = sizes_[kQuery].value(), keys = sizes_[kKey].value(),
                  past = past_.value();
    int64_t newest = 0, all = 0;  // keys that the last query sees, and all together
    for (int64_t i = 0; i < seen.num_elements(); ++i) {
      const bool is_seen = seen.at(i) != 0;
      all += is_seen ? 1 : 0;
      newest += is_seen && i >= (queries - 1) * keys ? 1 : 0;
    }
    if (all == 0) return false;
    for (int64_t q = 0; q < queries; ++q) {
      for (int64_t k = 0; k < keys; ++k) {
        const bool is_visible = k <= q + past && k > q + past - newest;
        if ((seen.at(q * keys + k) != 0) != is_visible) return false;
      }
    }
    found_.causal = true;
    if (newest < keys) found_.window = std::min(found_.window.value_or(newest), newest);
    return true;
  }

  const Sizes& sizes_;
  const ir::Graph& graph_;
  Dim past_;  // how far the first query stands behind the first key
  bool one_query_;
  Structure found_;
};

std::optional<Structure> structure_of(const Value& mask, const Sizes& sizes) {
  Place place;
  for (size_t i = 0; i < kCoordinates; ++i) {
    const auto axis = static_cast<int64_t>(i) - static_cast<int64_t>(kCoordinates) + mask.rank();
    if (axis < 0) continue;
    place.push_back(mask.shape()[axis] == Dim(1) ? Linear::number(0, kCoordinates)
                                                 : Linear::coordinate(i, kCoordinates));
  }
  const auto conditions = conditions_at(mask, place);
  if (!conditions) return std::nullopt;
  Reader reader(sizes, mask.graph());
  for (const auto& condition : *conditions) {
    if (!std::visit(reader, condition)) return std::nullopt;
  }
  return reader.result();
}

/// The first `count` rows; one that is there alone holds for all, as where a format broadcasts.
Value first_rows(const Value& x, const Dim& count) {
  return x.shape()[0] == count ? x : ir::slice(x, 0, 0, count);
}

/// The first `count` columns; as where they were read one by one, none may be missing.
Value first_columns(const Value& x, const Dim& count) {
  return x.shape()[1] == count ? x : ir::gather(x, ir::iota(x.graph(), count), 1);
}

/// All flags of keys as one, bool [B, T]; absent if there are none.
Value key_mask_of(const Structure& structure, const Sizes& sizes) {
  Value all;
  for (const Flag& flag : structure.flags) {
    const ir::Shape& shape = flag.flags.shape();
    Value keys = ir::reshape(flag.flags, {shape[0], shape.back()});
    const bool of_all_rows = flag.place.front().is_number();
    keys = first_columns(first_rows(keys, of_all_rows ? Dim(1) : sizes[kBatch]), sizes[kKey]);
    if (of_all_rows && !(sizes[kBatch] == Dim(1)))
      keys = ir::expand(keys, {sizes[kBatch], sizes[kKey]});
    all = ir::and_if_present(all, keys);
  }
  return all;
}

/// A bias of numbers taken apart: `bias` (absent: 0) where the mask is true, elsewhere so low that
/// it hides.
struct Masked {
  Value mask;
  Value bias;
  Value hidden;
};
std::optional<Masked> masked(const Value& bias) {
  if (bias.dtype() == DType::kBool) return Masked{bias, {}, {}};
  if (match::op_of<ir::Where>(bias) != nullptr) {
    const Value seen = match::operand(bias, 1), low = match::operand(bias, 2);
    const auto hidden = match::number(low);
    if (!hidden || *hidden > -1e30) return std::nullopt;
    return Masked{match::operand(bias, 0), match::is_number(seen, 0) ? Value() : seen, low};
  }
  const auto sum = match::binary(bias, ir::BinaryKind::kAdd);
  if (!sum) return std::nullopt;
  for (const size_t i : {size_t{0}, size_t{1}}) {
    if (match::op_of<ir::Where>((*sum)[i]) == nullptr) continue;
    auto found = masked((*sum)[i]);
    if (!found || found->bias) continue;
    found->bias = (*sum)[1 - i];
    return found;
  }
  return std::nullopt;
}

/// A bias of numbers that stays one, its mask by the rule that it follows.
std::optional<std::vector<Value>> respelled(ir::Graph& to, const ir::Node& node,
                                            const std::vector<Value>& in, const Masked& taken,
                                            const Structure& found, const Value& key_mask) {
  if (match::op_of<ir::Where>(in[4]) == nullptr) return std::nullopt;
  ir::Attention rule;
  rule.causal = found.causal;
  rule.window = found.window;
  const Value visible = ir::visible_keys(to, rule, in[0].shape(), in[1].shape(), key_mask);
  if (match::equal(visible, taken.mask)) return std::nullopt;
  std::vector<Value> operands = in;
  operands[4] = ir::where(visible, match::operand(in[4], 1), taken.hidden);
  return to.add(node.op, operands, node.name);
}

std::optional<std::vector<Value>> structured(ir::Graph& to, const ir::Node& node,
                                             const std::vector<Value>& in) {
  const auto taken = masked(in[4]);
  if (!taken || taken->mask.rank() > static_cast<int64_t>(kCoordinates)) return std::nullopt;
  ir::Attention attention = ir::as<ir::Attention>(*node.op);
  if (attention.causal || attention.window) return std::nullopt;
  const Sizes sizes = {in[0].shape()[0], in[0].shape()[1], in[0].shape()[2], in[1].shape()[2]};
  const auto found = structure_of(taken->mask, sizes);
  if (!found) return std::nullopt;
  const Value key_mask = key_mask_of(*found, sizes);
  // A bias of numbers shares a row that sees nothing among all keys; a mask gives zeros.
  if (taken->hidden && key_mask) return respelled(to, node, in, *taken, *found, key_mask);
  attention.causal = found->causal;
  attention.window = found->window;
  return std::vector<Value>{to.add_one(
      ir::make(attention), {in[0], in[1], in[2], ir::and_if_present(in[3], key_mask), taken->bias},
      node.name)};
}

/// A bias that was repeated for its rows, heads, queries or keys: attention repeats it.
Value without_repeats(const Value& bias) {
  const auto under = [](const Value& v) {
    const bool repeats =
        match::op_of<ir::Expand>(v) != nullptr || match::op_of<ir::Full>(v) != nullptr;
    return repeats ? match::operand(v, 0) : v;
  };
  const Value plain = under(bias);
  if (!match::same(plain, bias) || match::op_of<ir::Where>(bias) == nullptr) return plain;
  std::vector<Value> operands;
  bool repeats = false;
  for (const size_t i : {size_t{0}, size_t{1}, size_t{2}}) {
    operands.push_back(under(match::operand(bias, i)));
    repeats |= !match::same(operands.back(), match::operand(bias, i));
  }
  return repeats ? ir::where(operands[0], operands[1], operands[2]) : bias;
}

std::optional<std::vector<Value>> mask(ir::Graph& to, const ir::Node& node,
                                       const std::vector<Value>& in) {
  if (node.kind() != ir::OpKind::kAttention || in.size() < 5 || !in[4]) return std::nullopt;
  if (auto out = structured(to, node, in)) return out;
  const Value bias = without_repeats(in[4]);
  if (match::same(bias, in[4]) || bias.rank() < 2) return std::nullopt;
  std::vector<Value> operands = in;
  operands[4] = bias;
  return to.add(node.op, operands, node.name);
}

}  // namespace

bool recognize_masks(GraphPtr& graph) { return rewrite(graph, mask); }

}  // namespace tranship::passes
