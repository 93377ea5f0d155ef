#include "ir/dim.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tranship/error.h"

namespace tranship::ir {
namespace {

const Dim kBatch = Dim::symbol("batch");
const Dim kPast = Dim::symbol("past");
const Dim kSequence = Dim::symbol("sequence");

TEST(Dim, EqualExpressionsAreEqualHoweverTheyWereWritten) {
  EXPECT_EQ(kPast + kSequence, kSequence + kPast);
  EXPECT_EQ((kPast + 1) * 2, kPast * 2 + 2);
  EXPECT_EQ(kBatch * kSequence - kSequence * kBatch, Dim(0));
  EXPECT_EQ((kBatch + kPast) * (kBatch - kPast), kBatch * kBatch - kPast * kPast);
  EXPECT_FALSE(kPast == kSequence);
  EXPECT_FALSE(kPast == Dim(1));
}

TEST(Dim, TextIsCanonical) {
  EXPECT_EQ((1 + kPast).text(), "past + 1");
  EXPECT_EQ((kSequence * kBatch * 2).text(), "2*batch*sequence");
  EXPECT_EQ((kPast - kSequence - 3).text(), "past - sequence - 3");
  EXPECT_EQ(Dim(-4).text(), "-4");
  EXPECT_EQ(floor_div(kSequence, 16).text(), "floor_div(sequence, 16)");
  EXPECT_EQ(max(kSequence, kBatch), max(kBatch, kSequence));
}

TEST(Dim, DivisionThatComesOutEvenIsExact) {
  EXPECT_EQ(floor_div(kBatch * kSequence * 6, kBatch * 3), kSequence * 2);
  EXPECT_EQ(floor_div(kSequence * 4 + 8, 4), kSequence + 2);
  EXPECT_EQ(mod(kSequence * 4, 4), Dim(0));
  EXPECT_EQ(floor_div(kSequence, kSequence), Dim(1));
}

TEST(Dim, WhatDividesEvenlyLeavesADivision) {
  EXPECT_EQ(floor_div(kSequence - 16, 16) + 1, floor_div(kSequence, 16));
  EXPECT_EQ(floor_div(kSequence * 4 + kPast + 9, 4).text(),
            "floor_div(past + 1, 4) + sequence + 2");
  EXPECT_EQ(floor_div(kBatch * kSequence + kPast, kBatch), kSequence + floor_div(kPast, kBatch));
  EXPECT_EQ(mod(kSequence * 8 + kPast - 1, 8), mod(kPast + 7, 8));
  EXPECT_EQ(mod(kSequence + kPast, kSequence + kPast), Dim(0));
  for (const int64_t size : {0, 1, 3, 4, 7, 8, 9}) {  // as before, number by number
    const std::map<std::string, int64_t> sizes = {{"sequence", size}, {"past", 3 * size - 8}};
    for (const int64_t by : {-3, -1, 2, 4}) {
      const int64_t a = 2 * size + 5 * (3 * size - 8) - 7;
      const Dim dividend = kSequence * 2 + kPast * 5 - 7;
      const auto expected =
          static_cast<int64_t>(std::floor(static_cast<double>(a) / static_cast<double>(by)));
      EXPECT_EQ(floor_div(dividend, by).evaluate(sizes), expected) << a << " / " << by;
      EXPECT_EQ(mod(dividend, by).evaluate(sizes), a - by * expected) << a << " mod " << by;
    }
  }
}

TEST(Dim, EvaluatesWithPythonsRoundingDown) {
  EXPECT_EQ(floor_div(kSequence - 10, 4).evaluate({{"sequence", 3}}), -2);
  EXPECT_EQ(mod(kSequence - 10, 4).evaluate({{"sequence", 3}}), 1);
  EXPECT_EQ(ceil_div(kSequence, 4).evaluate({{"sequence", 9}}), 3);
  EXPECT_EQ(min(kSequence, kBatch).evaluate({{"sequence", 9}, {"batch", 2}}), 2);
  EXPECT_THROW(kSequence.evaluate({{"batch", 1}}), Error);
  EXPECT_THROW(floor_div(kSequence, kBatch).evaluate({{"sequence", 1}, {"batch", 0}}), Error);
}

TEST(Dim, SubstitutesIntoFunctions) {
  const Dim d = max(kPast + kSequence, kBatch);
  EXPECT_EQ(d.substitute({{"past", 3}, {"sequence", 1}}), max(Dim(4), kBatch));
  EXPECT_EQ(d.substitute({{"past", kBatch}, {"sequence", 0}}), kBatch);
}

TEST(Dim, ParsesWhatItPrints) {
  for (const Dim& d :
       {Dim(7), Dim(-7), kPast + 1, kPast * kBatch * 3 - kSequence,
        floor_div(kPast + 1, 2) * kBatch, min(kPast, max(kBatch, 3)), mod(kSequence, 8)}) {
    EXPECT_EQ(Dim::parse(d.text()), d) << d.text();
  }
}

TEST(Dim, ManyAtOnceAreWhatTheyAreOneByOne) {
  const std::vector<Dim> all = {kPast, 3, kBatch + kPast, kSequence, kBatch - 1, -2};
  Dim sum, product = 1;
  for (const Dim& d : all) {
    sum = sum + d;
    product = product * d;
  }
  EXPECT_EQ(Dim::sum_of(all), sum);
  EXPECT_EQ(Dim::product_of(all), product);
  EXPECT_EQ(Dim::sum_of({}), Dim(0));
  EXPECT_EQ(Dim::product_of({}), Dim(1));
  EXPECT_EQ(Dim::product_of({kPast, 0, kBatch}), Dim(0));
  EXPECT_EQ(Dim::sum_of({kPast, kPast * Dim(-1)}), Dim(0));
}

TEST(Dim, RefusesTextThatIsNoSize) {
  for (const char* text :
       {"", "+", "a b", "2 +", "f(a, b)", "max(a)", "(a", "99999999999999999999", "1x"}) {
    EXPECT_THROW(Dim::parse(text), Error) << text;
  }
  EXPECT_THROW(Dim::parse(std::string(200, '(') + "a" + std::string(200, ')')), Error);
}

TEST(Dim, RefusesWhatDoesNotFit) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  EXPECT_THROW(Dim(kMax) + 1, Error);
  EXPECT_THROW(Dim(kMax) * 2, Error);
  EXPECT_THROW(kBatch * kMax + kBatch, Error);
  EXPECT_THROW(kBatch * kMax * 3, Error);
  EXPECT_THROW(kBatch + kMin, Error);
  EXPECT_THROW(Dim(-kMax) - 1, Error);
  EXPECT_THROW(Dim::parse("-4611686018427387904 - 4611686018427387904"), Error);
  EXPECT_THROW(floor_div(Dim(kMin), -1), Error);
  EXPECT_EQ(mod(Dim(kMin), -1), Dim(0));
  Dim many = kBatch;
  const auto square = [&] { many = many * many + kPast * kSequence + kSequence; };
  EXPECT_THROW(for (int i = 0; i < 64; ++i) square(), Error);
}

}  // namespace
}  // namespace tranship::ir
