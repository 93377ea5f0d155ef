// Attention.
#include <array>
#include <cmath>

#include "base/error.h"
#include "formats/pt2/aten_support.h"

namespace tranship::pt2 {
namespace {

using ir::Dim;
using ir::OpKind;
using ir::Shape;
using ir::Value;

const ir::Node& producer(const Value& v) { return v.graph().producer(v.id()); }
Value operand_of(const Value& v, size_t i) { return v.graph().value(producer(v).inputs[i]); }

std::optional<double> constant_number(const Value& v) {
  const ir::Node& node = producer(v);
  if (node.kind() == OpKind::kCast) return constant_number(operand_of(v, 0));
  if (node.kind() != OpKind::kConstant) return std::nullopt;
  const Tensor& tensor = ir::as<ir::Constant>(*node.op).value;
  return tensor.num_elements() == 1 ? std::optional(tensor.at(0)) : std::nullopt;
}

/// The condition of where(condition, 0, -inf): what is hidden gets no weight at all.
Value hard_mask_under(const Value& bias) {
  if (producer(bias).kind() != OpKind::kWhere) return {};
  const std::optional<double> seen = constant_number(operand_of(bias, 1));
  const std::optional<double> hidden = constant_number(operand_of(bias, 2));
  const Value condition = operand_of(bias, 0);
  const bool plain = seen && *seen == 0 && hidden && *hidden < 0 && std::isinf(*hidden) &&
                     condition.shape() == bias.shape();
  return plain ? condition : Value();
}

bool is_finite(const Value& v, int depth = 0);

/// Sums and products of finite numbers are, unless they overflow; quotients by a constant, too.
bool is_finite_binary(const Value& v, int depth) {
  const ir::BinaryKind fn = ir::as<ir::Binary>(*producer(v).op).fn;
  const Value a = operand_of(v, 0), b = operand_of(v, 1);
  if (fn == ir::BinaryKind::kPow) return false;
  const bool divides = fn == ir::BinaryKind::kDiv || fn == ir::BinaryKind::kMod ||
                       fn == ir::BinaryKind::kFloorDiv || fn == ir::BinaryKind::kFmod;
  if (divides && constant_number(b).value_or(0) == 0) return false;
  return is_finite(a, depth + 1) && is_finite(b, depth + 1);
}

bool is_finite_unary(const Value& v, int depth) {
  const ir::UnaryKind fn = ir::as<ir::Unary>(*producer(v).op).fn;
  const bool has_poles = fn == ir::UnaryKind::kLog || fn == ir::UnaryKind::kReciprocal ||
                         fn == ir::UnaryKind::kTan || fn == ir::UnaryKind::kAtanh;
  return !has_poles && is_finite(operand_of(v, 0), depth + 1);
}

/// Whether a bias is made of numbers that are known to be finite. Weights are.
bool is_finite(const Value& v, int depth) {
  constexpr int kMaxDepth = 32;
  const ir::Node& node = producer(v);
  if (!is_floating(v.dtype()) || node.kind() == OpKind::kParam) return true;
  if (depth > kMaxDepth) return false;
  switch (node.kind()) {
    case OpKind::kConstant: {
      const Tensor& tensor = ir::as<ir::Constant>(*node.op).value;
      for (int64_t i = 0; i < tensor.num_elements(); ++i) {
        if (!std::isfinite(tensor.at(i))) return false;
      }
      return true;
    }
    case OpKind::kWhere:
      return is_finite(operand_of(v, 1), depth + 1) && is_finite(operand_of(v, 2), depth + 1);
    case OpKind::kEmbedding:
    case OpKind::kGather:
      return is_finite(operand_of(v, 0), depth + 1);
    case OpKind::kBinary:
      return is_finite_binary(v, depth);
    case OpKind::kUnary:
      return is_finite_unary(v, depth);
    case OpKind::kCast:
    case OpKind::kFull:
    case OpKind::kReshape:
    case OpKind::kTranspose:
    case OpKind::kExpand:
    case OpKind::kUnsqueeze:
    case OpKind::kSqueeze:
    case OpKind::kConcat:
    case OpKind::kSlice:
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (!is_finite(operand_of(v, i), depth + 1)) return false;
      }
      return true;
    default:
      return false;
  }
}

/// [B, H, S, D]: missing axes in front are 1, more than four become one.
Value with_four_axes(Value x) {
  if (x.rank() < 4) return unsqueeze(x, all_axes(4 - x.rank()));
  if (x.rank() == 4) return x;
  Dim batch = 1;
  for (int64_t axis = 0; axis < x.rank() - 3; ++axis) batch = batch * x.shape()[axis];
  return reshape(x, {batch, x.shape()[-3], x.shape()[-2], x.shape()[-1]});
}

/// Query i sees keys 0 ... i, wherever the last key stands.
Value seen_from_the_top(ir::Graph& g, const Dim& queries, const Dim& keys) {
  return compare(ir::CompareKind::kLessEqual, iota(g, keys), unsqueeze(iota(g, queries), {1}));
}

struct Sdpa {
  Value q, k, v, mask;
  bool causal = false;
  double scale = 1;
};

/// Batches of one broadcast; so do heads of one, which grouped heads are anyway.
void share_batch(Sdpa& s) {
  const Shape batch =
      broadcast_shape(broadcast_shape({s.q.shape()[0]}, {s.k.shape()[0]}), {s.v.shape()[0]});
  for (Value* x : {&s.q, &s.k, &s.v}) {
    Shape shape = x->shape();
    shape[0] = batch[0];
    *x = expanded(*x, shape);
  }
  if (!(s.k.shape()[1] == s.v.shape()[1])) {
    const Dim heads = broadcast_shape({s.k.shape()[1]}, {s.v.shape()[1]})[0];
    for (Value* x : {&s.k, &s.v}) {
      Shape shape = x->shape();
      shape[1] = heads;
      *x = expanded(*x, shape);
    }
  }
}

Value attend(Sdpa s) {
  ir::Graph& g = s.q.graph();
  Shape result = s.q.shape();
  result[-1] = s.v.shape()[-1];
  s.q = with_four_axes(s.q);
  s.k = with_four_axes(s.k);
  s.v = with_four_axes(s.v);
  share_batch(s);
  ir::Attention op;
  op.scale = s.scale;
  Value bias;
  if (s.mask) {
    bias = s.mask.rank() > 4 ? with_four_axes(s.mask) : s.mask;
    if (bias.rank() < 2) bias = unsqueeze(bias, all_axes(2 - bias.rank()));
    if (bias.dtype() != DType::kBool) {
      const Value hard = hard_mask_under(bias);
      bias = hard ? hard : cast(bias, s.q.dtype());
    }
  }
  const Dim queries = s.q.shape()[2], keys = s.k.shape()[2];
  if (s.causal && queries == keys) {
    op.causal = true;
  } else if (s.causal) {
    bias = seen_from_the_top(g, queries, keys);
  }
  Value y = add_node(g, op, {s.q, s.k, s.v, Value(), bias});
  if (bias && bias.dtype() != DType::kBool && !is_finite(bias)) {
    // A query from which all keys are hidden by -inf gives zeros.
    const Value lowest = scalar(g, bias.dtype(), -std::numeric_limits<double>::infinity());
    const Value seen = compare(ir::CompareKind::kGreater, bias, lowest);
    y = where(reduce(ir::ReduceKind::kAny, seen, {-1}, true), y, scalar(g, y.dtype(), 0));
  }
  return reshape(y, result);
}

/// The size of a head decides the scale, if nothing is said.
double scale_of(Call& call, const Value& q) {
  const Dim& size = q.shape()[-1];
  if (!size.is_static()) return call.real("scale");
  return call.real("scale", 1 / std::sqrt(static_cast<double>(size.value())));
}

void refuse_dropout(Call& call) {
  if (call.real("dropout_p", 0) != 0)
    fail(ErrorKind::kUnsupported, "dropout in training: capture the model after .eval()");
}

Results scaled_dot_product_attention(Call& call) {
  Sdpa s;
  s.q = call.tensor("query");
  s.k = call.tensor("key");
  s.v = call.tensor("value");
  s.mask = call.optional_tensor("attn_mask");
  refuse_dropout(call);
  s.causal = call.flag("is_causal", false);
  s.scale = scale_of(call, s.q);
  const bool grouped = call.flag("enable_gqa", false);
  const Dim heads = s.q.rank() > 2 ? s.q.shape()[-3] : Dim(1);
  const Dim key_heads = s.k.rank() > 2 ? s.k.shape()[-3] : Dim(1);
  if (!grouped && !(heads == key_heads) && !(key_heads == Dim(1)) && heads.is_static() &&
      key_heads.is_static()) {
    call.corrupt("{} query heads and {} key heads without enable_gqa", heads.text(),
                 key_heads.text());
  }
  return {attend(s)};
}

/// What PyTorch decomposes it to, with a mask where the kernel takes one.
Results fused_attention(Call& call) {
  Sdpa s;
  s.q = call.tensor("query");
  s.k = call.tensor("key");
  s.v = call.tensor("value");
  const bool efficient = call.node().target.find("efficient") != std::string::npos;
  if (efficient) s.mask = call.optional_tensor("attn_bias");
  call.ignore({"compute_log_sumexp"});
  refuse_dropout(call);
  s.causal = call.flag("is_causal", false);
  if (!efficient) s.mask = call.optional_tensor("attn_mask");
  s.scale = scale_of(call, s.q);
  for (size_t i = 1; i < call.outputs().size(); ++i) {
    if (call.is_used(i)) fail(ErrorKind::kUnsupported, "the sum of exponentials");
  }
  return {attend(s)};
}

constexpr std::array kRows = std::to_array<Row>({
    {"aten.scaled_dot_product_attention.default", scaled_dot_product_attention},
    {"aten._scaled_dot_product_flash_attention_for_cpu.default", fused_attention},
    {"aten._scaled_dot_product_efficient_attention.default", fused_attention},
});

}  // namespace

std::span<const Row> attention_rows() { return kRows; }

}  // namespace tranship::pt2
