#include "formats/pt2/expression.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing.h"

namespace tranship::pt2 {
namespace {

struct Case {
  std::string text;
  std::string expected;  // empty: nothing that a Dim can say
};

TEST(Expression, what_sympy_writes_becomes_a_size) {
  const std::string s = "Symbol('s0', positive=True, integer=True)",
                    u = "Symbol('u0', integer=True)";
  const std::vector<Case> cases = {
      {"Integer(3)", "3"},
      {"Integer(-3)", "-3"},
      {s, "s0"},
      {"s77", "s77"},
      {"Mul(Integer(2), " + s + ")", "2*s0"},
      {"Add(" + u + ", Integer(-1), " + s + ")", "s0 + u0 - 1"},
      {"Pow(" + s + ", Integer(2))", "s0*s0"},
      {"Mul(Rational(1, 2), Mul(Integer(4), " + s + "))", "2*s0"},
      {"FloorDiv(" + s + ", Integer(2))", "floor_div(s0, 2)"},
      {"CeilDiv(" + s + ", Integer(2))", "floor_div(s0 + 1, 2)"},
      {"CleanDiv(Mul(Integer(6), " + s + "), Integer(3))", "2*s0"},
      {"Mod(" + s + ", Integer(4))", "mod(s0, 4)"},
      {"PythonMod(" + s + ", Integer(4))", "mod(s0, 4)"},
      {"ModularIndexing(" + s + ", Integer(2), Integer(3))", "mod(floor_div(s0, 2), 3)"},
      {"Max(Integer(1), " + s + ", " + u + ")", "max(max(1, s0), u0)"},
      {"Min(" + s + ", Integer(8))", "min(8, s0)"},
      {"FloorToInt(IntTrueDiv(" + s + ", Integer(2)))", "floor_div(s0, 2)"},
      {"CeilToInt(IntTrueDiv(" + s + ", Integer(2)))", "floor_div(s0 + 1, 2)"},
      {"TruncToInt(Mul(Float('1.5', precision=53), ToFloat(" + s + ")))",
       "floor_div(98304*s0, 65536)"},
      {"LShift(" + s + ", Integer(3))", "8*s0"},
      {"RShift(" + s + ", Integer(1))", "floor_div(s0, 2)"},
      {"Identity(" + s + ")", "s0"},
      {"IntTrueDiv(" + s + ", Integer(2))", ""},
      {"RoundToInt(" + s + ")", ""},
      {"Where(true, " + s + ", Integer(1))", ""},
      {"Float('0.1', precision=53)", ""},
      {"Pow(Integer(2), " + s + ")", ""},
      {"FloorDiv(" + s + ", Integer(0))", ""}};
  for (const Case& c : cases) {
    const auto found = read_expression(c.text);
    EXPECT_EQ(found ? found->text() : "", c.expected) << c.text;
  }
}

TEST(Expression, what_is_no_expression_is_corrupt) {
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += "Identity(";
  for (const std::string& text :
       {std::string(), std::string("("), std::string("Mul(Integer(2)"), std::string("Integer(2))"),
        std::string("Integer(99999999999999999999)"), std::string("Integer(x)"),
        std::string("Integer(9223372036854775807)*2"), std::string("__import__('os')"),
        std::string("Symbol('')"), std::string("Symbol('a b')"), std::string("Symbol('1a')"),
        std::string("Symbol(s0)"), std::string("Rational(1, 0)"),
        std::string("FloorDiv(Integer(1))"), std::string("Float('x')"),
        std::string("Mul(Integer(9223372036854775807), Integer(9))"), deep}) {
    EXPECT_EQ(error_of([&] { read_expression(text); }).kind(), ErrorKind::kCorrupt) << text;
  }
}

}  // namespace
}  // namespace tranship::pt2
