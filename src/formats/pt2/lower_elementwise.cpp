// Operators that go element by element, and sums over axes.
#include "base/error.h"
#include "formats/pt2/lowering.h"

namespace tranship::pt2 {
namespace {

using ir::as;
using ir::BinaryKind;
using ir::CompareKind;
using ir::Node;
using ir::ReduceKind;
using ir::UnaryKind;

std::string_view unary_target(UnaryKind fn) {
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
  std::vector<Operand> operands = {
      self(n), {"dim", as_ints(op.axes)}, {"keepdim", as_bool(op.keepdims)}};
  if (op.fn == ReduceKind::kSum)  // else integers would be summed as i64
    operands.push_back({"dtype", as_dtype(dtype(n.outputs[0])), true});
  say(n, reduce_target(op.fn), operands);
}

}  // namespace tranship::pt2
