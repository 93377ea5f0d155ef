// The size of an axis: an integer, or an expression over named symbols ("batch", "past +
// sequence"), always in canonical form, so that equal expressions are equal values.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tranship::ir {

struct Polynomial;

/// Immutable: a polynomial over symbols and functions (floor_div, mod, min, max of what is not
/// constant). Errors of arithmetic: invalid_argument for numbers over 63 bits or long expressions.
class Dim {
 public:
  Dim(int64_t value = 0) : constant_(value) {}  // implicit: sizes are written as numbers
  static Dim symbol(std::string_view name);
  /// Reads what text() writes. Errors: invalid_argument with the column.
  static Dim parse(std::string_view text);

  bool is_static() const { return polynomial_ == nullptr; }
  /// Errors: internal if symbolic.
  int64_t value() const;
  /// "128", "batch", "past + 1", "2*batch*sequence", "floor_div(height, 16)".
  std::string text() const;

  /// Of many at once, in less time than one after the other. Of none: 0 and 1.
  static Dim sum_of(const std::vector<Dim>& all);
  static Dim product_of(const std::vector<Dim>& all);

  /// Errors: invalid_argument for a symbol without a value, or a division by zero.
  int64_t evaluate(const std::map<std::string, int64_t>& symbols) const;
  Dim substitute(const std::map<std::string, Dim>& symbols) const;
  std::set<std::string> symbols() const;
  /// The name, if this is a symbol and nothing more.
  std::optional<std::string> as_symbol() const;

  /// The sum, taken apart: a value is the sum of coefficient * product(factors); a factor is a
  /// symbol or a function.
  struct Factor {
    enum class Kind { kSymbol, kFloorDiv, kMod, kMin, kMax };
    Kind kind = Kind::kSymbol;
    std::string symbol;          // kSymbol
    std::vector<Dim> arguments;  // the others: two
    std::string text;            // canonical; what factors are ordered by
  };
  struct Term {
    int64_t coefficient = 0;
    std::vector<Factor> factors;  // none: the constant
  };
  std::vector<Term> terms() const;

  friend bool operator==(const Dim& a, const Dim& b);
  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  friend Dim floor_div(const Dim& a, const Dim& b);
  friend Dim mod(const Dim& a, const Dim& b);
  friend Dim min(const Dim& a, const Dim& b);
  friend Dim max(const Dim& a, const Dim& b);

 private:
  static Dim of(std::vector<Term> terms);
  static Dim ordered(std::vector<Term> terms);
  static Dim function(Factor::Kind kind, const Dim& a, const Dim& b);
  int64_t constant_ = 0;
  std::shared_ptr<const Polynomial> polynomial_;  // null: constant_ is the value
};

/// ceil(a / b).
Dim ceil_div(const Dim& a, const Dim& b);

/// The axes of a tensor. Empty: a scalar.
struct Shape {
  std::vector<Dim> dims;

  Shape() = default;
  Shape(std::initializer_list<Dim> list) : dims(list) {}
  explicit Shape(std::vector<Dim> list) : dims(std::move(list)) {}
  static Shape of(const std::vector<int64_t>& sizes);

  int64_t rank() const { return static_cast<int64_t>(dims.size()); }
  /// Axis i; negative counts from the end. Errors: internal outside the rank.
  const Dim& operator[](int64_t i) const;
  Dim& operator[](int64_t i);
  const Dim& back() const { return (*this)[-1]; }
  bool is_static() const;
  /// Errors: internal if symbolic.
  std::vector<int64_t> sizes() const;
  Dim num_elements() const;
  std::string text() const;  // "[batch, 4]"
  friend bool operator==(const Shape& a, const Shape& b) = default;
};

/// What a symbol may be, both ends included.
struct Range {
  int64_t min = 1;
  std::optional<int64_t> max;
  friend bool operator==(const Range&, const Range&) = default;
};

}  // namespace tranship::ir
