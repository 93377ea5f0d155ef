#include "passes/recognize/function_of.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "interpret/interpret.h"
#include "ir/build.h"
#include "passes/match.h"

namespace tranship::passes {
namespace {

using ir::BinaryKind;
using ir::CompareKind;
using ir::OpKind;
using ir::UnaryKind;
using ir::Value;

class Builder {
 public:
  explicit Builder(const IsVariable& is_variable)
      : graph_(std::make_unique<ir::Graph>("function")), is_variable_(is_variable) {
    ir::Input n;
    n.name = "n";
    n.dtype = DType::kI64;
    n.shape = {ir::Dim::symbol("count")};
    n_ = graph_->add_one(ir::make(std::move(n)), {});
  }

  std::unique_ptr<ir::Graph> build(const Value& v, const Place& place) {
    const Value f = element(v, place);
    if (!f || f.rank() != 1) return nullptr;
    graph_->add_output("f", f);
    return std::move(graph_);
  }

 private:
  /// Absent if it is no such function.
  Value element(const Value& v, const Place& place) {
    const auto [it, added] = made_.try_emplace(v.id(), Made{place, {}});
    if (!added) return it->second.place == place ? it->second.value : Value();
    constexpr size_t kMostNodes = 256;
    if (made_.size() > kMostNodes) return {};
    const Value out = is_variable_(v, place) ? ir::cast(n_, v.dtype()) : computed(v, place);
    return made_[v.id()].value = out;
  }

  Value computed(const Value& v, const Place& place) {
    const ir::Node& node = match::producer(v);
    switch (node.kind()) {
      case OpKind::kConstant:
        return constant(ir::as<ir::Constant>(*node.op).value);
      case OpKind::kCast:
      case OpKind::kUnary:
      case OpKind::kBinary:
      case OpKind::kCompare:
      case OpKind::kWhere: {
        std::vector<Value> operands;
        for (size_t i = 0; i < node.inputs.size(); ++i) {
          const Value x = match::operand(v, i);
          operands.push_back(element(x, in_operand(x, place)));
          if (!operands.back()) return {};
        }
        return graph_->add(node.op, operands)[0];
      }
      case OpKind::kFull:
        return element(match::operand(v, 0), {});
      default: {
        const auto elsewhere = moved_from(v, place);
        return elsewhere ? element(elsewhere->v, elsewhere->place) : Value();
      }
    }
  }

  Value constant(const Tensor& tensor) {
    return tensor.num_elements() == 1 ? ir::scalar(*graph_, tensor.dtype(), tensor.at(0)) : Value();
  }

  struct Made {
    Place place;
    Value value;
  };
  std::unique_ptr<ir::Graph> graph_;
  const IsVariable& is_variable_;
  Value n_;
  std::map<ir::ValueId, Made> made_;
};

// ---- bounds

/// What a value can be, both ends included; of a bool 0 and 1.
struct Interval {
  double low = 0, high = 0;
  bool is_one() const { return low == high; }
};
using MaybeInterval = std::optional<Interval>;

Interval hull(std::initializer_list<double> numbers) {
  return {std::min(numbers), std::max(numbers)};
}

MaybeInterval of_unary(UnaryKind fn, Interval x) {
  switch (fn) {
    case UnaryKind::kNeg:
      return Interval{-x.high, -x.low};
    case UnaryKind::kAbs:
      if (x.low <= 0 && x.high >= 0) return Interval{0, std::max(-x.low, x.high)};
      return hull({std::abs(x.low), std::abs(x.high)});
    case UnaryKind::kLog:
      if (!(x.low > 0)) return std::nullopt;
      return Interval{std::log(x.low), std::log(x.high)};
    case UnaryKind::kSqrt:
      if (x.low < 0) return std::nullopt;
      return Interval{std::sqrt(x.low), std::sqrt(x.high)};
    case UnaryKind::kFloor:
      return Interval{std::floor(x.low), std::floor(x.high)};
    case UnaryKind::kCeil:
      return Interval{std::ceil(x.low), std::ceil(x.high)};
    case UnaryKind::kTrunc:
      return Interval{std::trunc(x.low), std::trunc(x.high)};
    case UnaryKind::kNot:
      return Interval{1 - x.high, 1 - x.low};
    default:
      return std::nullopt;
  }
}

MaybeInterval of_binary(BinaryKind fn, Interval a, Interval b, DType dtype) {
  switch (fn) {
    case BinaryKind::kAdd:
      return Interval{a.low + b.low, a.high + b.high};
    case BinaryKind::kSub:
      return Interval{a.low - b.high, a.high - b.low};
    case BinaryKind::kMul:
      return hull({a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high});
    case BinaryKind::kDiv:
      if (!is_floating(dtype) || !b.is_one() || b.low == 0) return std::nullopt;
      return hull({a.low / b.low, a.high / b.low});
    case BinaryKind::kMin:
    case BinaryKind::kAnd:
      return Interval{std::min(a.low, b.low), std::min(a.high, b.high)};
    case BinaryKind::kMax:
    case BinaryKind::kOr:
      return Interval{std::max(a.low, b.low), std::max(a.high, b.high)};
    default:
      return std::nullopt;
  }
}

/// 1 if it always holds, 0 if never.
Interval decided(bool always, bool never) { return {always ? 1.0 : 0.0, never ? 0.0 : 1.0}; }

Interval of_compare(CompareKind fn, Interval a, Interval b) {
  switch (fn) {
    case CompareKind::kLess:
      return decided(a.high < b.low, a.low >= b.high);
    case CompareKind::kLessEqual:
      return decided(a.high <= b.low, a.low > b.high);
    case CompareKind::kGreater:
      return of_compare(CompareKind::kLess, b, a);
    case CompareKind::kGreaterEqual:
      return of_compare(CompareKind::kLessEqual, b, a);
    case CompareKind::kEqual:
      return decided(a.is_one() && b.is_one() && a.low == b.low, a.high < b.low || b.high < a.low);
    case CompareKind::kNotEqual: {
      const Interval equal = of_compare(CompareKind::kEqual, a, b);
      return {1 - equal.high, 1 - equal.low};
    }
  }
  __builtin_unreachable();
}

MaybeInterval of_cast(Interval x, DType from, DType to) {
  if (to == DType::kBool) return std::nullopt;
  if (!is_integer(to) || from == DType::kBool) return x;
  return Interval{std::trunc(x.low), std::trunc(x.high)};
}

/// Numbers that the dtype cannot hold, or holds with a larger error than is allowed for, are not
/// known.
bool holds(DType dtype, const Interval& x) {
  double most = std::numeric_limits<float>::max();
  if (dtype == DType::kI32) most = std::numeric_limits<int32_t>::max();
  if (dtype == DType::kI64) most = 9e15;  // doubles are exact up to there
  const bool known = dtype == DType::kBool || dtype == DType::kI32 || dtype == DType::kI64 ||
                     dtype == DType::kF32 || dtype == DType::kF64;
  return known && x.low >= -most && x.high <= most;
}

/// The branch that is taken, or either.
MaybeInterval of_where(const std::vector<MaybeInterval>& in) {
  if (!in[0]) return std::nullopt;
  if (in[0]->is_one()) return in[0]->low == 1 ? in[1] : in[2];
  if (!in[1] || !in[2]) return std::nullopt;
  return hull({in[1]->low, in[1]->high, in[2]->low, in[2]->high});
}

MaybeInterval of_node(const Value& v, const std::vector<MaybeInterval>& in) {
  const ir::Op& op = *match::producer(v).op;
  if (op.kind == OpKind::kWhere) return of_where(in);
  if (!std::all_of(in.begin(), in.end(), [](const MaybeInterval& x) { return x.has_value(); }))
    return std::nullopt;
  switch (op.kind) {
    case OpKind::kCast:
      return of_cast(*in[0], match::operand(v, 0).dtype(), v.dtype());
    case OpKind::kUnary:
      return of_unary(ir::as<ir::Unary>(op).fn, *in[0]);
    case OpKind::kBinary:
      return of_binary(ir::as<ir::Binary>(op).fn, *in[0], *in[1], v.dtype());
    case OpKind::kCompare:
      return of_compare(ir::as<ir::Compare>(op).fn, *in[0], *in[1]);
    default:
      return std::nullopt;
  }
}

/// An op on floats rounds: a little more than it can be. 1e-5 is over 80 units of f32.
Interval rounded(Interval x, DType dtype) {
  if (!is_floating(dtype)) return x;
  const auto error = [](double number) { return std::abs(number) * 1e-5 + 1e-6; };
  return {x.low - error(x.low), x.high + error(x.high)};
}

}  // namespace

std::unique_ptr<ir::Graph> function_of(const Value& v, const Place& place,
                                       const IsVariable& is_variable) {
  return Builder(is_variable).build(v, place);
}

Tensor applied(const ir::Graph& function, const Tensor& numbers) {
  return interpret(function, {{"n", numbers}}, {}).at("f");
}

std::optional<double> constant_on(ir::Graph& function, double low, double high) {
  std::map<ir::ValueId, MaybeInterval> known;
  for (const ir::Node& node : function.nodes()) {
    const Value v = function.value(node.outputs[0]);
    MaybeInterval out;
    if (node.kind() == OpKind::kInput) {
      out = Interval{low, high};
    } else if (const Tensor* constant = match::constant(v)) {
      out = Interval{constant->at(0), constant->at(0)};
    } else {
      std::vector<MaybeInterval> in;
      for (const ir::ValueId id : node.inputs) in.push_back(known[id]);
      out = of_node(v, in);
      if (out && node.kind() != OpKind::kWhere) out = rounded(*out, v.dtype());
    }
    if (out && holds(v.dtype(), *out)) known[v.id()] = out;
  }
  const MaybeInterval& f = known[function.outputs()[0].value];
  return f && f->is_one() ? std::optional(f->low) : std::nullopt;
}

}  // namespace tranship::passes
