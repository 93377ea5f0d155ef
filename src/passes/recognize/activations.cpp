#include <algorithm>
#include <cmath>
#include <numbers>

#include "passes/match.h"
#include "passes/recognize/recognize.h"
#include "passes/rewrite.h"

namespace tranship::passes {
namespace {

using ir::ActivationKind;
using ir::BinaryKind;
using ir::UnaryKind;
using ir::Value;
using match::Product;
using match::same;

bool near(double a, double b) { return std::abs(a - b) <= 1e-6 * std::abs(b); }

/// The value that a product takes `count` times, and nothing else; absent otherwise.
Value power_of(const Product& p, size_t count) {
  if (p.factors.size() != count) return {};
  const bool equal = std::all_of(p.factors.begin(), p.factors.end(),
                                 [&](const Value& v) { return same(v, p.factors[0]); });
  return equal ? p.factors[0] : Value();
}

/// Whether v is x^3, times a coefficient.
bool is_cube(const Value& v, const Value& x, double coefficient) {
  const Product p = match::product(v);
  if (!near(p.coefficient, coefficient)) return false;
  if (const Value base = power_of(p, 3)) return same(base, x);
  if (p.factors.size() != 1) return false;
  const auto pow = match::binary_with_number(p.factors[0], BinaryKind::kPow);
  return pow && pow->number == 3 && same(pow->x, x);
}

/// sqrt(2 / pi) (x + 0.044715 x^3).
bool is_argument_of_tanh(const Value& v, const Value& x) {
  const Product p = match::product(v);
  if (p.factors.size() != 1 || !near(p.coefficient, std::sqrt(2 / std::numbers::pi))) return false;
  const auto sum = match::binary(p.factors[0], BinaryKind::kAdd);
  if (!sum) return false;
  const auto& [a, b] = *sum;
  return (same(a, x) && is_cube(b, x, 0.044715)) || (same(b, x) && is_cube(a, x, 0.044715));
}

/// Which GELU 0.5 x (1 + f) is, by f.
std::optional<ActivationKind> gelu_of(const Value& f, const Value& x) {
  if (const Value inner = match::unary(f, UnaryKind::kErf)) {
    const Product p = match::product(inner);
    const Value base = power_of(p, 1);
    if (base && same(base, x) && near(p.coefficient, std::numbers::sqrt2 * 0.5))
      return ActivationKind::kGelu;
  }
  if (const Value inner = match::unary(f, UnaryKind::kTanh)) {
    if (is_argument_of_tanh(inner, x)) return ActivationKind::kGeluTanh;
  }
  return std::nullopt;
}

std::optional<ActivationKind> activation_of(double coefficient, const Value& x, const Value& gate) {
  if (const Value inner = match::unary(gate, UnaryKind::kSigmoid); inner && near(coefficient, 1)) {
    if (same(inner, x)) return ActivationKind::kSilu;
    const Product p = match::product(inner);
    const Value base = power_of(p, 1);
    if (base && same(base, x) && near(p.coefficient, 1.702)) return ActivationKind::kQuickGelu;
  }
  const auto sum = match::binary_with_number(gate, BinaryKind::kAdd);
  if (sum && sum->number == 1 && near(coefficient, 0.5)) return gelu_of(sum->x, x);
  return std::nullopt;
}

/// relu(x)^2, or relu(x) relu(x).
std::optional<std::vector<Value>> square_of_relu(BinaryKind fn, const std::vector<Value>& in) {
  const auto* relu = match::op_of<ir::Activation>(in[0]);
  if (relu == nullptr || relu->fn != ActivationKind::kRelu) return std::nullopt;
  const bool squares =
      fn == BinaryKind::kMul ? same(in[0], in[1]) : match::is_number(in[1], 2) && in[1].rank() == 0;
  if (!squares) return std::nullopt;
  return std::vector<Value>{ir::activation(ActivationKind::kRelu2, match::operand(in[0], 0))};
}

std::optional<std::vector<Value>> activation(ir::Graph& to, const ir::Node& node,
                                             const std::vector<Value>& in) {
  if (node.kind() != ir::OpKind::kBinary) return std::nullopt;
  const BinaryKind fn = ir::as<ir::Binary>(*node.op).fn;
  if (fn == BinaryKind::kMax && is_floating(in[0].dtype()) && match::is_number(in[1], 0) &&
      in[1].rank() <= in[0].rank())
    return std::vector<Value>{ir::activation(ActivationKind::kRelu, in[0])};
  if (fn == BinaryKind::kPow || fn == BinaryKind::kMul) {
    if (auto squared = square_of_relu(fn, in)) return squared;
  }
  if (fn != BinaryKind::kMul) return std::nullopt;
  const Product left = match::product(in[0]), right = match::product(in[1]);
  Product all = left;
  all.coefficient *= right.coefficient;
  all.factors.insert(all.factors.end(), right.factors.begin(), right.factors.end());
  if (all.factors.size() != 2) return std::nullopt;
  for (const size_t i : {size_t{0}, size_t{1}}) {
    const Value x = all.factors[i];
    const auto kind = activation_of(all.coefficient, x, all.factors[1 - i]);
    if (kind && x.shape() == to.type(in[0].id()).shape)
      return std::vector<Value>{ir::activation(*kind, x)};
  }
  return std::nullopt;
}

}  // namespace

bool recognize_activations(GraphPtr& graph) { return rewrite(graph, activation); }

}  // namespace tranship::passes
