#include "formats/pt2/python_operators.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "ir/build.h"

namespace tranship::pt2 {
namespace {

using ir::BinaryKind;
using ir::CompareKind;
using ir::Dim;
using ir::UnaryKind;
using ir::Value;

[[noreturn]] void refuse(std::string_view target) {
  fail(ErrorKind::kUnsupported, "numbers of this kind for '{}'", target);
}

const Dim* as_int(const Number& number) { return std::get_if<Dim>(&number); }

/// As a constant, if it is one.
std::optional<double> as_constant(const Number& number) {
  if (const auto* real = std::get_if<double>(&number)) return *real;
  if (const auto* truth = std::get_if<bool>(&number)) return *truth ? 1 : 0;
  if (const Dim* dim = as_int(number); dim != nullptr && dim->is_static())
    return static_cast<double>(dim->value());
  return std::nullopt;
}

std::optional<Quotient> as_quotient(const Number& number) {
  if (const Dim* dim = as_int(number)) return Quotient{*dim, 1};
  if (const auto* quotient = std::get_if<Quotient>(&number)) return *quotient;
  if (const auto* real = std::get_if<double>(&number);
      real != nullptr && std::abs(*real) < 1e15 && *real == std::floor(*real)) {
    return Quotient{static_cast<int64_t>(*real), 1};
  }
  return std::nullopt;
}

Value as_f64(ir::Graph& graph, const Number& number) {
  return cast(to_value(graph, number), DType::kF64);
}

/// An int that the graph computes.
Dim born(Value value, ir::Graph& graph, Symbols& symbols) {
  ir::Item item;
  item.value = symbols.birth(std::nullopt);
  const Dim size = item.value;
  graph.add_one(ir::make(std::move(item)), {value});
  return size;
}

struct Arithmetic {
  std::string_view name;
  BinaryKind fn;
};
constexpr std::array<Arithmetic, 9> kArithmetic = {{{"_operator.add", BinaryKind::kAdd},
                                                    {"_operator.sub", BinaryKind::kSub},
                                                    {"_operator.mul", BinaryKind::kMul},
                                                    {"_operator.truediv", BinaryKind::kDiv},
                                                    {"_operator.floordiv", BinaryKind::kFloorDiv},
                                                    {"_operator.mod", BinaryKind::kMod},
                                                    {"_operator.pow", BinaryKind::kPow},
                                                    {"torch.sym_max", BinaryKind::kMax},
                                                    {"torch.sym_min", BinaryKind::kMin}}};

struct Comparison {
  std::string_view name;
  CompareKind fn;
};
constexpr std::array<Comparison, 6> kComparisons = {{{"_operator.eq", CompareKind::kEqual},
                                                     {"_operator.ne", CompareKind::kNotEqual},
                                                     {"_operator.lt", CompareKind::kLess},
                                                     {"_operator.le", CompareKind::kLessEqual},
                                                     {"_operator.gt", CompareKind::kGreater},
                                                     {"_operator.ge", CompareKind::kGreaterEqual}}};

std::optional<Number> of_ints(BinaryKind fn, const Dim& a, const Dim& b, const Bounds& bounds) {
  switch (fn) {
    case BinaryKind::kAdd:
      return a + b;
    case BinaryKind::kSub:
      return a - b;
    case BinaryKind::kMul:
      return a * b;
    case BinaryKind::kDiv:
      return Quotient{a, b};
    case BinaryKind::kFloorDiv:
      return floor_div(a, b);
    case BinaryKind::kMod:
      return mod(a, b);
    case BinaryKind::kMax:
      return bounds.larger(a, b);
    case BinaryKind::kMin:
      return bounds.smaller(a, b);
    case BinaryKind::kPow: {
      constexpr int64_t kMaxExponent = 16;
      if (!b.is_static() || b.value() < 0 || b.value() > kMaxExponent) return std::nullopt;
      Dim power = 1;
      for (int64_t i = 0; i < b.value(); ++i) power = power * a;
      return power;
    }
    default:
      return std::nullopt;
  }
}

double of_constants(BinaryKind fn, double a, double b) {
  switch (fn) {
    case BinaryKind::kAdd:
      return a + b;
    case BinaryKind::kSub:
      return a - b;
    case BinaryKind::kMul:
      return a * b;
    case BinaryKind::kDiv:
      return a / b;
    case BinaryKind::kFloorDiv:
      return std::floor(a / b);
    case BinaryKind::kMod:
      return a - b * std::floor(a / b);
    case BinaryKind::kMax:
      return std::max(a, b);
    case BinaryKind::kMin:
      return std::min(a, b);
    default:
      return std::pow(a, b);
  }
}

std::optional<Number> of_quotients(BinaryKind fn, const Quotient& a, const Quotient& b) {
  if (fn == BinaryKind::kMul)
    return Quotient{a.numerator * b.numerator, a.denominator * b.denominator};
  if (fn == BinaryKind::kDiv)
    return Quotient{a.numerator * b.denominator, a.denominator * b.numerator};
  return std::nullopt;
}

Number arithmetic(BinaryKind fn, const Number& a, const Number& b, ir::Graph& graph,
                  const Bounds& bounds) {
  if (as_int(a) != nullptr && as_int(b) != nullptr) {
    if (auto out = of_ints(fn, *as_int(a), *as_int(b), bounds)) return *std::move(out);
  }
  const auto left = as_constant(a), right = as_constant(b);
  if (left && right) return of_constants(fn, *left, *right);
  const auto p = as_quotient(a), q = as_quotient(b);
  if (p && q) {
    if (auto out = of_quotients(fn, *p, *q)) return *std::move(out);
  }
  return ComputedFloat{binary(fn, as_f64(graph, a), as_f64(graph, b))};
}

bool holds(CompareKind fn, double a, double b) {
  switch (fn) {
    case CompareKind::kEqual:
      return a == b;
    case CompareKind::kNotEqual:
      return a != b;
    case CompareKind::kLess:
      return a < b;
    case CompareKind::kLessEqual:
      return a <= b;
    case CompareKind::kGreater:
      return a > b;
    case CompareKind::kGreaterEqual:
      return a >= b;
  }
  __builtin_unreachable();
}

Number comparison(CompareKind fn, const Number& a, const Number& b, ir::Graph& graph,
                  const Bounds& bounds) {
  if (as_int(a) != nullptr && as_int(b) != nullptr)
    return decide({fn, *as_int(a), *as_int(b)}, bounds);
  const auto left = as_constant(a), right = as_constant(b);
  if (left && right) return holds(fn, *left, *right);
  return ComputedBool{compare(fn, as_f64(graph, a), as_f64(graph, b))};
}

Number logic(BinaryKind fn, const Number& a, const Number& b, ir::Graph& graph) {
  const bool both_bool = kind_of(a) == NumberKind::kBool && kind_of(b) == NumberKind::kBool;
  if (!both_bool) refuse("and, or");
  const auto* left = std::get_if<bool>(&a);
  const auto* right = std::get_if<bool>(&b);
  const bool neutral = fn == BinaryKind::kAnd;
  if (left != nullptr) return *left == neutral ? b : a;
  if (right != nullptr) return *right == neutral ? a : b;
  return ComputedBool{binary(fn, to_value(graph, a), to_value(graph, b))};
}

Number negated(const Number& a, ir::Graph& graph) {
  if (const auto* truth = std::get_if<bool>(&a)) return !*truth;
  if (kind_of(a) != NumberKind::kBool) refuse("not");
  return ComputedBool{unary(UnaryKind::kNot, to_value(graph, a))};
}

/// To an integer: a computed one becomes a size that is born from data.
Number rounded(UnaryKind fn, const Number& a, ir::Graph& graph, Symbols& symbols) {
  if (as_int(a) != nullptr) return a;
  if (const auto real = as_constant(a)) {
    const double whole = fn == UnaryKind::kCeil    ? std::ceil(*real)
                         : fn == UnaryKind::kFloor ? std::floor(*real)
                                                   : std::trunc(*real);
    if (!(std::abs(whole) < 9e15)) refuse("rounding");
    return Dim(static_cast<int64_t>(whole));
  }
  if (const auto q = as_quotient(a)) {
    const bool positive = symbols.bounds.is_known_le(0, q->numerator) &&
                          symbols.bounds.is_known_le(1, q->denominator);
    if (fn == UnaryKind::kCeil) return ceil_div(q->numerator, q->denominator);
    if (fn == UnaryKind::kFloor || positive) return floor_div(q->numerator, q->denominator);
  }
  return born(cast(unary(fn, as_f64(graph, a)), DType::kI64), graph, symbols);
}

Number as_float(const Number& a) {
  if (const auto real = as_constant(a)) return *real;
  if (as_int(a) != nullptr) return Quotient{*as_int(a), 1};
  return a;
}

Number square_root(const Number& a, ir::Graph& graph) {
  if (const auto real = as_constant(a)) return std::sqrt(*real);
  return ComputedFloat{unary(UnaryKind::kSqrt, as_f64(graph, a))};
}

Number unary_operator(std::string_view target, const Number& a, ir::Graph& graph,
                      Symbols& symbols) {
  const auto named = [&](std::initializer_list<std::string_view> names) {
    return std::ranges::find(names, target) != names.end();
  };
  if (named({"_operator.neg"}))
    return arithmetic(BinaryKind::kMul, a, Dim(-1), graph, symbols.bounds);
  if (named({"_operator.pos"})) return a;
  if (named({"torch.sym_not", "_operator.not_"})) return negated(a, graph);
  if (named({"math.floor"})) return rounded(UnaryKind::kFloor, a, graph, symbols);
  if (named({"math.ceil"})) return rounded(UnaryKind::kCeil, a, graph, symbols);
  if (named({"math.trunc", "torch.sym_int"})) return rounded(UnaryKind::kTrunc, a, graph, symbols);
  if (named({"torch.sym_float"})) return as_float(a);
  if (named({"torch.sym_sqrt", "math.sqrt", "torch._sym_sqrt"})) return square_root(a, graph);
  fail(ErrorKind::kUnsupported, "the operator");
}

/// By a number of bits that is known.
std::optional<Number> shifted(std::string_view target, const Number& a, const Number& b) {
  constexpr int64_t kMostBits = 62;
  const Dim *value = as_int(a), *bits = as_int(b);
  if (value == nullptr || bits == nullptr || !bits->is_static()) return std::nullopt;
  if (bits->value() < 0 || bits->value() > kMostBits) return std::nullopt;
  const Dim factor(int64_t{1} << bits->value());
  if (target == "_operator.lshift") return *value * factor;
  if (target == "_operator.rshift") return floor_div(*value, factor);
  return std::nullopt;
}

Number binary_operator(std::string_view target, const Number& a, const Number& b, ir::Graph& graph,
                       const Bounds& bounds) {
  const auto* const arithmetic_row = std::ranges::find(kArithmetic, target, &Arithmetic::name);
  if (arithmetic_row != kArithmetic.end())
    return arithmetic(arithmetic_row->fn, a, b, graph, bounds);
  const auto* const comparison_row = std::ranges::find(kComparisons, target, &Comparison::name);
  if (comparison_row != kComparisons.end())
    return comparison(comparison_row->fn, a, b, graph, bounds);
  if (target == "_operator.and_") return logic(BinaryKind::kAnd, a, b, graph);
  if (target == "_operator.or_") return logic(BinaryKind::kOr, a, b, graph);
  if (auto out = shifted(target, a, b)) return *std::move(out);
  fail(ErrorKind::kUnsupported, "the operator, or numbers of this kind");
}

/// One of two ints, as what is only known when the graph runs says.
Number chosen(const Number& condition, const Number& yes, const Number& no, ir::Graph& graph,
              Symbols& symbols) {
  if (as_int(yes) == nullptr || as_int(no) == nullptr) refuse("torch.sym_ite");
  const Value value = where(to_value(graph, condition), to_value(graph, yes), to_value(graph, no));
  return born(value, graph, symbols);
}

}  // namespace

bool is_python_operator(std::string_view target) {
  return target.starts_with("_operator.") || target.starts_with("math.") ||
         target.starts_with("torch.sym_") || target.starts_with("torch._sym_");
}

Number decide(const Condition& c, const Bounds& bounds) {
  const auto known = [&](const Dim& low, const Dim& high) { return bounds.is_known_le(low, high); };
  switch (c.fn) {
    case CompareKind::kEqual:
    case CompareKind::kNotEqual:
      if (c.a == c.b) return c.fn == CompareKind::kEqual;
      if (known(c.a + 1, c.b) || known(c.b + 1, c.a)) return c.fn == CompareKind::kNotEqual;
      return c;
    case CompareKind::kLess:
      if (known(c.a + 1, c.b)) return true;
      if (known(c.b, c.a)) return false;
      return c;
    case CompareKind::kLessEqual:
      if (known(c.a, c.b)) return true;
      if (known(c.b + 1, c.a)) return false;
      return c;
    case CompareKind::kGreater:
      return decide({CompareKind::kLess, c.b, c.a}, bounds);
    case CompareKind::kGreaterEqual:
      return decide({CompareKind::kLessEqual, c.b, c.a}, bounds);
  }
  __builtin_unreachable();
}

Number call_python_operator(std::string_view target, const std::vector<Number>& arguments,
                            ir::Graph& graph, Symbols& symbols) {
  if (arguments.size() == 1) return unary_operator(target, arguments[0], graph, symbols);
  if (target == "torch.sym_ite" && arguments.size() == 3) {
    if (const auto* truth = std::get_if<bool>(&arguments[0])) return arguments[*truth ? 1 : 2];
    return chosen(arguments[0], arguments[1], arguments[2], graph, symbols);
  }
  if (arguments.size() != 2) fail(ErrorKind::kUnsupported, "the number of its arguments");
  return binary_operator(target, arguments[0], arguments[1], graph, symbols.bounds);
}

}  // namespace tranship::pt2
