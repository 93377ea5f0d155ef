// Each pass as text before and text after; and composites against their decompositions on random
// numbers.
#include "passes/passes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "interpret/interpret.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "tranship/error.h"

namespace tranship::passes {
namespace {

std::string after(std::string_view text, const std::function<bool(GraphPtr&)>& pass) {
  GraphPtr graph = ir::parse(text);
  pass(graph);
  ir::verify(*graph);
  return ir::print(*graph);
}

TEST(Passes, SimplifyDropsWhatDoesNothing) {
  EXPECT_EQ(after(R"(graph g
  %0 = Input {name="x", dtype=f32, shape=[n, 4]}
  %1 = Cast(%0) {to=f32}
  %2 = Reshape(%1) {shape=[n, 2, 2]}
  %3 = Reshape(%2) {shape=[2*n, 2]}
  %4 = Transpose(%3) {perm=[0, 1]}
  %5 = Constant {value=f32[](1)}
  %6 = Binary(%4, %5) {fn=mul}
  output y %6
end
)",
                  [](GraphPtr& g) { return simplify(g) | simplify(g) | eliminate_dead_code(g); }),
            R"(graph g
  %0 = Input {name="x", dtype=f32, shape=[n, 4]} : f32[n, 4]
  %1 = Reshape(%0) {shape=[2*n, 2]} : f32[2*n, 2]
  output y %1
end
)");
}

TEST(Passes, SimplifyDropsAResizeThatKeepsTheSizeUnlessItHasScales) {
  constexpr std::string_view kText = R"(graph g
  %0 = Input {name="x", dtype=f32, shape=[n, 3, h, 8]} : f32[n, 3, h, 8]
  %1 = Resize(%0) {mode=cubic, coordinates=half_pixel, antialias=false, sizes=[h, 8], scales=[SCALES]} : f32[n, 3, h, 8]
  output y %1
end
)";
  const auto with = [&](std::string_view scales) {
    std::string text(kText);
    return text.replace(text.find("SCALES"), 6, scales);
  };
  EXPECT_EQ(after(with(""), [](GraphPtr& g) { return simplify(g) | eliminate_dead_code(g); }),
            R"(graph g
  %0 = Input {name="x", dtype=f32, shape=[n, 3, h, 8]} : f32[n, 3, h, 8]
  output y %0
end
)");
  GraphPtr scaled = ir::parse(with("1.05, 1"));
  EXPECT_FALSE(simplify(scaled));
}

TEST(Passes, SimplifyKeepsAFactorThatWidens) {
  GraphPtr graph = ir::parse(R"(graph g
  %0 = Input {name="x", dtype=f32, shape=[4]}
  %1 = Constant {value=f32[1, 1](1)}
  %2 = Binary(%0, %1) {fn=mul} : f32[1, 4]
  output y %2
end
)");
  EXPECT_FALSE(simplify(graph));
}

TEST(Passes, ConstantsAreComputedOnce) {
  EXPECT_EQ(after(R"(graph g
  %0 = Iota {count=4}
  %1 = Constant {value=i64[](2)}
  %2 = Binary(%0, %1) {fn=mul}
  %3 = Compare(%2, %1) {fn=gt}
  output y %3
end
)",
                  [](GraphPtr& g) { return fold_constants(g) | eliminate_dead_code(g); }),
            R"(graph g
  %0 = Constant {value=bool[4](0, 0, 1, 1)} : bool[4]
  output y %0
end
)");
}

TEST(Passes, BothResultsOfAnOrderAreComputedOnce) {
  EXPECT_EQ(after(R"(graph g
  %0 = Constant {value=f32[3](2, 5, 3)}
  %1, %2 = TopK(%0) {axis=0, k=2}
  output a %1
  output b %2
end
)",
                  [](GraphPtr& g) { return fold_constants(g) | eliminate_dead_code(g); }),
            R"(graph g
  %0 = Constant {value=f32[2](5, 3)} : f32[2]
  %1 = Constant {value=i64[2](1, 2)} : i64[2]
  output a %0
  output b %1
end
)");
}

TEST(Passes, TheOriginOfASizeStaysAsLongAsTheSizeIsNamed) {
  constexpr std::string_view kText = R"(graph g
  range found 0 any
  range unused 0 any
  %0 = Input {name="x", dtype=f32, shape=[4]} : f32[4]
  %1 = NonZero(%0) {count=found} : i64[found, 1]
  %2 = NonZero(%0) {count=unused} : i64[unused, 1]
  %3 = Iota {count=found} : i64[found]
  output y %3
end
)";
  EXPECT_EQ(after(kText, eliminate_dead_code), R"(graph g
  range found 0 any
  range unused 0 any
  %0 = Input {name="x", dtype=f32, shape=[4]} : f32[4]
  %1 = NonZero(%0) {count=found} : i64[found, 1]
  %2 = Iota {count=found} : i64[found]
  output y %2
end
)");
  GraphPtr constants = ir::parse(
      "graph g\n  %0 = Constant {value=f32[2](1, 0)}\n  %1 = NonZero(%0) {count=n}\n"
      "  %2 = DimToTensor {dim=n}\n  output y %2\nend\n");
  EXPECT_FALSE(fold_constants(constants));
}

TEST(Passes, LargeOrSymbolicResultsAreNotFolded) {
  GraphPtr graph = ir::parse(
      "graph g\n  %0 = Iota {count=5000}\n  %1 = Iota {count=n}\n  output a %0\n  output b "
      "%1\nend\n");
  EXPECT_FALSE(fold_constants(graph));
}

TEST(Passes, EqualNodesBecomeOne) {
  EXPECT_EQ(after(R"(graph g
  %0 = Input {name="x", dtype=f32, shape=[4]}
  %1 = Unary(%0) {fn=exp}
  %2 = Unary(%0) {fn=exp}
  %3 = Unary(%0) {fn=log}
  %4 = Binary(%1, %2) {fn=add}
  %5 = Binary(%4, %3) {fn=add}
  output y %5
end
)",
                  merge_common_subexpressions),
            R"(graph g
  %0 = Input {name="x", dtype=f32, shape=[4]} : f32[4]
  %1 = Unary(%0) {fn=exp} : f32[4]
  %2 = Unary(%0) {fn=log} : f32[4]
  %3 = Binary(%1, %1) {fn=add} : f32[4]
  %4 = Binary(%3, %2) {fn=add} : f32[4]
  output y %4
end
)");
}

TEST(Passes, InputsThatNobodyUsesStay) {
  EXPECT_EQ(after(R"(graph g
  %0 = Input {name="x", dtype=f32, shape=[4]}
  %1 = Input {name="unused", dtype=f32, shape=[4]}
  %2 = Unary(%0) {fn=exp}
  %3 = Unary(%0) {fn=log}
  output y %2
end
)",
                  eliminate_dead_code),
            R"(graph g
  %0 = Input {name="x", dtype=f32, shape=[4]} : f32[4]
  %1 = Input {name="unused", dtype=f32, shape=[4]} : f32[4]
  %2 = Unary(%0) {fn=exp} : f32[4]
  output y %2
end
)");
}

constexpr std::string_view kSizes = R"(graph g
  range n 1 8
  assume n == m
  %0 = Input {name="x", dtype=f32, shape=[n, m]}
  %1 = Iota {count=n}
  output y %1
end
)";

TEST(Passes, SpecializeGivesSymbolsAValueEverywhere) {
  EXPECT_EQ(after(kSizes, [](GraphPtr& g) { return specialize(g, {{"n", 3}, {"m", 3}}); }),
            R"(graph g
  %0 = Input {name="x", dtype=f32, shape=[3, 3]} : f32[3, 3]
  %1 = Iota {count=3} : i64[3]
  output y %1
end
)");
}

TEST(Passes, SpecializeRefusesWhatTheGraphForbids) {
  GraphPtr graph = ir::parse(kSizes);
  EXPECT_THROW(specialize(graph, {{"n", 9}}), Error);
  EXPECT_THROW(specialize(graph, {{"n", 3}, {"m", 4}}), Error);
}

/// A node whose operands are the inputs, as a graph.
struct Composite {
  const char* name;
  const char* lines;
};

class Decompose : public ::testing::TestWithParam<Composite> {};

NamedTensors random_inputs(const ir::Graph& graph, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> number(-2, 2);
  NamedTensors inputs;
  for (const ir::Node* n : graph.inputs()) {
    const auto& input = ir::as<ir::Input>(*n->op);
    std::vector<int64_t> shape;
    for (const ir::Dim& d : input.shape.dims)
      shape.push_back(d.evaluate({{"b", 2}, {"s", 3}, {"t", 5}}));
    Tensor t(input.dtype, shape);
    for (int64_t i = 0; i < t.num_elements(); ++i)
      t.set(i, input.dtype == DType::kBool ? (number(random) > -1 ? 1 : 0) : number(random));
    inputs.emplace(input.name, std::move(t));
  }
  return inputs;
}

TEST_P(Decompose, MeansTheSameAsTheComposite) {
  const std::string text = "graph g\n" + std::string(GetParam().lines) + "  output y %y\nend\n";
  const GraphPtr direct = ir::parse(text);
  GraphPtr primitive = ir::parse(text);
  ASSERT_TRUE(decompose(primitive, [](const ir::Node&) { return false; }));
  ir::verify(*primitive);
  for (const ir::Node& n : primitive->nodes())
    EXPECT_FALSE(ir::is_composite(n.kind())) << ir::text(*n.op);
  const auto no_parameter = [](const std::string&) -> Tensor {
    throw std::logic_error("no parameters here");
  };
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const NamedTensors inputs = random_inputs(*direct, seed);
    const Tensor expected = interpret(*direct, inputs, no_parameter).at("y"),
                 found = interpret(*primitive, inputs, no_parameter).at("y");
    ASSERT_EQ(expected.shape(), found.shape());
    for (int64_t i = 0; i < expected.num_elements(); ++i) {
      // Sums of up to 16 products of numbers up to 4, in f32, in another order.
      ASSERT_NEAR(expected.at(i), found.at(i), 16 * 16 * 1.2e-7)
          << "seed " << seed << ", element " << i;
    }
  }
}

constexpr const char* kQkv =
    "  %q = Input {name=\"q\", dtype=f32, shape=[b, 4, s, 8]}\n"
    "  %k = Input {name=\"k\", dtype=f32, shape=[b, 2, t, 8]}\n"
    "  %v = Input {name=\"v\", dtype=f32, shape=[b, 2, t, 8]}\n";
const std::string kMasked =
    std::string(kQkv) + "  %m = Input {name=\"m\", dtype=bool, shape=[b, t]}\n";
const std::string kPlain = std::string(kQkv) + "  %y = Attention(%q, %k, %v, _, _) {scale=0.35}\n";
const std::string kCausal =
    std::string(kQkv) + "  %y = Attention(%q, %k, %v, _, _) {scale=0.35, causal=true}\n";
const std::string kWindow =
    kMasked + "  %y = Attention(%q, %k, %v, %m, _) {scale=0.35, causal=true, window=2}\n";
const std::string kHidden =
    std::string(kQkv) +
    "  %m = Constant {value=bool[1, 5](0, 0, 0, 0, 0)}\n  %n = Expand(%m) {shape=[b, t]}\n"
    "  %y = Attention(%q, %k, %v, %n, _) {scale=0.35, causal=true}\n";
const std::string kBias = kMasked +
                          "  %bias = Input {name=\"bias\", dtype=f32, shape=[1, 4, s, t]}\n"
                          "  %y = Attention(%q, %k, %v, %m, %bias) {scale=1}\n";
const std::string kBoolBias = kMasked +
                              "  %bias = Input {name=\"bias\", dtype=bool, shape=[b, 1, s, t]}\n"
                              "  %y = Attention(%q, %k, %v, %m, %bias) {scale=1}\n";
constexpr const char* kXw =
    "  %x = Input {name=\"x\", dtype=f32, shape=[b, s, 8]}\n  %w = Input {name=\"w\", dtype=f32, "
    "shape=[8]}\n";
const std::string kRms = std::string(kXw) + "  %y = RmsNorm(%x, %w) {eps=1e-05}\n";
const std::string kLayer = std::string(kXw) + "  %y = LayerNorm(%x, %w, %w) {eps=1e-05}\n";
const std::string kRope =
    "  %x = Input {name=\"x\", dtype=f32, shape=[b, 4, s, 8]}\n  %c = Input {name=\"c\", "
    "dtype=f32, shape=[b, s, 3]}\n"
    "  %n = Input {name=\"n\", dtype=f32, shape=[1, s, 3]}\n  %y = Rope(%x, %c, %n)\n";

INSTANTIATE_TEST_SUITE_P(
    Composites, Decompose,
    ::testing::Values(
        Composite{"attention", kPlain.c_str()}, Composite{"causal", kCausal.c_str()},
        Composite{"window", kWindow.c_str()}, Composite{"nothing_visible", kHidden.c_str()},
        Composite{"bias", kBias.c_str()}, Composite{"bool_bias", kBoolBias.c_str()},
        Composite{"rms_norm", kRms.c_str()}, Composite{"layer_norm", kLayer.c_str()},
        Composite{"rope", kRope.c_str()},
        Composite{"linear",
                  "  %x = Input {name=\"x\", dtype=f32, shape=[b, s, 8]}\n  %w = Input "
                  "{name=\"w\", dtype=f32, shape=[3, 8]}\n"
                  "  %c = Input {name=\"c\", dtype=f32, shape=[3]}\n  %y = Linear(%x, %w, %c)\n"},
        Composite{"embedding",
                  "  %w = Input {name=\"w\", dtype=f32, shape=[3, 8]}\n  %i = Constant "
                  "{value=i64[2, 2](0, 2, 1, 1)}\n"
                  "  %y = Embedding(%w, %i)\n"},
        Composite{"cache_append",
                  "  %p = Input {name=\"p\", dtype=f32, shape=[b, 2, t, 8]}\n  %n = Input "
                  "{name=\"n\", dtype=f32, shape=[b, 2, s, 8]}\n"
                  "  %y = CacheAppend(%p, %n)\n"},
        Composite{
            "silu",
            "  %x = Input {name=\"x\", dtype=f32, shape=[s]}\n  %y = Activation(%x) {fn=silu}\n"},
        Composite{
            "gelu",
            "  %x = Input {name=\"x\", dtype=f32, shape=[s]}\n  %y = Activation(%x) {fn=gelu}\n"},
        Composite{"gelu_tanh",
                  "  %x = Input {name=\"x\", dtype=f32, shape=[s]}\n  %y = Activation(%x) "
                  "{fn=gelu_tanh}\n"},
        Composite{"quick_gelu",
                  "  %x = Input {name=\"x\", dtype=f32, shape=[s]}\n  %y = Activation(%x) "
                  "{fn=quick_gelu}\n"},
        Composite{
            "relu",
            "  %x = Input {name=\"x\", dtype=f32, shape=[s]}\n  %y = Activation(%x) {fn=relu}\n"}),
    [](const auto& composite) { return composite.param.name; });

}  // namespace
}  // namespace tranship::passes
