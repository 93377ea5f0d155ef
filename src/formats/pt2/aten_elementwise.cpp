// Operators on one tensor, element by element; casts and copies.
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <span>

#include "base/error.h"
#include "formats/pt2/aten_support.h"

namespace tranship::pt2 {
namespace {

using ir::BinaryKind;
using ir::CompareKind;
using ir::UnaryKind;
using ir::Value;

/// A float function: integers and bools become f32.
template <UnaryKind kFn>
Results of_float(Call& call) {
  const Value x = call.tensor("self");
  return {unary(kFn, cast(x, float_of(x.dtype())))};
}

/// A function of any number: integers stay integers.
template <UnaryKind kFn>
Results of_number(Call& call) {
  return {unary(kFn, call.tensor("self"))};
}

/// Rounding, which leaves integers as they are.
template <UnaryKind kFn>
Results rounding(Call& call) {
  const Value x = call.tensor("self");
  return {is_floating(x.dtype()) ? unary(kFn, x) : x};
}

Value float_self(Call& call) {
  const Value x = call.tensor("self");
  return cast(x, float_of(x.dtype()));
}

Results abs(Call& call) {
  const Value x = call.tensor("self");
  return {x.dtype() == DType::kU8 ? x : unary(UnaryKind::kAbs, x)};
}

Results rsqrt(Call& call) {
  return {unary(UnaryKind::kReciprocal, unary(UnaryKind::kSqrt, float_self(call)))};
}
Results square(Call& call) {
  const Value x = call.tensor("self");
  return {binary(BinaryKind::kPow, x, scalar(call.graph(), x.dtype(), 2))};
}
Results expm1(Call& call) { return {unary(UnaryKind::kExp, float_self(call)) - 1}; }
Results exp2(Call& call) { return {unary(UnaryKind::kExp, float_self(call) * std::numbers::ln2)}; }
Results log1p(Call& call) { return {unary(UnaryKind::kLog, float_self(call) + 1)}; }
Results log2(Call& call) {
  return {unary(UnaryKind::kLog, float_self(call)) * std::numbers::log2e};
}
Results log10(Call& call) {
  return {unary(UnaryKind::kLog, float_self(call)) * std::numbers::log10e};
}
Results erfc(Call& call) {
  const Value x = unary(UnaryKind::kErf, float_self(call));
  return {unary(UnaryKind::kNeg, x) + 1};
}

Value polynomial(Value x, std::span<const double> coefficients) {
  Value y = x * coefficients[0] + coefficients[1];
  for (const double c : coefficients.subspan(2)) y = y * x + c;
  return y;
}

/// Of f32 accuracy. Source: Mike Giles, "Approximating the erfinv function" (2010), table 5.
Results erfinv(Call& call) {
  constexpr std::array kCentral = {2.81022636e-08,  3.43273939e-07, -3.5233877e-06,
                                   -4.39150654e-06, 0.00021858087,  -0.00125372503,
                                   -0.00417768164,  0.246640727,    1.50140941};
  constexpr std::array kTail = {-0.000200214257, 0.000100950558, 0.00134934322,
                                -0.00367342844,  0.00573950773,  -0.0076224613,
                                0.00943887047,   1.00167406,     2.83297682};
  const Value x = float_self(call);
  const auto number = [&](double value) { return scalar(x.graph(), x.dtype(), value); };
  const Value rest = (unary(UnaryKind::kNeg, x) + 1) * (x + 1);
  const Value w = unary(UnaryKind::kNeg, unary(UnaryKind::kLog, rest));
  const Value central = polynomial(w + -2.5, kCentral);
  const Value tail = polynomial(unary(UnaryKind::kSqrt, w) + -3, kTail);
  const Value y = where(compare(CompareKind::kLess, w, number(5)), central, tail) * x;
  const Value is_end = compare(CompareKind::kEqual, unary(UnaryKind::kAbs, x), number(1));
  return {where(is_end, x * number(std::numeric_limits<double>::infinity()), y)};
}

/// log(x / (1 - x)), x first kept at least eps from 0 and 1.
Results logit(Call& call) {
  Value x = float_self(call);
  if (call.has("eps")) {
    const double eps = call.real("eps");
    x = binary(BinaryKind::kMax, x, scalar(call.graph(), x.dtype(), eps));
    x = binary(BinaryKind::kMin, x, scalar(call.graph(), x.dtype(), 1 - eps));
  }
  return {unary(UnaryKind::kLog, x / (unary(UnaryKind::kNeg, x) + 1))};
}

Results frac(Call& call) {
  const Value x = call.tensor("self");
  return {x - unary(UnaryKind::kTrunc, x)};
}

Results round_decimals(Call& call) {
  const Value x = call.tensor("self");
  const int64_t decimals = call.integer("decimals", 0);
  if (decimals == 0 || !is_floating(x.dtype())) return {x};
  const Value factor = scalar(call.graph(), x.dtype(), std::pow(10.0, decimals));
  return {unary(UnaryKind::kRound, x * factor) / factor};
}

Results logical_not(Call& call) { return {negated(truth_of(call.tensor("self")))}; }

Results bitwise_not(Call& call) {
  const Value x = call.tensor("self");
  return {x.dtype() == DType::kBool ? negated(x) : unary(UnaryKind::kBitNot, x)};
}

Value never(Value x) { return full(x.graph(), DType::kBool, 0, x.shape()); }

template <UnaryKind kFn>
Results is_special(Call& call) {
  const Value x = call.tensor("self");
  return {is_floating(x.dtype()) ? unary(kFn, x) : never(x)};
}

Results isfinite(Call& call) {
  const Value x = call.tensor("self");
  if (!is_floating(x.dtype())) return {negated(never(x))};
  return {
      negated(binary(BinaryKind::kOr, unary(UnaryKind::kIsNan, x), unary(UnaryKind::kIsInf, x)))};
}

double largest(DType dtype) {
  if (dtype == DType::kF16) return 65504;
  if (dtype == DType::kBF16) return 3.3895313892515355e38;
  return dtype == DType::kF64 ? std::numeric_limits<double>::max()
                              : double{std::numeric_limits<float>::max()};
}

Results nan_to_num(Call& call) {
  Value x = call.tensor("self");
  if (!is_floating(x.dtype())) return {x};
  ir::Graph& g = call.graph();
  const double nan = call.real("nan", 0);
  const double positive = call.real("posinf", largest(x.dtype()));
  const double negative = call.real("neginf", -largest(x.dtype()));
  const Value zero = scalar(g, x.dtype(), 0);
  const Value infinite = unary(UnaryKind::kIsInf, x);
  const Value bound = where(compare(CompareKind::kGreater, x, zero), scalar(g, x.dtype(), positive),
                            scalar(g, x.dtype(), negative));
  x = where(unary(UnaryKind::kIsNan, x), scalar(g, x.dtype(), nan), x);
  return {where(infinite, bound, x)};
}

// ---- casts and copies

Reference same(Call& call) {
  return call.reference("self").view([](Value base) { return base; },
                                     [](Value, Value view) { return view; });
}

Results alias(Call& call) { return {same(call)}; }

Results copy(Call& call) {
  call.ignore({"memory_format"});
  return {call.tensor("self")};
}

/// Another dtype makes another tensor; without one it is the same, unless it is to be a copy.
Results converted(Call& call, std::optional<DType> dtype) {
  call.ignore({"layout", "device", "pin_memory", "non_blocking", "memory_format"});
  const Value x = call.tensor("self");
  if (dtype && *dtype != x.dtype()) return {cast(x, *dtype)};
  if (call.flag("copy", false)) return {x};
  return {same(call)};
}

Results to(Call& call) { return converted(call, call.dtype("dtype")); }
Results to_other(Call& call) { return converted(call, call.tensor("other").dtype()); }
Results to_device(Call& call) {
  call.ignore({"device"});
  return converted(call, call.dtype("dtype"));
}

Results to_copy(Call& call) {
  call.ignore({"layout", "device", "pin_memory", "non_blocking", "memory_format"});
  const Value x = call.tensor("self");
  return {cast(x, call.dtype("dtype").value_or(x.dtype()))};
}

Results convert_element_type(Call& call) {
  const Value x = call.tensor("a");
  return {cast(x, call.dtype("dtype").value_or(x.dtype()))};
}

/// In place: what is copied takes the dtype and shape of the target.
Results copy_from(Call& call) {
  const Value target = call.tensor("self");
  const Value source = cast(call.tensor("src"), target.dtype());
  call.ignore({"non_blocking"});
  return {expanded(source, target.shape())};
}

/// Without memory to read, anything will do: zeros.
Results fill(Call& call) {
  const Value x = call.tensor("self");
  const Value value = operand_value(call.graph(), call.operand("value"), x.dtype());
  return {expanded(value, x.shape())};
}
Results zero(Call& call) {
  const Value x = call.tensor("self");
  return {full(call.graph(), x.dtype(), 0, x.shape())};
}

/// Random, but for probabilities and modes that make it the identity.
Results dropout(Call& call) {
  const Reference input = call.reference("input");
  const double p = call.real("p");
  if (call.flag("train", false) && p != 0)
    fail(ErrorKind::kUnsupported, "dropout in training: capture the model after .eval()");
  return {input.view([](Value base) { return base; }, [](Value, Value view) { return view; })};
}

constexpr std::array kRows = std::to_array<Row>({
    {"aten.abs.default", abs},
    {"aten.absolute.default", abs},
    {"aten.neg.default", of_number<UnaryKind::kNeg>},
    {"aten.negative.default", of_number<UnaryKind::kNeg>},
    {"aten.sign.default", of_number<UnaryKind::kSign>},
    {"aten.sgn.default", of_number<UnaryKind::kSign>},
    {"aten.exp.default", of_float<UnaryKind::kExp>},
    {"aten.exp2.default", exp2},
    {"aten.special_exp2.default", exp2},
    {"aten.expm1.default", expm1},
    {"aten.log.default", of_float<UnaryKind::kLog>},
    {"aten.log2.default", log2},
    {"aten.log10.default", log10},
    {"aten.log1p.default", log1p},
    {"aten.sqrt.default", of_float<UnaryKind::kSqrt>},
    {"aten.rsqrt.default", rsqrt},
    {"aten.square.default", square},
    {"aten.reciprocal.default", of_float<UnaryKind::kReciprocal>},
    {"aten.sin.default", of_float<UnaryKind::kSin>},
    {"aten.cos.default", of_float<UnaryKind::kCos>},
    {"aten.tan.default", of_float<UnaryKind::kTan>},
    {"aten.asin.default", of_float<UnaryKind::kAsin>},
    {"aten.acos.default", of_float<UnaryKind::kAcos>},
    {"aten.atan.default", of_float<UnaryKind::kAtan>},
    {"aten.arctan.default", of_float<UnaryKind::kAtan>},
    {"aten.sinh.default", of_float<UnaryKind::kSinh>},
    {"aten.cosh.default", of_float<UnaryKind::kCosh>},
    {"aten.tanh.default", of_float<UnaryKind::kTanh>},
    {"aten.asinh.default", of_float<UnaryKind::kAsinh>},
    {"aten.acosh.default", of_float<UnaryKind::kAcosh>},
    {"aten.atanh.default", of_float<UnaryKind::kAtanh>},
    {"aten.sigmoid.default", of_float<UnaryKind::kSigmoid>},
    {"aten.special_expit.default", of_float<UnaryKind::kSigmoid>},
    {"aten.erf.default", of_float<UnaryKind::kErf>},
    {"aten.special_erf.default", of_float<UnaryKind::kErf>},
    {"aten.erfc.default", erfc},
    {"aten.erfinv.default", erfinv},
    {"aten.special_erfinv.default", erfinv},
    {"aten.special_erfc.default", erfc},
    {"aten.floor.default", rounding<UnaryKind::kFloor>},
    {"aten.ceil.default", rounding<UnaryKind::kCeil>},
    {"aten.trunc.default", rounding<UnaryKind::kTrunc>},
    {"aten.fix.default", rounding<UnaryKind::kTrunc>},
    {"aten.round.default", rounding<UnaryKind::kRound>},
    {"aten.round.decimals", round_decimals},
    {"aten.frac.default", frac},
    {"aten.logit.default", logit},
    {"aten.special_logit.default", logit},
    {"aten.logical_not.default", logical_not},
    {"aten.bitwise_not.default", bitwise_not},
    {"aten.isnan.default", is_special<UnaryKind::kIsNan>},
    {"aten.isinf.default", is_special<UnaryKind::kIsInf>},
    {"aten.isfinite.default", isfinite},
    {"aten.nan_to_num.default", nan_to_num},
    {"aten.alias.default", alias},
    {"aten.detach.default", alias},
    {"aten.detach_.default", alias},
    {"aten.positive.default", alias},
    {"aten.conj.default", alias},
    {"aten.resolve_conj.default", alias},
    {"aten.resolve_neg.default", alias},
    {"aten.real.default", alias},
    {"aten.lift.default", alias},
    {"aten.lift_fresh.default", alias},
    {"aten.lift_fresh_copy.default", copy},
    {"aten.clone.default", copy},
    {"aten.to.dtype", to},
    {"aten.to.dtype_layout", to},
    {"aten.to.device", to_device},
    {"aten.to.other", to_other},
    {"aten.type_as.default", to_other},
    {"aten._to_copy.default", to_copy},
    {"prims.convert_element_type.default", convert_element_type},
    {"aten.copy.default", copy_from},
    {"aten.fill.Scalar", fill},
    {"aten.fill.Tensor", fill},
    {"aten.zero.default", zero},
    {"aten.dropout.default", dropout},
    {"aten.feature_dropout.default", dropout},
    {"aten.alpha_dropout.default", dropout},
    {"aten.native_dropout.default", dropout},
});

}  // namespace

std::span<const Row> elementwise_rows() { return kRows; }

}  // namespace tranship::pt2
