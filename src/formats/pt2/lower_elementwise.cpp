// Operators that go element by element, and sums over axes.
#include "base/error.h"
#include "formats/pt2/lowering.h"
#include "ir/infer.h"

namespace tranship::pt2 {
namespace {

using ir::as;
using ir::BinaryKind;
using ir::CompareKind;
using ir::Node;
using ir::ReduceKind;
using ir::UnaryKind;

std::string_view unary_target(UnaryKind fn) {  // #lizard forgives: a table
  switch (fn) {
    case UnaryKind::kNeg:
      return "aten.neg.default";
    case UnaryKind::kAbs:
      return "aten.abs.default";
    case UnaryKind::kExp:
      return "aten.exp.default";
    case UnaryKind::kLog:
      return "aten.log.default";
    case UnaryKind::kSqrt:
      return "aten.sqrt.default";
    case UnaryKind::kReciprocal:
      return "aten.reciprocal.default";
    case UnaryKind::kSin:
      return "aten.sin.default";
    case UnaryKind::kCos:
      return "aten.cos.default";
    case UnaryKind::kTanh:
      return "aten.tanh.default";
    case UnaryKind::kSigmoid:
      return "aten.sigmoid.default";
    case UnaryKind::kErf:
      return "aten.erf.default";
    case UnaryKind::kFloor:
      return "aten.floor.default";
    case UnaryKind::kCeil:
      return "aten.ceil.default";
    case UnaryKind::kNot:
      return "aten.logical_not.default";
    case UnaryKind::kTan:
      return "aten.tan.default";
    case UnaryKind::kAsin:
      return "aten.asin.default";
    case UnaryKind::kAcos:
      return "aten.acos.default";
    case UnaryKind::kAtan:
      return "aten.atan.default";
    case UnaryKind::kSinh:
      return "aten.sinh.default";
    case UnaryKind::kCosh:
      return "aten.cosh.default";
    case UnaryKind::kAsinh:
      return "aten.asinh.default";
    case UnaryKind::kAcosh:
      return "aten.acosh.default";
    case UnaryKind::kAtanh:
      return "aten.atanh.default";
    case UnaryKind::kSign:
      return "aten.sign.default";
    case UnaryKind::kRound:
      return "aten.round.default";
    case UnaryKind::kTrunc:
      return "aten.trunc.default";
    case UnaryKind::kIsNan:
      return "aten.isnan.default";
    case UnaryKind::kIsInf:
      return "aten.isinf.default";
    case UnaryKind::kBitNot:
      return "aten.bitwise_not.default";
  }
  return {};
}

/// An operator of two tensors, and the same with a Scalar in the place of one of them.
struct BinaryTarget {
  std::string_view tensors;
  std::string_view scalar = {};        // as the second
  std::string_view scalar_first = {};  // (self: the tensor, other: the number before it)
  std::string_view rounding = {};      // rounding_mode
  std::string_view second = "other";   // what the schema calls the second
};

BinaryTarget binary_target(BinaryKind fn, bool of_integers) {
  switch (fn) {
    case BinaryKind::kAdd:
      return {"aten.add.Tensor", "aten.add.Scalar", "aten.add.Scalar"};
    case BinaryKind::kSub:
      return {"aten.sub.Tensor", "aten.sub.Scalar", "aten.rsub.Scalar"};
    case BinaryKind::kMul:
      return {"aten.mul.Tensor", "aten.mul.Scalar", "aten.mul.Scalar"};
    case BinaryKind::kDiv:
      if (of_integers) return {"aten.div.Tensor_mode", "aten.div.Scalar_mode", {}, "trunc"};
      return {"aten.div.Tensor", "aten.div.Scalar"};
    case BinaryKind::kFloorDiv:
      return {"aten.div.Tensor_mode", "aten.div.Scalar_mode", {}, "floor"};
    case BinaryKind::kMod:
      return {"aten.remainder.Tensor", "aten.remainder.Scalar"};
    case BinaryKind::kPow:
      return {.tensors = "aten.pow.Tensor_Tensor",
              .scalar = "aten.pow.Tensor_Scalar",
              .second = "exponent"};
    case BinaryKind::kMin:
      return {"aten.minimum.default"};
    case BinaryKind::kMax:
      return {"aten.maximum.default"};
    case BinaryKind::kAnd:
      return {"aten.logical_and.default"};
    case BinaryKind::kOr:
      return {"aten.logical_or.default"};
    case BinaryKind::kXor:
      return {"aten.logical_xor.default"};
    case BinaryKind::kFmod:
      return {"aten.fmod.Tensor", "aten.fmod.Scalar"};
    case BinaryKind::kBitAnd:
      return {"aten.bitwise_and.Tensor", "aten.bitwise_and.Scalar"};
    case BinaryKind::kBitOr:
      return {"aten.bitwise_or.Tensor", "aten.bitwise_or.Scalar"};
    case BinaryKind::kBitXor:
      return {"aten.bitwise_xor.Tensor", "aten.bitwise_xor.Scalar"};
    case BinaryKind::kShiftLeft:
      return {"aten.bitwise_left_shift.Tensor", "aten.bitwise_left_shift.Tensor_Scalar"};
    case BinaryKind::kShiftRight:
      return {"aten.bitwise_right_shift.Tensor", "aten.bitwise_right_shift.Tensor_Scalar"};
  }
  return {};
}

std::string_view compare_name(CompareKind fn) {
  switch (fn) {
    case CompareKind::kEqual:
      return "eq";
    case CompareKind::kNotEqual:
      return "ne";
    case CompareKind::kLess:
      return "lt";
    case CompareKind::kLessEqual:
      return "le";
    case CompareKind::kGreater:
      return "gt";
    case CompareKind::kGreaterEqual:
      return "ge";
  }
  return {};
}

/// a < b is b > a.
CompareKind turned(CompareKind fn) {
  switch (fn) {
    case CompareKind::kLess:
      return CompareKind::kGreater;
    case CompareKind::kLessEqual:
      return CompareKind::kGreaterEqual;
    case CompareKind::kGreater:
      return CompareKind::kLess;
    case CompareKind::kGreaterEqual:
      return CompareKind::kLessEqual;
    case CompareKind::kEqual:
    case CompareKind::kNotEqual:
      break;
  }
  return fn;
}

std::string_view reduce_target(ReduceKind fn) {
  switch (fn) {
    case ReduceKind::kSum:
      return "aten.sum.dim_IntList";
    case ReduceKind::kMean:
      return "aten.mean.dim";
    case ReduceKind::kMax:
      return "aten.amax.default";
    case ReduceKind::kMin:
      return "aten.amin.default";
    case ReduceKind::kAny:
      return "aten.any.dims";
    case ReduceKind::kAll:
      return "aten.all.dims";
    case ReduceKind::kProd:
      break;  // an axis at a time
  }
  return {};
}

}  // namespace

void Lowering::lower_unary(const Node& n) {
  say(n, unary_target(as<ir::Unary>(*n.op).fn), {self(n)});
}

void Lowering::lower_binary(const Node& n) {
  const BinaryTarget target =
      binary_target(as<ir::Binary>(*n.op).fn, is_integer(dtype(n.outputs[0])));
  const ir::ValueId a = n.inputs[0], b = n.inputs[1];
  std::vector<Operand> operands;
  std::string_view chosen = target.tensors;
  const std::optional<std::string> first = scalar(a), second = scalar(b);
  if (second && !first && !target.scalar.empty()) {
    chosen = target.scalar;
    operands = {self(n), {std::string(target.second), *second}};
  } else if (first && !second && !target.scalar_first.empty()) {
    chosen = target.scalar_first;
    operands = {self(n, 1), {"other", *first}};
  } else {
    operands = {self(n), operand(std::string(target.second), n, 1)};
  }
  if (!target.rounding.empty())
    operands.push_back({"rounding_mode", as_string(target.rounding), true});
  say(n, chosen, operands);
}

void Lowering::lower_compare(const Node& n) {
  CompareKind fn = as<ir::Compare>(*n.op).fn;
  const std::optional<std::string> first = scalar(n.inputs[0]), second = scalar(n.inputs[1]);
  const auto target = [&](std::string_view overload) {
    return fmt::format("aten.{}.{}", compare_name(fn), overload);
  };
  if (second && !first) return say(n, target("Scalar"), {self(n), {"other", *second}});
  if (first && !second) {
    fn = turned(fn);
    return say(n, target("Scalar"), {self(n, 1), {"other", *first}});
  }
  say(n, target("Tensor"), {self(n), operand("other", n, 1)});
}

void Lowering::lower_reduce(const Node& n) {
  const auto& op = as<ir::Reduce>(*n.op);
  if (op.fn == ReduceKind::kProd) return lower_product(n);
  std::vector<Operand> operands = {
      self(n), {"dim", as_ints(op.axes)}, {"keepdim", as_bool(op.keepdims)}};
  if (op.fn == ReduceKind::kSum)  // else integers would be summed as i64
    operands.push_back({"dtype", as_dtype(dtype(n.outputs[0])), true});
  say(n, reduce_target(op.fn), operands);
}

void Lowering::lower_product(const Node& n) {
  const auto& op = as<ir::Reduce>(*n.op);
  ir::Type made = type(n.inputs[0]);
  std::string value = tensor(n.inputs[0]);
  for (const int64_t axis : op.axes) {
    const int64_t along = ir::normal_axis(axis, made.shape.rank(), "Reduce");
    made.shape[along] = 1;
    value = emit_.node("aten.prod.dim_int",
                       {{"self", as_tensor(value)},
                        {"dim", as_int(along)},
                        {"keepdim", as_bool(true)},
                        {"dtype", as_dtype(made.dtype), true}},
                       made);
  }
  if (op.keepdims) return set(n, value);
  say(n, "aten.squeeze.dims", {{"self", as_tensor(value)}, {"dim", as_ints(op.axes)}});
}

void Lowering::lower_activation(const Node& n) {
  using ir::ActivationKind;
  switch (as<ir::Activation>(*n.op).fn) {
    case ActivationKind::kSilu:
      return say(n, "aten.silu.default", {self(n)});
    case ActivationKind::kGelu:
      return say(n, "aten.gelu.default", {self(n)});
    case ActivationKind::kGeluTanh:
      return say(n, "aten.gelu.default", {self(n), {"approximate", as_string("tanh"), true}});
    case ActivationKind::kRelu:
      return say(n, "aten.relu.default", {self(n)});
    case ActivationKind::kSoftplus:
      return say(n, "aten.softplus.default", {self(n)});
    case ActivationKind::kMish:
      return say(n, "aten.mish.default", {self(n)});
    case ActivationKind::kElu:
      return say(n, "aten.elu.default", {self(n)});
    case ActivationKind::kHardSigmoid:
      return say(n, "aten.hardsigmoid.default", {self(n)});
    case ActivationKind::kHardSwish:
      return say(n, "aten.hardswish.default", {self(n)});
    case ActivationKind::kRelu6:
      return say(n, "aten.relu6.default", {self(n)});
    case ActivationKind::kQuickGelu:
    case ActivationKind::kLeakyRelu:
    case ActivationKind::kRelu2:
      break;  // never claimed
  }
  fail(ErrorKind::kInternal, "[pt2] an activation was not decomposed: this is a bug in tranship");
}

}  // namespace tranship::pt2
