// Products of matrices.
#include <algorithm>
#include <array>
#include <map>

#include "base/error.h"
#include "formats/pt2/aten_support.h"

namespace tranship::pt2 {
namespace {

using ir::Dim;
using ir::ReduceKind;
using ir::Shape;
using ir::Value;

/// Vectors are matrices of one row or column for the while; products of integers are taken as they
/// are.
Value product(Value a, Value b) {
  const bool row = a.rank() == 1, column = b.rank() == 1;
  if (row) a = unsqueeze(a, {0});
  if (column) b = unsqueeze(b, {1});
  Value y = ir::matmul(a, b);
  if (row) y = squeeze(y, {-2});
  if (column) y = squeeze(y, {-1});
  return y;
}

Results matmul(Call& call) {
  const Value a = call.tensor("self");
  return {product(a, call.tensor("other"))};
}
Results mm(Call& call) {
  const Value a = call.tensor("self");
  return {product(a, call.tensor("mat2"))};
}
Results mv(Call& call) {
  const Value a = call.tensor("self");
  return {product(a, call.tensor("vec"))};
}
Results dot(Call& call) {
  const Value a = call.tensor("self");
  return {product(a, call.tensor("tensor"))};
}
Results outer(Call& call) {
  const Value a = call.tensor("self");
  return {unsqueeze(a, {1}) * unsqueeze(call.tensor("vec2"), {0})};
}
Results inner(Call& call) {
  const Value a = call.tensor("self"), b = call.tensor("other");
  if (a.rank() == 0 || b.rank() == 0) return {a * b};
  if (b.rank() > 2) fail(ErrorKind::kUnsupported, "inner of a tensor of more than two axes");
  return {product(a, b.rank() == 2 ? transpose(b, {1, 0}) : b)};
}

bool is_number(const Number& number, double value) {
  if (const auto* real = std::get_if<double>(&number)) return *real == value;
  const auto* dim = std::get_if<Dim>(&number);
  return dim != nullptr && dim->is_static() && static_cast<double>(dim->value()) == value;
}

Value scaled(Value x, const Number& factor) {
  return is_number(factor, 1) ? x : x * number_value(x.graph(), factor, x.dtype());
}

/// beta * self + alpha * y; where beta is 0, self is not looked at.
Value added(Call& call, Value self, Value y) {
  const Number beta = call.number("beta", Dim(1));
  y = scaled(y, call.number("alpha", Dim(1)));
  if (is_number(beta, 0)) return expanded(y, broadcast_shape(self.shape(), y.shape()));
  return scaled(self, beta) + y;
}

Results addmm(Call& call) {
  const Value self = call.tensor("self"), a = call.tensor("mat1");
  return {added(call, self, product(a, call.tensor("mat2")))};
}
Results addmv(Call& call) {
  const Value self = call.tensor("self"), a = call.tensor("mat");
  return {added(call, self, product(a, call.tensor("vec")))};
}
Results baddbmm(Call& call) {
  const Value self = call.tensor("self"), a = call.tensor("batch1");
  return {added(call, self, product(a, call.tensor("batch2")))};
}
Results addbmm(Call& call) {
  const Value self = call.tensor("self"), a = call.tensor("batch1");
  const Value y = product(a, call.tensor("batch2"));
  return {added(call, self, reduce(ReduceKind::kSum, y, {0}, false))};
}

Results linear(Call& call) {
  const Value x = call.tensor("input"), weight = call.tensor("weight");
  const Value bias = call.optional_tensor("bias");
  const bool plain = weight.rank() == 2 && (!bias || bias.rank() == 1);
  if (plain)
    return {
        add_node(call.graph(), ir::Linear(), {with_features(x, weight.shape()[1]), weight, bias})};
  const Value y = product(x, weight.rank() == 2 ? transpose(weight, {1, 0}) : weight);
  return {bias ? y + bias : y};
}

Results bilinear(Call& call) {
  const Value x = call.tensor("input1"), y = call.tensor("input2"), weight = call.tensor("weight");
  const Value bias = call.optional_tensor("bias");
  // [..., 1, 1, i] x [o, i, j] -> [..., o, 1, j], then with y's [..., 1, j, 1].
  const Value left = ir::matmul(unsqueeze(x, {-2, -3}), weight);
  const Value out = squeeze(ir::matmul(left, unsqueeze(y, {-1, -3})), {-1, -2});
  return {bias ? out + bias : out};
}

// ---- einsum: "bhd,bkd->bhk"

/// One operand, with a letter for each of its axes.
struct Term {
  Value value;
  std::string letters;
};

int64_t axis_named(const Term& term, char letter) {
  return static_cast<int64_t>(term.letters.find(letter));
}

/// A letter that stands twice is a diagonal.
Term without_repeats(Term term) {
  for (size_t i = 0; i < term.letters.size(); ++i) {
    const size_t again = term.letters.find(term.letters[i], i + 1);
    if (again == std::string::npos) continue;
    fail(ErrorKind::kUnsupported, "einsum over a diagonal");
  }
  return term;
}

Term summed(Term term, const std::string& keep) {
  std::vector<int64_t> axes;
  std::string letters;
  for (size_t i = 0; i < term.letters.size(); ++i) {
    if (keep.find(term.letters[i]) == std::string::npos) {
      axes.push_back(static_cast<int64_t>(i));
    } else {
      letters += term.letters[i];
    }
  }
  if (axes.empty()) return term;
  return {reduce(ReduceKind::kSum, term.value, axes, false), letters};
}

/// Axes in the order of `letters`, which are all of the term's.
Value ordered(const Term& term, const std::string& letters) {
  std::vector<int64_t> perm;
  for (const char letter : letters) perm.push_back(axis_named(term, letter));
  return std::ranges::is_sorted(perm) ? term.value : transpose(term.value, perm);
}

Dim size_of(const Term& term, const std::string& letters) {
  Dim size = 1;
  for (const char letter : letters) size = size * term.value.shape()[axis_named(term, letter)];
  return size;
}

/// The product of two, summed over what neither the result nor another operand needs: a product of
/// matrices [shared, left, summed] x [shared, summed, right].
Term contracted(const Term& a, const Term& b, const std::string& keep) {
  std::string shared, summed_letters, left, right;
  for (const char letter : a.letters) {
    const bool in_b = b.letters.find(letter) != std::string::npos;
    const bool kept = keep.find(letter) != std::string::npos;
    (!in_b ? left : kept ? shared : summed_letters) += letter;
  }
  for (const char letter : b.letters) {
    if (a.letters.find(letter) == std::string::npos) right += letter;
  }
  Shape lead, out;
  for (const char letter : shared) lead.dims.push_back(a.value.shape()[axis_named(a, letter)]);
  out = lead;
  for (const char letter : left) out.dims.push_back(a.value.shape()[axis_named(a, letter)]);
  for (const char letter : right) out.dims.push_back(b.value.shape()[axis_named(b, letter)]);
  Shape left_shape = lead, right_shape = lead;
  const Dim inner = size_of(a, summed_letters);
  for (const Dim& d : {size_of(a, left), inner}) left_shape.dims.push_back(d);
  for (const Dim& d : {inner, size_of(b, right)}) right_shape.dims.push_back(d);
  const Value x = reshape(ordered(a, shared + left + summed_letters), left_shape);
  const Value y = reshape(ordered(b, shared + summed_letters + right), right_shape);
  return {reshape(ir::matmul(x, y), out), shared + left + right};
}

/// Letters of one operand; an ellipsis takes capital letters from the end of a list of its own.
std::string letters_of(Call& call, std::string_view text, int64_t rank, size_t& most_dots) {
  std::string letters;
  const size_t dots = text.find("...");
  const int64_t named = static_cast<int64_t>(text.size()) - (dots == text.npos ? 0 : 3);
  if (named > rank || (dots == text.npos && named != rank))
    call.corrupt("'{}' does not name {} axes", text, rank);
  const auto hidden = static_cast<size_t>(rank - named);
  if (hidden > 9) fail(ErrorKind::kUnsupported, "einsum with more than 9 axes behind dots");
  for (size_t i = 0; i < text.size(); ++i) {
    if (i != dots) {
      letters += text[i];
      continue;
    }
    for (size_t k = hidden; k > 0; --k) letters += static_cast<char>('0' + k);
    i += 2;
  }
  most_dots = std::max(most_dots, hidden);
  return letters;
}

struct Equation {
  std::vector<std::string> operands;
  std::optional<std::string> result;
};

Equation parse_equation(Call& call, std::string text) {
  std::erase(text, ' ');
  Equation out;
  const size_t arrow = text.find("->");
  if (arrow != text.npos) out.result = text.substr(arrow + 2);
  std::string_view left = std::string_view(text).substr(0, arrow);
  for (;;) {
    const size_t comma = left.find(',');
    out.operands.emplace_back(left.substr(0, comma));
    if (comma == left.npos) break;
    left.remove_prefix(comma + 1);
  }
  for (const char c : text) {
    const bool known = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       std::string_view(",.->").find(c) != std::string_view::npos;
    if (!known) call.corrupt("the equation '{}'", text);
  }
  return out;
}

/// Without an arrow: the dots, then what stands once, in alphabetical order.
std::string result_letters(const Equation& equation, const std::vector<Term>& terms,
                           size_t num_dots) {
  std::string dots;
  for (size_t k = num_dots; k > 0; --k) dots += static_cast<char>('0' + k);
  if (equation.result) {
    std::string out = *equation.result;
    const size_t at = out.find("...");
    return at == std::string::npos ? out : out.replace(at, 3, dots);
  }
  std::map<char, int> counts;
  for (const Term& term : terms) {
    for (const char letter : term.letters) ++counts[letter];
  }
  std::string out = dots;
  for (const auto& [letter, count] : counts) {
    if (count == 1 && dots.find(letter) == std::string::npos) out += letter;
  }
  return out;
}

Results einsum(Call& call) {
  const Equation equation = parse_equation(call, call.text("equation", ""));
  const std::vector<Value> tensors = call.tensors("tensors");
  call.ignore({"path"});
  if (tensors.size() != equation.operands.size() || tensors.empty())
    call.corrupt("{} operands for {} in the equation", tensors.size(), equation.operands.size());
  std::vector<Term> terms;
  size_t num_dots = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    std::string letters = letters_of(call, equation.operands[i], tensors[i].rank(), num_dots);
    terms.push_back(without_repeats({tensors[i], std::move(letters)}));
  }
  const std::string result = result_letters(equation, terms, num_dots);
  Term out = terms[0];
  for (size_t i = 1; i <= terms.size(); ++i) {
    std::string keep = result;
    for (size_t k = i; k < terms.size(); ++k) keep += terms[k].letters;
    out = summed(out, keep);
    if (i == terms.size()) break;
    std::string later = result;
    for (size_t k = i + 1; k < terms.size(); ++k) later += terms[k].letters;
    out = contracted(out, summed(terms[i], later + out.letters), later);
  }
  for (const char letter : result) {
    if (out.letters.find(letter) == std::string::npos)
      call.corrupt("the result's '{}' is in no operand", letter);
  }
  return {ordered(out, result)};
}

/// The inner product over the last axes of one and the first of the other.
Results tensordot(Call& call) {
  const Value a = call.tensor("self"), b = call.tensor("other");
  const std::vector<int64_t> from = axes_of(call, call.integers("dims_self"), a.rank());
  const std::vector<int64_t> to = axes_of(call, call.integers("dims_other"), b.rank());
  if (from.size() != to.size()) call.corrupt("{} axes meet {}", from.size(), to.size());
  Term left{a, ""}, right{b, ""};
  for (int64_t i = 0; i < a.rank(); ++i) left.letters += static_cast<char>('a' + i);
  for (int64_t i = 0; i < b.rank(); ++i) right.letters += static_cast<char>('A' + i);
  for (size_t i = 0; i < from.size(); ++i) {
    right.letters[static_cast<size_t>(to[i])] = left.letters[static_cast<size_t>(from[i])];
  }
  std::string keep;
  for (const char letter : left.letters + right.letters) {
    const std::string& other =
        std::isupper(static_cast<unsigned char>(letter)) != 0 ? left.letters : right.letters;
    if (other.find(letter) == std::string::npos) keep += letter;
  }
  const Term out = contracted(left, right, keep);
  return {ordered(out, keep)};
}

// ---- distances

/// sqrt of the sum of squares of differences between all rows of the two.
Results cdist(Call& call) {
  const Value a = call.tensor("x1"), b = call.tensor("x2");
  if (call.real("p", 2) != 2) fail(ErrorKind::kUnsupported, "distances of another order than 2");
  call.ignore({"compute_mode"});
  const Value difference = unsqueeze(a, {-2}) - unsqueeze(b, {-3});
  return {
      unary(ir::UnaryKind::kSqrt, reduce(ReduceKind::kSum, difference * difference, {-1}, false))};
}

/// Lengths below eps count as eps. Source: PyTorch's cosine_similarity.
Results cosine_similarity(Call& call) {
  const Value a = call.tensor("x1"), b = call.tensor("x2");
  const int64_t dim = call.integer("dim", 1);
  const double eps = call.real("eps", 1e-8);
  const Shape shape = broadcast_shape(a.shape(), b.shape());
  const int64_t axis = axis_of(call, dim, shape.rank());
  const auto unit = [&](Value x) {
    const Value wide = expanded(x, shape);
    const Value length =
        unary(ir::UnaryKind::kSqrt, reduce(ReduceKind::kSum, wide * wide, {axis}, true));
    return wide / binary(ir::BinaryKind::kMax, length, scalar(x.graph(), x.dtype(), eps));
  };
  return {reduce(ReduceKind::kSum, unit(a) * unit(b), {axis}, false)};
}

constexpr std::array kRows = std::to_array<Row>({
    {"aten.matmul.default", matmul},
    {"aten.mm.default", mm},
    {"aten.bmm.default", mm},
    {"aten.mv.default", mv},
    {"aten.dot.default", dot},
    {"aten.vdot.default", dot},
    {"aten.outer.default", outer},
    {"aten.inner.default", inner},
    {"aten.addmm.default", addmm},
    {"aten.addmv.default", addmv},
    {"aten.baddbmm.default", baddbmm},
    {"aten.addbmm.default", addbmm},
    {"aten.linear.default", linear},
    {"aten.bilinear.default", bilinear},
    {"aten.einsum.default", einsum},
    {"aten.tensordot.default", tensordot},
    {"aten.cdist.default", cdist},
    {"aten._cdist_forward.default", cdist},
    {"aten.cosine_similarity.default", cosine_similarity},
});

}  // namespace

std::span<const Row> matrix_rows() { return kRows; }

}  // namespace tranship::pt2
