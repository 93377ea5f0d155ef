// Activations in terms of primitives.
#include <cmath>
#include <numbers>

#include "ir/build.h"
#include "ir/decompose.h"

namespace tranship::ir {
namespace {

Value at_least(Value x, double bound) {
  return binary(BinaryKind::kMax, x, scalar(x.graph(), x.dtype(), bound));
}

Value at_most(Value x, double bound) {
  return binary(BinaryKind::kMin, x, scalar(x.graph(), x.dtype(), bound));
}

/// max(x, 0) + log(1 + exp(-|x|)): nothing overflows.
Value softplus(Value x) {
  const Value small = unary(UnaryKind::kExp, unary(UnaryKind::kNeg, unary(UnaryKind::kAbs, x)));
  return at_least(x, 0) + unary(UnaryKind::kLog, small + 1);
}

Value hard_sigmoid(Value x) { return at_most(at_least(x * (1.0 / 6) + 0.5, 0), 1); }

}  // namespace

Value decompose_activation(ActivationKind fn, Value x, Value slope) {
  switch (fn) {
    case ActivationKind::kSilu:
      return x * unary(UnaryKind::kSigmoid, x);
    case ActivationKind::kQuickGelu:
      return x * unary(UnaryKind::kSigmoid, x * 1.702);
    case ActivationKind::kRelu:
      return at_least(x, 0);
    case ActivationKind::kGelu:
      return x * 0.5 * (unary(UnaryKind::kErf, x * std::numbers::sqrt2 * 0.5) + 1);
    case ActivationKind::kGeluTanh: {
      const Value cubic = x + x * x * x * 0.044715;
      return x * 0.5 * (unary(UnaryKind::kTanh, cubic * std::sqrt(2 / std::numbers::pi)) + 1);
    }
    case ActivationKind::kSoftplus:
      return softplus(x);
    case ActivationKind::kMish:
      return x * unary(UnaryKind::kTanh, softplus(x));
    case ActivationKind::kElu:
      return at_least(x, 0) + (unary(UnaryKind::kExp, at_most(x, 0)) - 1);
    case ActivationKind::kLeakyRelu:
      return at_least(x, 0) + at_most(x, 0) * slope;
    case ActivationKind::kHardSigmoid:
      return hard_sigmoid(x);
    case ActivationKind::kHardSwish:
      return x * hard_sigmoid(x);
    case ActivationKind::kRelu6:
      return at_most(at_least(x, 0), 6);
    case ActivationKind::kRelu2: {
      const Value positive = at_least(x, 0);
      return positive * positive;
    }
  }
  __builtin_unreachable();
}

}  // namespace tranship::ir
