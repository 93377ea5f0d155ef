// Operators on two or more tensors, element by element.
#include <array>

#include "base/error.h"
#include "formats/pt2/aten_support.h"

namespace tranship::pt2 {
namespace {

using ir::BinaryKind;
using ir::CompareKind;
using ir::UnaryKind;
using ir::Value;

struct Pair {
  Value a;
  Value b;
  DType dtype;
};

/// Both in the dtype that PyTorch computes in.
Pair promoted_pair(Call& call, std::string_view first = "self", std::string_view second = "other") {
  const Operand a = call.operand(first), b = call.operand(second);
  const DType dtype = promoted({a, b});
  return {operand_value(call.graph(), a, dtype), operand_value(call.graph(), b, dtype), dtype};
}

/// Of bool, a sum is `or`, a product `and`, and so on.
Value of_kind(BinaryKind fn, BinaryKind of_bool, Value a, Value b) {
  return binary(a.dtype() == DType::kBool ? of_bool : fn, a, b);
}

bool is_one(const Number& n) {
  if (const auto* real = std::get_if<double>(&n)) return *real == 1;
  const auto* dim = std::get_if<ir::Dim>(&n);
  return dim != nullptr && *dim == ir::Dim(1);
}

Value scaled(Value x, const Number& factor) {
  return is_one(factor) ? x : x * number_value(x.graph(), factor, x.dtype());
}

Results add(Call& call) {
  const Pair p = promoted_pair(call);
  const Value b = scaled(p.b, call.number("alpha", ir::Dim(1)));
  return {of_kind(BinaryKind::kAdd, BinaryKind::kOr, p.a, b)};
}

Results sub(Call& call) {
  const Pair p = promoted_pair(call);
  return {p.a - scaled(p.b, call.number("alpha", ir::Dim(1)))};
}

Results rsub(Call& call) {
  const Pair p = promoted_pair(call);
  return {p.b - scaled(p.a, call.number("alpha", ir::Dim(1)))};
}

Results mul(Call& call) {
  const Pair p = promoted_pair(call);
  return {of_kind(BinaryKind::kMul, BinaryKind::kAnd, p.a, p.b)};
}

/// Integers divide to floats, unless they are rounded.
Results div(Call& call) {
  const Operand a = call.operand("self"), b = call.operand("other");
  const std::string rounding = call.text("rounding_mode", "");
  const DType common = promoted({a, b});
  const DType dtype = rounding.empty() ? float_of(common) : common;
  const Value x = operand_value(call.graph(), a, dtype), y = operand_value(call.graph(), b, dtype);
  if (rounding == "floor") return {binary(BinaryKind::kFloorDiv, x, y)};
  const Value quotient = x / y;
  const bool rounds = rounding == "trunc" && is_floating(dtype);
  return {rounds ? unary(UnaryKind::kTrunc, quotient) : quotient};
}

template <BinaryKind kFn>
Results plain(Call& call) {
  const Pair p = promoted_pair(call);
  return {binary(kFn, p.a, p.b)};
}

template <BinaryKind kFn, BinaryKind kOfBool>
Results plain_or_logical(Call& call) {
  const Pair p = promoted_pair(call);
  return {of_kind(kFn, kOfBool, p.a, p.b)};
}

template <BinaryKind kFn>
Results logical(Call& call) {
  const Value a = truth_of(call.tensor("self"));
  return {binary(kFn, a, truth_of(call.tensor("other")))};
}

template <CompareKind kFn>
Results comparison(Call& call) {
  const Pair p = promoted_pair(call);
  return {compare(kFn, p.a, p.b)};
}

Results pow(Call& call) {
  const Pair p = promoted_pair(call, "self", "exponent");
  return {binary(BinaryKind::kPow, p.a, p.b)};
}

Results where(Call& call) {
  const Value condition = truth_of(call.tensor("condition"));
  const Pair p = promoted_pair(call);
  return {ir::where(condition, p.a, p.b)};
}

Results masked_fill(Call& call) {
  const Value x = call.tensor("self");
  const Value mask = call.tensor("mask");
  return {ir::where(mask, operand_value(call.graph(), call.operand("value"), x.dtype()), x)};
}

/// Bounds that are numbers of a higher category raise the result: clamp(int, 0.5) is a float.
Value clamped(Value x, const std::optional<Operand>& low, const std::optional<Operand>& high) {
  std::vector<Operand> operands = {x};
  if (low) operands.push_back(*low);
  if (high) operands.push_back(*high);
  const DType dtype = promoted(operands);
  Value y = cast(x, dtype);
  if (low) y = binary(BinaryKind::kMax, y, operand_value(x.graph(), *low, dtype));
  if (high) y = binary(BinaryKind::kMin, y, operand_value(x.graph(), *high, dtype));
  return y;
}

Results clamp(Call& call) {
  const Value x = call.tensor("self");
  const std::optional<Operand> low = call.optional_operand("min");
  return {clamped(x, low, call.optional_operand("max"))};
}
Results clamp_min(Call& call) {
  const Value x = call.tensor("self");
  return {clamped(x, call.operand("min"), std::nullopt)};
}
Results clamp_max(Call& call) {
  const Value x = call.tensor("self");
  return {clamped(x, std::nullopt, call.operand("max"))};
}

Results addcmul(Call& call) {
  const Operand x = call.operand("self"), a = call.operand("tensor1"), b = call.operand("tensor2");
  const DType dtype = promoted({x, a, b});
  const auto in = [&](const Operand& o) { return operand_value(call.graph(), o, dtype); };
  return {in(x) + scaled(in(a) * in(b), call.number("value", ir::Dim(1)))};
}

Results addcdiv(Call& call) {
  const Operand x = call.operand("self"), a = call.operand("tensor1"), b = call.operand("tensor2");
  const DType dtype = float_of(promoted({x, a, b}));
  const auto in = [&](const Operand& o) { return operand_value(call.graph(), o, dtype); };
  return {in(x) + scaled(in(a) / in(b), call.number("value", ir::Dim(1)))};
}

Results lerp(Call& call) {
  const Value a = call.tensor("self"), b = call.tensor("end");
  return {a + operand_value(call.graph(), call.operand("weight"), a.dtype()) * (b - a)};
}

/// From the angle of the half plane that the point lies in.
Results atan2(Call& call) {
  const Operand first = call.operand("self"), second = call.operand("other");
  const DType dtype = float_of(promoted({first, second}));
  ir::Graph& g = call.graph();
  const Value y = operand_value(g, first, dtype), x = operand_value(g, second, dtype);
  const Value zero = scalar(g, dtype, 0), pi = scalar(g, dtype, 3.141592653589793);
  const Value half = scalar(g, dtype, 1.5707963267948966);
  const Value angle = unary(UnaryKind::kAtan, y / x);
  const Value above = compare(CompareKind::kGreaterEqual, y, zero);
  const Value turned = angle + ir::where(above, pi, unary(UnaryKind::kNeg, pi));
  const Value upright = ir::where(compare(CompareKind::kGreater, y, zero), half,
                                  ir::where(above, zero, unary(UnaryKind::kNeg, half)));
  const Value beside = ir::where(compare(CompareKind::kLess, x, zero), turned, upright);
  return {ir::where(compare(CompareKind::kGreater, x, zero), angle, beside)};
}

/// log(exp(a) + exp(b)), with the larger taken out.
Results logaddexp(Call& call) {
  const Pair p = promoted_pair(call);
  const Value top = binary(BinaryKind::kMax, p.a, p.b);
  const Value gap = unary(UnaryKind::kAbs, p.a - p.b);
  return {top + unary(UnaryKind::kLog, unary(UnaryKind::kExp, unary(UnaryKind::kNeg, gap)) + 1)};
}

Results hypot(Call& call) {
  const Pair p = promoted_pair(call);
  return {unary(UnaryKind::kSqrt, p.a * p.a + p.b * p.b)};
}

/// a log(b), and 0 where a is 0.
Results xlogy(Call& call) {
  const Operand first = call.operand("self"), second = call.operand("other");
  const DType dtype = float_of(promoted({first, second}));
  const Value a = operand_value(call.graph(), first, dtype);
  const Value b = operand_value(call.graph(), second, dtype);
  const Value zero = scalar(call.graph(), dtype, 0);
  return {ir::where(compare(CompareKind::kEqual, a, zero), zero, a * unary(UnaryKind::kLog, b))};
}

constexpr BinaryKind kAnd = BinaryKind::kAnd, kOr = BinaryKind::kOr, kXor = BinaryKind::kXor;

constexpr std::array kRows = std::to_array<Row>({
    {"aten.add.Tensor", add},
    {"aten.add.Scalar", add},
    {"aten.sub.Tensor", sub},
    {"aten.sub.Scalar", sub},
    {"aten.subtract.Tensor", sub},
    {"aten.rsub.Tensor", rsub},
    {"aten.rsub.Scalar", rsub},
    {"aten.mul.Tensor", mul},
    {"aten.mul.Scalar", mul},
    {"aten.multiply.Tensor", mul},
    {"aten.div.Tensor", div},
    {"aten.div.Scalar", div},
    {"aten.div.Tensor_mode", div},
    {"aten.div.Scalar_mode", div},
    {"aten.divide.Tensor", div},
    {"aten.true_divide.Tensor", div},
    {"aten.true_divide.Scalar", div},
    {"aten.floor_divide.default", plain<BinaryKind::kFloorDiv>},
    {"aten.floor_divide.Scalar", plain<BinaryKind::kFloorDiv>},
    {"aten.remainder.Tensor", plain<BinaryKind::kMod>},
    {"aten.remainder.Scalar", plain<BinaryKind::kMod>},
    {"aten.remainder.Scalar_Tensor", plain<BinaryKind::kMod>},
    {"aten.fmod.Tensor", plain<BinaryKind::kFmod>},
    {"aten.fmod.Scalar", plain<BinaryKind::kFmod>},
    {"aten.maximum.default", plain_or_logical<BinaryKind::kMax, kOr>},
    {"aten.max.other", plain_or_logical<BinaryKind::kMax, kOr>},
    {"aten.minimum.default", plain_or_logical<BinaryKind::kMin, kAnd>},
    {"aten.min.other", plain_or_logical<BinaryKind::kMin, kAnd>},
    {"aten.bitwise_and.Tensor", plain_or_logical<BinaryKind::kBitAnd, kAnd>},
    {"aten.bitwise_and.Scalar", plain_or_logical<BinaryKind::kBitAnd, kAnd>},
    {"aten.__and__.Tensor", plain_or_logical<BinaryKind::kBitAnd, kAnd>},
    {"aten.__and__.Scalar", plain_or_logical<BinaryKind::kBitAnd, kAnd>},
    {"aten.bitwise_or.Tensor", plain_or_logical<BinaryKind::kBitOr, kOr>},
    {"aten.bitwise_or.Scalar", plain_or_logical<BinaryKind::kBitOr, kOr>},
    {"aten.__or__.Tensor", plain_or_logical<BinaryKind::kBitOr, kOr>},
    {"aten.__or__.Scalar", plain_or_logical<BinaryKind::kBitOr, kOr>},
    {"aten.bitwise_xor.Tensor", plain_or_logical<BinaryKind::kBitXor, kXor>},
    {"aten.bitwise_xor.Scalar", plain_or_logical<BinaryKind::kBitXor, kXor>},
    {"aten.__xor__.Tensor", plain_or_logical<BinaryKind::kBitXor, kXor>},
    {"aten.__xor__.Scalar", plain_or_logical<BinaryKind::kBitXor, kXor>},
    {"aten.bitwise_left_shift.Tensor", plain<BinaryKind::kShiftLeft>},
    {"aten.bitwise_left_shift.Tensor_Scalar", plain<BinaryKind::kShiftLeft>},
    {"aten.__lshift__.Scalar", plain<BinaryKind::kShiftLeft>},
    {"aten.__lshift__.Tensor", plain<BinaryKind::kShiftLeft>},
    {"aten.bitwise_right_shift.Tensor", plain<BinaryKind::kShiftRight>},
    {"aten.bitwise_right_shift.Tensor_Scalar", plain<BinaryKind::kShiftRight>},
    {"aten.__rshift__.Scalar", plain<BinaryKind::kShiftRight>},
    {"aten.__rshift__.Tensor", plain<BinaryKind::kShiftRight>},
    {"aten.logical_and.default", logical<kAnd>},
    {"aten.logical_or.default", logical<kOr>},
    {"aten.logical_xor.default", logical<kXor>},
    {"aten.eq.Tensor", comparison<CompareKind::kEqual>},
    {"aten.eq.Scalar", comparison<CompareKind::kEqual>},
    {"aten.ne.Tensor", comparison<CompareKind::kNotEqual>},
    {"aten.ne.Scalar", comparison<CompareKind::kNotEqual>},
    {"aten.not_equal.Tensor", comparison<CompareKind::kNotEqual>},
    {"aten.lt.Tensor", comparison<CompareKind::kLess>},
    {"aten.lt.Scalar", comparison<CompareKind::kLess>},
    {"aten.less.Tensor", comparison<CompareKind::kLess>},
    {"aten.le.Tensor", comparison<CompareKind::kLessEqual>},
    {"aten.le.Scalar", comparison<CompareKind::kLessEqual>},
    {"aten.gt.Tensor", comparison<CompareKind::kGreater>},
    {"aten.gt.Scalar", comparison<CompareKind::kGreater>},
    {"aten.greater.Tensor", comparison<CompareKind::kGreater>},
    {"aten.ge.Tensor", comparison<CompareKind::kGreaterEqual>},
    {"aten.ge.Scalar", comparison<CompareKind::kGreaterEqual>},
    {"aten.pow.Tensor_Tensor", pow},
    {"aten.pow.Tensor_Scalar", pow},
    {"aten.pow.Scalar", pow},
    {"aten.where.self", where},
    {"aten.where.Scalar", where},
    {"aten.where.ScalarSelf", where},
    {"aten.where.ScalarOther", where},
    {"aten.masked_fill.Scalar", masked_fill},
    {"aten.masked_fill.Tensor", masked_fill},
    {"aten.clamp.default", clamp},
    {"aten.clamp.Tensor", clamp},
    {"aten.clip.default", clamp},
    {"aten.clamp_min.default", clamp_min},
    {"aten.clamp_min.Tensor", clamp_min},
    {"aten.clamp_max.default", clamp_max},
    {"aten.clamp_max.Tensor", clamp_max},
    {"aten.addcmul.default", addcmul},
    {"aten.addcdiv.default", addcdiv},
    {"aten.lerp.Scalar", lerp},
    {"aten.lerp.Tensor", lerp},
    {"aten.atan2.default", atan2},
    {"aten.logaddexp.default", logaddexp},
    {"aten.hypot.default", hypot},
    {"aten.xlogy.Tensor", xlogy},
    {"aten.special_xlogy.default", xlogy},
});

}  // namespace

std::span<const Row> arithmetic_rows() { return kRows; }

}  // namespace tranship::pt2
