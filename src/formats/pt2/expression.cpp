#include "formats/pt2/expression.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"

namespace tranship::pt2 {
namespace {

using ir::Dim;

constexpr int kMaxDepth = 64;
constexpr int64_t kMaxPower = 16;

/// A rational number of sizes: sums and products of integers stay exact until something rounds.
struct Ratio {
  Dim numerator = 0;
  Dim denominator = 1;
};
using Result = std::optional<Ratio>;

/// An integer, if it is one.
std::optional<Dim> whole(const Result& r) {
  if (!r) return std::nullopt;
  if (r->denominator == Dim(1)) return r->numerator;
  const Dim quotient = floor_div(r->numerator, r->denominator);
  if (quotient * r->denominator == r->numerator) return quotient;
  return std::nullopt;
}

Ratio sum(const Ratio& a, const Ratio& b) {
  if (a.denominator == b.denominator) return {a.numerator + b.numerator, a.denominator};
  return {a.numerator * b.denominator + b.numerator * a.denominator, a.denominator * b.denominator};
}
Ratio product(const Ratio& a, const Ratio& b) {
  return {a.numerator * b.numerator, a.denominator * b.denominator};
}

enum class Word {
  kSum,
  kProduct,
  kPower,
  kMax,
  kMin,
  kFloorDiv,  // floor(a / b)
  kCeilDiv,
  kMod,
  kModularIndexing,
  kQuotient,  // a / b
  kShiftLeft,
  kShiftRight,
  kFloor,
  kCeil,
  kSame,   // of one argument
  kOther,  // well known, but not a size
};

struct WordRow {
  std::string_view text;
  Word word;
};
constexpr std::array<WordRow, 45> kWords = {{{"Add", Word::kSum},
                                             {"Mul", Word::kProduct},
                                             {"Pow", Word::kPower},
                                             {"PowByNatural", Word::kPower},
                                             {"FloatPow", Word::kPower},
                                             {"Max", Word::kMax},
                                             {"Min", Word::kMin},
                                             {"FloorDiv", Word::kFloorDiv},
                                             {"CleanDiv", Word::kFloorDiv},
                                             {"CeilDiv", Word::kCeilDiv},
                                             {"Mod", Word::kMod},
                                             {"PythonMod", Word::kMod},
                                             {"ModularIndexing", Word::kModularIndexing},
                                             {"IntTrueDiv", Word::kQuotient},
                                             {"FloatTrueDiv", Word::kQuotient},
                                             {"LShift", Word::kShiftLeft},
                                             {"RShift", Word::kShiftRight},
                                             {"FloorToInt", Word::kFloor},
                                             {"TruncToInt", Word::kFloor},
                                             {"floor", Word::kFloor},
                                             {"CeilToInt", Word::kCeil},
                                             {"ceiling", Word::kCeil},
                                             {"Identity", Word::kSame},
                                             {"ToFloat", Word::kSame},
                                             {"TruncToFloat", Word::kOther},
                                             {"RoundToInt", Word::kOther},
                                             {"RoundDecimal", Word::kOther},
                                             {"Where", Word::kOther},
                                             {"Piecewise", Word::kOther},
                                             {"ExprCondPair", Word::kOther},
                                             {"Equality", Word::kOther},
                                             {"Unequality", Word::kOther},
                                             {"StrictGreaterThan", Word::kOther},
                                             {"GreaterThan", Word::kOther},
                                             {"StrictLessThan", Word::kOther},
                                             {"LessThan", Word::kOther},
                                             {"And", Word::kOther},
                                             {"Or", Word::kOther},
                                             {"Not", Word::kOther},
                                             {"IsNonOverlappingAndDenseIndicator", Word::kOther},
                                             {"OpaqueUnaryFn_sqrt", Word::kOther},
                                             {"OpaqueUnaryFn_log2", Word::kOther},
                                             {"BitwiseFn_bitwise_and", Word::kOther},
                                             {"BitwiseFn_bitwise_or", Word::kOther},
                                             {"Abs", Word::kOther}}};

Result power(const Result& base, const Result& exponent) {
  const std::optional<Dim> n = whole(exponent);
  if (!base || !n || !n->is_static() || std::abs(n->value()) > kMaxPower) return std::nullopt;
  Ratio out{1, 1};
  for (int64_t i = 0; i < std::abs(n->value()); ++i) out = product(out, *base);
  return n->value() < 0 ? Ratio{out.denominator, out.numerator} : out;
}

Result divided(const Result& a, const Result& b) {
  if (!a || !b || b->numerator == Dim(0)) return std::nullopt;
  return product(*a, {b->denominator, b->numerator});
}

/// Sizes are not negative, so that truncating is rounding down.
Result rounded(Word word, const Result& r) {
  if (!r || r->denominator == Dim(0)) return std::nullopt;
  return Ratio{word == Word::kCeil ? ceil_div(r->numerator, r->denominator)
                                   : floor_div(r->numerator, r->denominator),
               1};
}

Result shifted(Word word, const Result& value, const Result& count) {
  const std::optional<Dim> a = whole(value), n = whole(count);
  if (!a || !n || !n->is_static() || n->value() < 0 || n->value() > 62) return std::nullopt;
  const Dim factor(int64_t{1} << n->value());
  return Ratio{word == Word::kShiftLeft ? *a * factor : floor_div(*a, factor), 1};
}

Result fold(Word word, const std::vector<Result>& arguments) {
  Result out = arguments[0];
  for (size_t i = 1; i < arguments.size() && out; ++i) {
    if (!arguments[i]) return std::nullopt;
    if (word == Word::kSum) {
      out = sum(*out, *arguments[i]);
    } else if (word == Word::kProduct) {
      out = product(*out, *arguments[i]);
    } else {
      const std::optional<Dim> a = whole(out), b = whole(arguments[i]);
      if (!a || !b) return std::nullopt;
      out = Ratio{word == Word::kMax ? max(*a, *b) : min(*a, *b), 1};
    }
  }
  return out;
}

Result modulo(const Result& left, const Result& right) {
  const std::optional<Dim> a = whole(left), b = whole(right);
  if (!a || !b || *b == Dim(0)) return std::nullopt;
  return Ratio{mod(*a, *b), 1};
}

size_t arity(Word word) {
  if (word == Word::kModularIndexing) return 3;
  return word == Word::kFloor || word == Word::kCeil || word == Word::kSame ? 1 : 2;
}

Result evaluate(Word word, const std::vector<Result>& arguments) {
  switch (word) {
    case Word::kSum:
    case Word::kProduct:
    case Word::kMax:
    case Word::kMin:
      return fold(word, arguments);
    case Word::kPower:
      return power(arguments[0], arguments[1]);
    case Word::kFloorDiv:
      return rounded(Word::kFloor, divided(arguments[0], arguments[1]));
    case Word::kCeilDiv:
      return rounded(Word::kCeil, divided(arguments[0], arguments[1]));
    case Word::kMod:
      return modulo(arguments[0], arguments[1]);
    case Word::kModularIndexing:
      return modulo(rounded(Word::kFloor, divided(arguments[0], arguments[1])), arguments[2]);
    case Word::kQuotient:
      return divided(arguments[0], arguments[1]);
    case Word::kShiftLeft:
    case Word::kShiftRight:
      return shifted(word, arguments[0], arguments[1]);
    case Word::kFloor:
    case Word::kCeil:
      return rounded(word, arguments[0]);
    case Word::kSame:
      return arguments[0];
    case Word::kOther:
      return std::nullopt;
  }
  __builtin_unreachable();
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result all() {
    Result r = expression();
    if (at_ != text_.size()) error("the end");
    return r;
  }

 private:
  [[noreturn]] void error(std::string_view expected) const {
    fail(ErrorKind::kCorrupt, "[pt2] the size '{}', column {}: expected {}", text_.substr(0, 200),
         at_ + 1, expected);
  }
  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool accept(char c) {
    skip_spaces();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    skip_spaces();
    return true;
  }
  void expect(char c) {
    if (!accept(c)) error(std::string("'") + c + "'");
  }
  std::string_view word() {
    skip_spaces();
    const size_t begin = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_'))
      ++at_;
    if (begin == at_) error("a word");
    return text_.substr(begin, at_ - begin);
  }

  Result expression() {
    if (++depth_ > kMaxDepth) error("less nesting");
    const std::string_view head = word();
    Result out;
    if (head == "true" || head == "false") {
      out = std::nullopt;
    } else if (at_ == text_.size() || text_[at_] != '(') {  // a bare symbol is sympified as well
      out = Ratio{Dim::symbol(head), 1};
    } else {
      expect('(');
      out = call(head);
      expect(')');
    }
    --depth_;
    return out;
  }

  Result call(std::string_view head) {
    if (head == "Symbol") return symbol();
    if (head == "Integer") return Ratio{integer(), 1};
    if (head == "Float") return real();
    if (head == "Rational") {
      const Dim numerator = integer();
      expect(',');
      const Dim denominator = integer();
      if (denominator == Dim(0)) error("a denominator");
      return Ratio{numerator, denominator};
    }
    const auto* const row = std::ranges::find(kWords, head, &WordRow::text);
    if (row == kWords.end()) error("a function of sizes before '" + std::string(head) + "'");
    std::vector<Result> arguments = {expression()};
    while (accept(',')) arguments.push_back(expression());
    const bool any_number = row->word == Word::kSum || row->word == Word::kProduct ||
                            row->word == Word::kMax || row->word == Word::kMin ||
                            row->word == Word::kOther;
    if (!any_number && arguments.size() != arity(row->word)) error("another number of arguments");
    return evaluate(row->word, arguments);
  }

  std::string_view quoted() {
    expect('\'');
    const size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != '\'') ++at_;
    const std::string_view inside = text_.substr(begin, at_ - begin);
    expect('\'');
    return inside;
  }

  /// 's0', positive=True, integer=True
  Result symbol() {
    const std::string_view name = quoted();
    const bool plain =
        !name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0 &&
        std::ranges::all_of(name, [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
    if (!plain || name.size() > 100) error("a symbol's name");
    skip_keywords();
    return Ratio{Dim::symbol(name), 1};
  }
  void skip_keywords() {
    while (accept(',')) {
      word();
      expect('=');
      word();
    }
  }

  Dim integer() {
    const bool negative = accept('-');
    const std::string_view digits = word();
    int64_t value = 0;
    const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (status != std::errc() || end != digits.data() + digits.size())
      error("an integer of at most 63 bits");
    return negative ? -value : value;
  }

  /// '0.5', precision=53: exact if it is a fraction of a small power of two.
  Result real() {
    const std::string number(quoted());
    skip_keywords();
    char* end = nullptr;
    const double value = std::strtod(number.c_str(), &end);
    if (number.empty() || *end != '\0') error("a number");
    constexpr int64_t kDenominator = 1 << 16;
    const double scaled = value * kDenominator;
    if (!(std::abs(scaled) < 1e15) || scaled != std::floor(scaled)) return std::nullopt;
    const auto numerator = static_cast<int64_t>(scaled);
    if (numerator % kDenominator == 0) return Ratio{numerator / kDenominator, 1};
    return Ratio{numerator, kDenominator};
  }

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::optional<Dim> read_expression(std::string_view text) {
  try {
    return whole(Parser(text).all());
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kCorrupt) throw;
    fail(ErrorKind::kCorrupt, "[pt2] the size '{}': {}", text.substr(0, 200), error.what());
  }
}

}  // namespace tranship::pt2
