#include "ir/dim.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <limits>

#include "base/error.h"

namespace tranship::ir {

// Terms in canonical order: by their factors' text, the constant last; no zero coefficient, no two
// alike.
struct Polynomial {
  std::vector<Dim::Term> terms;
  std::string text;
};

namespace {

using Factor = Dim::Factor;
using Term = Dim::Term;

// What no size of a model comes near: they keep a hostile expression from taking all memory.
constexpr size_t kMaxTerms = 1000;
constexpr size_t kMaxTextBytes = 10'000;

[[noreturn]] void fail_too_large() {
  fail(ErrorKind::kInvalidArgument,
       "[dim] a size does not fit: expected numbers of at most 63 bits, and expressions of at most "
       "{} terms and {} characters",
       kMaxTerms, kMaxTextBytes);
}

// The lowest number has no text that reads back: its size takes 64 bits.
constexpr int64_t kTooLow = std::numeric_limits<int64_t>::min();

int64_t checked_sum(int64_t a, int64_t b) {
  int64_t sum;
  if (__builtin_add_overflow(a, b, &sum) || sum == kTooLow) fail_too_large();
  return sum;
}

int64_t checked_product(int64_t a, int64_t b) {
  int64_t product;
  if (__builtin_mul_overflow(a, b, &product) || product == kTooLow) fail_too_large();
  return product;
}

std::string key_of(const std::vector<Factor>& factors) {
  std::string key;
  for (const Factor& f : factors) key += (key.empty() ? "" : "*") + f.text;
  return key;
}

std::string text_of(const std::vector<Term>& terms) {
  std::string text;
  for (const Term& t : terms) {
    const int64_t size = t.coefficient < 0 ? -t.coefficient : t.coefficient;
    if (text.empty()) {
      if (t.coefficient < 0) text += "-";
    } else {
      text += t.coefficient < 0 ? " - " : " + ";
    }
    const std::string key = key_of(t.factors);
    if (key.empty()) {
      text += std::to_string(size);
    } else {
      text += size == 1 ? key : std::to_string(size) + "*" + key;
    }
  }
  return text;
}

int64_t floor_div_int(int64_t a, int64_t b) {
  if (b == 0) fail(ErrorKind::kInvalidArgument, "[dim] a size is divided by zero");
  if (b == -1) return checked_product(a, b);
  const int64_t q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}

int64_t apply(Factor::Kind kind, int64_t a, int64_t b) {
  switch (kind) {
    case Factor::Kind::kFloorDiv:
      return floor_div_int(a, b);
    case Factor::Kind::kMod:
      return b == -1 ? 0 : a - b * floor_div_int(a, b);
    case Factor::Kind::kMin:
      return std::min(a, b);
    case Factor::Kind::kMax:
      return std::max(a, b);
    case Factor::Kind::kSymbol:
      break;
  }
  check(false, "apply: a symbol is not a function");
  return 0;
}

std::string_view function_name(Factor::Kind kind) {
  switch (kind) {
    case Factor::Kind::kFloorDiv:
      return "floor_div";
    case Factor::Kind::kMod:
      return "mod";
    case Factor::Kind::kMin:
      return "min";
    case Factor::Kind::kMax:
      return "max";
    case Factor::Kind::kSymbol:
      break;
  }
  return "symbol";
}

}  // namespace

Dim Dim::of(std::vector<Term> terms) {
  for (Term& t : terms) std::ranges::sort(t.factors, {}, &Factor::text);
  if (terms.size() == 1) {
    if (terms[0].factors.empty() || terms[0].coefficient == 0) return Dim(terms[0].coefficient);
    return ordered(std::move(terms));
  }
  std::map<std::string, Term> by_key;
  for (Term& t : terms) {
    auto [it, added] = by_key.try_emplace(key_of(t.factors), t);
    if (!added) it->second.coefficient = checked_sum(it->second.coefficient, t.coefficient);
    if (it->second.coefficient == kTooLow) fail_too_large();
  }
  if (by_key.size() > kMaxTerms) fail_too_large();
  std::vector<Term> kept;
  int64_t constant = 0;
  for (auto& [key, term] : by_key) {
    if (key.empty()) constant = term.coefficient;
    if (!key.empty() && term.coefficient != 0) kept.push_back(std::move(term));
  }
  if (kept.empty()) return Dim(constant);
  if (constant != 0) kept.push_back({constant, {}});
  return ordered(std::move(kept));
}

/// Terms in canonical order, with factors.
Dim Dim::ordered(std::vector<Term> terms) {
  auto polynomial = std::make_shared<Polynomial>();
  polynomial->text = text_of(terms);
  polynomial->terms = std::move(terms);
  if (polynomial->text.size() > kMaxTextBytes) fail_too_large();
  Dim d;
  d.polynomial_ = std::move(polynomial);
  return d;
}

Dim Dim::symbol(std::string_view name) {
  Factor f;
  f.symbol = name;
  f.text = name;
  return of({{1, {f}}});
}

Dim Dim::function(Factor::Kind kind, const Dim& a, const Dim& b) {
  if (a.is_static() && b.is_static()) return Dim(apply(kind, a.value(), b.value()));
  Factor f;
  f.kind = kind;
  f.arguments = {a, b};
  const bool commutes = kind == Factor::Kind::kMin || kind == Factor::Kind::kMax;
  if (commutes && b.text() < a.text()) std::swap(f.arguments[0], f.arguments[1]);
  f.text =
      fmt::format("{}({}, {})", function_name(kind), f.arguments[0].text(), f.arguments[1].text());
  return of({{1, {f}}});
}

int64_t Dim::value() const {
  check(is_static(), "Dim::value: '" + (is_static() ? std::string() : text()) + "' is symbolic");
  return constant_;
}

std::string Dim::text() const {
  return is_static() ? std::to_string(constant_) : polynomial_->text;
}

std::vector<Dim::Term> Dim::terms() const {
  if (is_static()) return {{constant_, {}}};
  return polynomial_->terms;
}

std::optional<std::string> Dim::as_symbol() const {
  if (is_static() || polynomial_->terms.size() != 1) return std::nullopt;
  const Term& t = polynomial_->terms[0];
  if (t.coefficient != 1 || t.factors.size() != 1 || t.factors[0].kind != Factor::Kind::kSymbol)
    return std::nullopt;
  return t.factors[0].symbol;
}

int64_t Dim::evaluate(const std::map<std::string, int64_t>& symbols) const {
  std::map<std::string, Dim> dims;
  for (const auto& [name, size] : symbols) dims.emplace(name, size);
  const Dim d = substitute(dims);
  if (!d.is_static()) {
    const std::set<std::string> open = d.symbols();
    fail(ErrorKind::kInvalidArgument, "[dim] '{}' needs a value for {}", text(),
         listed({open.begin(), open.end()}));
  }
  return d.constant_;
}

Dim Dim::substitute(const std::map<std::string, Dim>& symbols) const {
  if (is_static()) return *this;
  Dim sum = 0;
  for (const Term& t : polynomial_->terms) {
    Dim product = t.coefficient;
    for (const Factor& f : t.factors) {
      if (f.kind == Factor::Kind::kSymbol) {
        const auto it = symbols.find(f.symbol);
        product = product * (it == symbols.end() ? symbol(f.symbol) : it->second);
        continue;
      }
      const Dim a = f.arguments[0].substitute(symbols);
      const Dim b = f.arguments[1].substitute(symbols);
      switch (f.kind) {
        case Factor::Kind::kFloorDiv:
          product = product * floor_div(a, b);
          break;
        case Factor::Kind::kMod:
          product = product * mod(a, b);
          break;
        case Factor::Kind::kMin:
          product = product * min(a, b);
          break;
        case Factor::Kind::kMax:
          product = product * max(a, b);
          break;
        case Factor::Kind::kSymbol:
          break;
      }
    }
    sum = sum + product;
  }
  return sum;
}

std::set<std::string> Dim::symbols() const {
  std::set<std::string> names;
  if (is_static()) return names;
  for (const Term& t : polynomial_->terms) {
    for (const Factor& f : t.factors) {
      if (f.kind == Factor::Kind::kSymbol) names.insert(f.symbol);
      for (const Dim& a : f.arguments) names.merge(a.symbols());
    }
  }
  return names;
}

bool operator==(const Dim& a, const Dim& b) {
  if (a.is_static() || b.is_static())
    return a.is_static() && b.is_static() && a.constant_ == b.constant_;
  return a.polynomial_ == b.polynomial_ || a.polynomial_->text == b.polynomial_->text;
}

Dim operator+(const Dim& a, const Dim& b) {
  if (a.is_static() && b.is_static()) return Dim(checked_sum(a.constant_, b.constant_));
  std::vector<Dim::Term> terms = a.terms();
  for (Dim::Term& t : b.terms()) terms.push_back(std::move(t));
  return Dim::of(std::move(terms));
}

Dim operator-(const Dim& a, const Dim& b) { return a + b * Dim(-1); }

Dim operator*(const Dim& a, const Dim& b) {
  if (a.is_static() && b.is_static()) return Dim(checked_product(a.constant_, b.constant_));
  if (a.is_static()) return b * a;
  if (b.is_static() && b.constant_ == 1) return a;
  const std::vector<Dim::Term>& left = a.polynomial_->terms;
  const std::vector<Dim::Term> right = b.terms();
  if (left.size() * right.size() > kMaxTerms) fail_too_large();
  std::vector<Dim::Term> terms;
  for (const Dim::Term& s : left) {
    for (const Dim::Term& t : right) {
      Dim::Term product{checked_product(s.coefficient, t.coefficient), s.factors};
      product.factors.insert(product.factors.end(), t.factors.begin(), t.factors.end());
      terms.push_back(std::move(product));
    }
  }
  return Dim::of(std::move(terms));
}

Dim Dim::sum_of(const std::vector<Dim>& all) {
  std::vector<Term> terms;
  for (const Dim& d : all) {
    for (Term& t : d.terms()) terms.push_back(std::move(t));
  }
  return of(std::move(terms));
}

Dim Dim::product_of(const std::vector<Dim>& all) {
  Term one{1, {}};
  std::vector<Dim> sums;
  for (const Dim& d : all) {
    if (d.is_static()) {
      one.coefficient = checked_product(one.coefficient, d.constant_);
      continue;
    }
    const std::vector<Term>& terms = d.polynomial_->terms;
    if (terms.size() > 1) {
      sums.push_back(d);
      continue;
    }
    one.coefficient = checked_product(one.coefficient, terms[0].coefficient);
    std::ranges::copy(terms[0].factors, std::back_inserter(one.factors));
  }
  Dim product = of({std::move(one)});
  for (const Dim& sum : sums) product = product * sum;
  return product;
}

namespace {

/// A dividend taken apart: a = quotient * b + rest.
struct Division {
  std::vector<Dim::Term> quotient, rest;
};

/// Takes out of each term what `divisor` divides; of a number, as much of it as floor_div gives.
Division divide(const std::vector<Dim::Term>& terms, const Dim::Term& divisor) {
  Division result;
  const int64_t by = divisor.coefficient;
  for (const Dim::Term& term : terms) {
    Dim::Term t = term;
    const int64_t quotient = floor_div_int(t.coefficient, by);
    const int64_t rest = by == -1 ? 0 : t.coefficient - quotient * by;
    const bool is_number = t.factors.empty() && divisor.factors.empty();
    bool exact = rest == 0 || is_number;
    for (const Dim::Factor& f : divisor.factors) {
      const auto it = std::find_if(t.factors.begin(), t.factors.end(),
                                   [&](const auto& g) { return g.text == f.text; });
      exact = exact && it != t.factors.end();
      if (!exact) break;
      t.factors.erase(it);
    }
    if (!exact) {
      result.rest.push_back(term);
      continue;
    }
    if (rest != 0) result.rest.push_back({rest, {}});
    t.coefficient = quotient;
    if (quotient != 0) result.quotient.push_back(std::move(t));
  }
  return result;
}

}  // namespace

Dim floor_div(const Dim& a, const Dim& b) {
  if (a == b && !a.is_static()) return 1;
  if (b.is_static() && b.constant_ == 1) return a;
  const std::vector<Dim::Term> divisor = b.terms();
  if (!a.is_static() && divisor.size() == 1 && divisor[0].coefficient != 0) {
    Division parts = divide(a.terms(), divisor[0]);
    const Dim quotient = Dim::of(std::move(parts.quotient));
    if (parts.rest.empty()) return quotient;
    if (!(quotient == Dim(0))) return quotient + floor_div(Dim::of(std::move(parts.rest)), b);
  }
  return Dim::function(Dim::Factor::Kind::kFloorDiv, a, b);
}

Dim mod(const Dim& a, const Dim& b) {
  if (a == b && !a.is_static()) return 0;
  const std::vector<Dim::Term> divisor = b.terms();
  if (!a.is_static() && divisor.size() == 1 && divisor[0].coefficient != 0) {
    Division parts = divide(a.terms(), divisor[0]);
    if (parts.rest.empty()) return 0;
    if (!parts.quotient.empty()) return mod(Dim::of(std::move(parts.rest)), b);
  }
  return Dim::function(Dim::Factor::Kind::kMod, a, b);
}
Dim min(const Dim& a, const Dim& b) {
  return a == b ? a : Dim::function(Dim::Factor::Kind::kMin, a, b);
}
Dim max(const Dim& a, const Dim& b) {
  return a == b ? a : Dim::function(Dim::Factor::Kind::kMax, a, b);
}
Dim ceil_div(const Dim& a, const Dim& b) { return floor_div(a + b - 1, b); }

namespace {

// sum = ["-"] product {("+" | "-") product}; product = factor {"*" factor};
// factor = number | name | function "(" sum "," sum ")" | "(" sum ")".
class DimParser {
 public:
  explicit DimParser(std::string_view text) : text_(text) {}

  Dim all() {
    const Dim d = sum();
    skip_spaces();
    if (at_ != text_.size()) error("the end");
    return d;
  }

 private:
  static constexpr int kMaxDepth = 64;

  [[noreturn]] void error(std::string_view expected) const {
    fail(ErrorKind::kInvalidArgument, "[dim] '{}', column {}: expected {}", text_, at_ + 1,
         expected);
  }
  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool accept(char c) {
    skip_spaces();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) error(std::string("'") + c + "'");
  }

  Dim sum() {
    if (++depth_ > kMaxDepth) error("less nesting");
    std::vector<Dim> terms = {accept('-') ? Dim(-1) * product() : product()};
    for (;;) {
      if (accept('+')) {
        terms.push_back(product());
      } else if (accept('-')) {
        terms.push_back(Dim(-1) * product());
      } else {
        --depth_;
        return terms.size() == 1 ? terms[0] : Dim::sum_of(terms);
      }
    }
  }

  Dim product() {
    std::vector<Dim> factors = {factor()};
    while (accept('*')) factors.push_back(factor());
    return factors.size() == 1 ? factors[0] : Dim::product_of(factors);
  }

  Dim factor() {
    if (accept('(')) {
      const Dim d = sum();
      expect(')');
      return d;
    }
    skip_spaces();
    const size_t begin = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_'))
      ++at_;
    const std::string_view word = text_.substr(begin, at_ - begin);
    if (word.empty()) error("a number or a name");
    if (std::isdigit(static_cast<unsigned char>(word[0])) != 0) return number(word);
    if (!accept('(')) return Dim::symbol(word);
    const Dim a = sum();
    expect(',');
    const Dim b = sum();
    expect(')');
    if (word == "floor_div") return floor_div(a, b);
    if (word == "mod") return mod(a, b);
    if (word == "min") return min(a, b);
    if (word == "max") return max(a, b);
    error("floor_div, mod, min or max before '('");
  }

  Dim number(std::string_view word) const {
    int64_t value = 0;
    for (const char c : word) {
      const bool fits = std::isdigit(static_cast<unsigned char>(c)) != 0 &&
                        !__builtin_mul_overflow(value, 10, &value) &&
                        !__builtin_add_overflow(value, c - '0', &value);
      if (!fits) error("a number of at most 63 bits");
    }
    return value;
  }

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Dim Dim::parse(std::string_view text) { return DimParser(text).all(); }

Shape Shape::of(const std::vector<int64_t>& sizes) {
  return Shape(std::vector<Dim>(sizes.begin(), sizes.end()));
}

const Dim& Shape::operator[](int64_t i) const { return const_cast<Shape&>(*this)[i]; }

Dim& Shape::operator[](int64_t i) {
  const int64_t at = i < 0 ? i + rank() : i;
  check(at >= 0 && at < rank(), fmt::format("axis {} of a shape of rank {}", i, rank()));
  return dims[static_cast<size_t>(at)];
}

bool Shape::is_static() const {
  return std::all_of(dims.begin(), dims.end(), [](const Dim& d) { return d.is_static(); });
}

std::vector<int64_t> Shape::sizes() const {
  std::vector<int64_t> sizes;
  for (const Dim& d : dims) sizes.push_back(d.value());
  return sizes;
}

Dim Shape::num_elements() const { return Dim::product_of(dims); }

std::string Shape::text() const {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) text += (i > 0 ? ", " : "") + dims[i].text();
  return text + "]";
}

}  // namespace tranship::ir
