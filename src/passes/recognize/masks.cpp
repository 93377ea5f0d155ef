#include <algorithm>

#include "passes/recognize/index_formula.h"
#include "passes/recognize/match.h"
#include "passes/recognize/recognize.h"
#include "passes/rewrite.h"

namespace tranship::passes {
namespace {

using ir::Dim;
using ir::Value;

// The coordinates of a mask [B, H, S, T].
enum : size_t { kBatch, kHead, kQuery, kKey, kCoordinates };

/// What an Attention can say of which keys are seen.
struct Structure {
  bool causal = false;
  std::optional<int64_t> window;
  Value key_mask;
};

/// Reads one condition; false if it is nothing that an Attention can say.
class Reader {
 public:
  Reader(const Dim& queries, const Dim& keys) : past_(keys - queries), one_query_(queries == 1) {}

  bool operator()(const AtMostZero& c) {
    std::vector<Dim> k = c.value.coefficients;
    k.resize(kCoordinates);
    if (!(k[kBatch] == Dim(0)) || !(k[kHead] == Dim(0))) return false;
    const Dim& constant = c.value.constant;
    if (k[kQuery] == Dim(0) && k[kKey] == Dim(0))
      return constant.is_static() && constant.value() <= 0;
    const auto against_query = [&](int64_t sign) {  // a single query is 0, whatever its factor
      return k[kKey] == Dim(sign) && (one_query_ || k[kQuery] == Dim(-sign));
    };
    if (against_query(1) && constant == Dim(0) - past_)
      return found_.causal = true;  // key <= query + past
    if (!against_query(-1)) return false;
    const Dim window = past_ + 1 - constant;  // query + past - window + 1 <= key
    if (!window.is_static() || window.value() < 1) return false;
    found_.window = std::min(found_.window.value_or(window.value()), window.value());
    return true;
  }

  bool operator()(const Flag& c) {
    if (c.flags.rank() != 2 || !(c.place[0] == Linear::coordinate(kBatch, kCoordinates)) ||
        !(c.place[1] == Linear::coordinate(kKey, kCoordinates)))
      return false;
    found_.key_mask = ir::and_if_present(found_.key_mask, c.flags);
    return true;
  }

  /// A window counts back from the query: without causal there is none.
  std::optional<Structure> result() const {
    if (found_.window && !found_.causal) return std::nullopt;
    return found_;
  }

 private:
  Dim past_;  // how far the first query stands behind the first key
  bool one_query_;
  Structure found_;
};

std::optional<Structure> structure_of(const Value& mask, const Dim& queries, const Dim& keys) {
  std::vector<Linear> place;
  for (size_t i = 0; i < kCoordinates; ++i) {
    const auto axis = static_cast<int64_t>(i) - static_cast<int64_t>(kCoordinates) + mask.rank();
    if (axis < 0) continue;
    place.push_back(mask.shape()[axis] == Dim(1) ? Linear::number(0, kCoordinates)
                                                 : Linear::coordinate(i, kCoordinates));
  }
  const auto conditions = conditions_at(mask, place);
  if (!conditions) return std::nullopt;
  Reader reader(queries, keys);
  for (const auto& condition : *conditions) {
    if (!std::visit(reader, condition)) return std::nullopt;
  }
  return reader.result();
}

/// The bool that a bias of 0 and of the lowest numbers says.
Value mask_under(const Value& bias) {
  if (bias.dtype() == DType::kBool) return bias;
  if (match::op_of<ir::Where>(bias) == nullptr || !match::is_number(match::operand(bias, 1), 0))
    return {};
  const auto hidden = match::number(match::operand(bias, 2));
  return hidden && *hidden < -1e30 ? match::operand(bias, 0) : Value();
}

bool fits(const Value& key_mask, const ir::Shape& keys) {
  return !key_mask || (key_mask.shape()[0] == keys[0] && key_mask.shape()[1] == keys[2]);
}

std::optional<std::vector<Value>> structured(ir::Graph& to, const ir::Node& node,
                                             const std::vector<Value>& in) {
  if (node.kind() != ir::OpKind::kAttention || in.size() < 5 || !in[4]) return std::nullopt;
  const Value mask = mask_under(in[4]);
  if (!mask || mask.rank() > static_cast<int64_t>(kCoordinates)) return std::nullopt;
  ir::Attention attention = ir::as<ir::Attention>(*node.op);
  if (attention.causal || attention.window) return std::nullopt;
  const ir::Shape keys = in[1].shape();
  const auto found = structure_of(mask, in[0].shape()[2], keys[2]);
  if (!found || !fits(found->key_mask, keys)) return std::nullopt;
  // A bias of numbers shares a row that sees nothing among all keys; a mask gives zeros.
  if (in[4].dtype() != DType::kBool && found->key_mask) return std::nullopt;
  attention.causal = found->causal;
  attention.window = found->window;
  const Value key_mask = ir::and_if_present(in[3], found->key_mask);
  return std::vector<Value>{
      to.add_one(ir::make(attention), {in[0], in[1], in[2], key_mask, Value()}, node.name)};
}

}  // namespace

bool recognize_masks(GraphPtr& graph) { return rewrite(graph, structured); }

}  // namespace tranship::passes
