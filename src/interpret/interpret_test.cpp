#include "interpret/interpret.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/text.h"
#include "tranship/error.h"

namespace tranship {
namespace {

using ::testing::ElementsAre;

Tensor no_parameter(const std::string& name) { throw std::logic_error("no parameter " + name); }

Tensor run(std::string_view text, const NamedTensors& inputs, const std::string& output = "y") {
  return interpret(*ir::parse(text), inputs, no_parameter).at(output);
}

std::vector<double> numbers(const Tensor& t) {
  std::vector<double> values;
  for (int64_t i = 0; i < t.num_elements(); ++i) values.push_back(t.at(i));
  return values;
}

Tensor floats(std::vector<float> values, std::vector<int64_t> shape) {
  return Tensor::of(values, std::move(shape));
}

TEST(Interpret, BroadcastsAsNumpy) {
  const Tensor y = run(R"(graph g
  %0 = Input {name="a", dtype=f32, shape=[2, 1]}
  %1 = Input {name="b", dtype=f32, shape=[3]}
  %2 = Binary(%0, %1) {fn=sub}
  output y %2
end
)",
                       {{"a", floats({10, 20}, {2, 1})}, {"b", floats({1, 2, 3}, {3})}});
  EXPECT_THAT(numbers(y), ElementsAre(9, 8, 7, 19, 18, 17));
}

TEST(Interpret, SymbolsComeFromTheInputs) {
  const Tensor y = run(R"(graph g
  %0 = Input {name="x", dtype=f32, shape=[n, 2]}
  %1 = DimToTensor {dim=3*n + 1}
  output y %1
end
)",
                       {{"x", floats({1, 2, 3, 4}, {2, 2})}});
  EXPECT_EQ(y.i64()[0], 7);
}

TEST(Interpret, AnInputOfAnotherSizeOrDtypeIsRefused) {
  constexpr std::string_view kText = R"(graph g
  %0 = Input {name="x", dtype=f32, shape=[n, n]}
  output y %0
end
)";
  EXPECT_THROW(run(kText, {{"x", floats({1, 2}, {1, 2})}}), Error);
  EXPECT_THROW(run(kText, {{"x", Tensor(DType::kI64, {1, 1})}}), Error);
  EXPECT_THROW(run(kText, {}), Error);
}

TEST(Interpret, AnAssumptionIsCheckedWhenItRuns) {
  constexpr std::string_view kText = R"(graph g
  %0 = Input {name="a", dtype=f32, shape=[n]}
  %1 = Input {name="b", dtype=f32, shape=[m]}
  %2 = Binary(%0, %1) {fn=add}
  output y %2
end
)";
  EXPECT_THAT(numbers(run(kText, {{"a", floats({1, 2}, {2})}, {"b", floats({5, 5}, {2})}})),
              ElementsAre(6, 7));
  EXPECT_THROW(run(kText, {{"a", floats({1, 2}, {2})}, {"b", floats({5}, {1})}}), Error);
}

TEST(Interpret, WhatIsSaidOfASizeFromDataIsCheckedWhenItIsBorn) {
  constexpr std::string_view kText = R"(graph g
  range found 0 3
  %0 = Input {name="a", dtype=f32, shape=[n]}
  %1 = NonZero(%0) {count=found}
  %2 = Squeeze(%1) {axes=[1]}
  %3 = Iota {count=n}
  %4 = Binary(%2, %3) {fn=add}
  output y %4
end
)";
  EXPECT_THAT(numbers(run(kText, {{"a", floats({1, 2}, {2})}})), ElementsAre(0, 2));
  EXPECT_THROW(run(kText, {{"a", floats({1, 0}, {2})}}), Error);        // found == n
  EXPECT_THROW(run(kText, {{"a", floats({1, 2, 3, 4}, {4})}}), Error);  // found <= 3
}

TEST(Interpret, PlacesOutsideOfTheDataAreRefused) {
  for (const std::string_view line :
       {"ScatterElements(%x, %i, %u) {axis=0}", "ScatterNd(%x, %p, %u)", "GatherNd(%x, %p)",
        "Pad(%x) {mode=reflect, begin=[n], end=[0]}", "Pad(%x) {mode=wrap, begin=[n + 1], end=[0]}",
        "Slice(%x) {axis=0, begin=0, end=n + 1}"}) {
    const std::string text =
        "graph g\n  %x = Input {name=\"x\", dtype=f32, shape=[n]}\n"
        "  %i = Constant {value=i64[2](0, 3)}\n"
        "  %p = Constant {value=i64[2, 1](0, 3)}\n"
        "  %u = Constant {value=f32[2](7, 8)}\n  %y = " +
        std::string(line) + "\n  output y %y\nend\n";
    EXPECT_THROW(run(text, {{"x", floats({1, 2, 3}, {3})}}), Error) << line;
  }
}

TEST(Interpret, IntegersDivideAsInPython) {
  const Tensor y = run(R"(graph g
  %0 = Constant {value=i64[4](-7, 7, -7, 7)}
  %1 = Constant {value=i64[4](2, 2, -2, -2)}
  %2 = Binary(%0, %1) {fn=floor_div}
  %3 = Binary(%0, %1) {fn=mod}
  %4 = Concat(%2, %3) {axis=0}
  output y %4
end
)",
                       {});
  EXPECT_THAT(numbers(y), ElementsAre(-4, 3, 3, -4, 1, 1, -1, -1));
}

TEST(Interpret, HalfPrecisionRoundsAfterEachOp) {
  const Tensor y = run(R"(graph g
  %0 = Constant {value=f16[](2048)}
  %1 = Constant {value=f16[](1)}
  %2 = Binary(%0, %1) {fn=add}
  output y %2
end
)",
                       {});
  EXPECT_EQ(y.at(0), 2048);  // 2049 lies between two f16 numbers; ties go to even
}

TEST(Interpret, GathersAndSlices) {
  const NamedTensors inputs = {{"x", floats({0, 1, 2, 3, 4, 5}, {2, 3})}};
  EXPECT_THAT(numbers(run("graph g\n  %0 = Input {name=\"x\", dtype=f32, shape=[2, 3]}\n  %1 = "
                          "Constant {value=i64[2](2, -3)}\n"
                          "  %2 = Gather(%0, %1) {axis=1}\n  output y %2\nend\n",
                          inputs)),
              ElementsAre(2, 0, 5, 3));
  EXPECT_THAT(numbers(run("graph g\n  %0 = Input {name=\"x\", dtype=f32, shape=[2, 3]}\n  %1 = "
                          "Slice(%0) {axis=1, begin=0, end=3, step=2}\n"
                          "  output y %1\nend\n",
                          inputs)),
              ElementsAre(0, 2, 3, 5));
  EXPECT_THROW(run("graph g\n  %0 = Input {name=\"x\", dtype=f32, shape=[2, 3]}\n  %1 = Constant "
                   "{value=i64[1](3)}\n"
                   "  %2 = Gather(%0, %1) {axis=1}\n  output y %2\nend\n",
                   inputs),
               Error);
}

TEST(Interpret, LoopsStopAtTheirTripsOrTheirCondition) {
  constexpr std::string_view kText = R"(graph g
  %0 = Input {name="trips", dtype=i64, shape=[]}
  %1 = Input {name="x", dtype=f32, shape=[]}
  %2 = Constant {value=bool[](1)}
  %3 = Loop(%0, %2, %1) {num_carried=1}
    graph body
      %0 = Input {name="i", dtype=i64, shape=[]}
      %1 = Input {name="x", dtype=f32, shape=[]}
      %2 = Binary(%1, %1) {fn=add}
      %3 = Constant {value=f32[](100)}
      %4 = Compare(%2, %3) {fn=lt}
      output going %4
      output x %2
    end
  output y %3
end
)";
  const auto after_trips = [&](int64_t trips) {
    return run(kText,
               {{"trips", Tensor::of(std::vector<int64_t>{trips}, {})}, {"x", floats({3}, {})}})
        .at(0);
  };
  EXPECT_EQ(after_trips(0), 3);
  EXPECT_EQ(after_trips(3), 24);
  EXPECT_EQ(after_trips(99), 192);  // the first that is not below 100
}

TEST(Interpret, AScanCarriesAndStacks) {
  constexpr std::string_view kText = R"(graph g
  %0 = Input {name="x", dtype=f32, shape=[n, 2]}
  %1 = Constant {value=f32[2](0, 0)}
  %2, %3 = Scan(%1, %0) {num_carried=1, num_scanned=1}
    graph body
      %0 = Input {name="sum", dtype=f32, shape=[2]}
      %1 = Input {name="row", dtype=f32, shape=[2]}
      %2 = Binary(%0, %1) {fn=add}
      output sum %2
      output row %2
    end
  output total %2
  output y %3
end
)";
  const NamedTensors inputs = {{"x", floats({1, 2, 3, 4, 5, 6}, {3, 2})}};
  EXPECT_THAT(numbers(run(kText, inputs, "total")), ElementsAre(9, 12));
  EXPECT_THAT(numbers(run(kText, inputs)), ElementsAre(1, 2, 4, 6, 9, 12));
}

TEST(Interpret, AnUnknownOperatorIsUnsupportedByName) {
  try {
    run("graph g\n  %0 = Opaque {target=\"aten::mystery\", dtype=f32, shape=[1]}\n  output y "
        "%0\nend\n",
        {});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
    EXPECT_NE(std::string(error.what()).find("aten::mystery"), std::string::npos);
  }
}

}  // namespace
}  // namespace tranship
