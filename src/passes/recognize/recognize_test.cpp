// Each recognizer as text before and text after: the formula, as exporters write it, becomes the
// composite; what only looks like it stays.
#include "passes/recognize/recognize.h"

#include <gtest/gtest.h>

#include <random>

#include "interpret/interpret.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "passes/passes.h"

namespace tranship::passes {
namespace {

std::string nodes_after(const std::string& nodes) {
  GraphPtr graph = ir::parse("graph g\n" + nodes + "  output y %y\nend\n");
  recognize(graph);
  ir::verify(*graph);
  return ir::print(*graph);
}

struct Case {
  const char* name;
  std::string before;
  const char* expected;        // what the text after holds
  const char* gone = nullptr;  // and what it does not
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class Recognize : public ::testing::TestWithParam<Case> {};

TEST_P(Recognize, TheFormulaBecomesTheComposite) {
  const std::string after = nodes_after(GetParam().before);
  EXPECT_NE(after.find(GetParam().expected), std::string::npos) << after;
  const char* gone = GetParam().gone;
  EXPECT_TRUE(gone == nullptr || after.find(gone) == std::string::npos) << after;
}

const std::string kX = "  %x = Input {name=\"x\", dtype=f32, shape=[b, s, 8]}\n";
const std::string kW = "  %w = Param {name=\"w\", dtype=f32, shape=[8]}\n";
const std::string kC = "  %c = Param {name=\"c\", dtype=f32, shape=[8]}\n";

std::string rms(const std::string& x, const std::string& square, const std::string& last) {
  return x + square +
         "  %m = Reduce(%q) {fn=mean, axes=[-1], keepdims=true}\n"
         "  %e = Constant {value=f32[](1e-06)}\n  %z = Binary(%m, %e) {fn=add}\n"
         "  %r = Unary(%z) {fn=sqrt}\n" +
         last;
}
const std::string kPow = "  %two = Constant {value=f32[](2)}\n  %q = Binary(%x, %two) {fn=pow}\n";
const std::string kTimes = "  %q = Binary(%x, %x) {fn=mul}\n";
const std::string kByReciprocal =
    "  %i = Unary(%r) {fn=reciprocal}\n  %n = Binary(%x, %i) {fn=mul}\n"
    "  %y = Binary(%w, %n) {fn=mul}\n";
const std::string kByDivision = "  %n = Binary(%x, %r) {fn=div}\n  %y = Binary(%n, %w) {fn=mul}\n";
const std::string kCentered =
    "  %a = Input {name=\"a\", dtype=f32, shape=[b, s, 8]}\n"
    "  %mean = Reduce(%a) {fn=mean, axes=[2], keepdims=true}\n  %x = Binary(%a, %mean) {fn=sub}\n";

INSTANTIATE_TEST_SUITE_P(
    Norms, Recognize,
    ::testing::Values(
        Case{"rms_norm", rms(kX + kW, kPow, kByReciprocal), "RmsNorm(%0, %1) {eps=1e-06}", "sqrt"},
        Case{"rms_norm_by_division", rms(kX + kW, kTimes, kByDivision), "RmsNorm(", "sqrt"},
        Case{"rms_norm_without_weight_stays", rms(kX, kTimes, "  %y = Binary(%x, %r) {fn=div}\n"),
             "sqrt", "RmsNorm"},
        Case{"rms_norm_over_another_axis_stays",
             kX + kW + kTimes +
                 "  %m = Reduce(%q) {fn=mean, axes=[1], keepdims=true}\n"
                 "  %e = Constant {value=f32[](1e-06)}\n  %z = Binary(%m, %e) {fn=add}\n"
                 "  %r = Unary(%z) {fn=sqrt}\n" +
                 kByDivision,
             "sqrt", "RmsNorm"},
        Case{"a_scalar_times_a_vector_stays",
             "  %s = Input {name=\"s\", dtype=f32, shape=[]}\n" + kW +
                 "  %y = Binary(%s, %w) {fn=mul}\n",
             "Binary(%0, %1) {fn=mul}", "Norm"},
        Case{"layer_norm", rms(kCentered + kW, kTimes, kByDivision), "LayerNorm(%0, %1, _)",
             "sqrt"},
        Case{"layer_norm_with_bias",
             rms(kCentered + kW + kC, kTimes,
                 "  %n = Binary(%x, %r) {fn=div}\n  %t = Binary(%n, %w) {fn=mul}\n"
                 "  %y = Binary(%t, %c) {fn=add}\n"),
             "LayerNorm(%0, %1, %2)", "sqrt"}),
    [](const auto& c) { return c.param.name; });

const std::string kErf = "  %h = Constant {value=f32[](0.5)}\n  %one = Constant {value=f32[](1)}\n";

INSTANTIATE_TEST_SUITE_P(
    Activations, Recognize,
    ::testing::Values(
        Case{"silu", kX + "  %g = Unary(%x) {fn=sigmoid}\n  %y = Binary(%x, %g) {fn=mul}\n",
             "Activation(%0) {fn=silu}", "sigmoid"},
        Case{"quick_gelu",
             kX + "  %k = Constant {value=f32[](1.702)}\n  %t = Binary(%k, %x) {fn=mul}\n"
                  "  %g = Unary(%t) {fn=sigmoid}\n  %y = Binary(%x, %g) {fn=mul}\n",
             "Activation(%0) {fn=quick_gelu}", "sigmoid"},
        Case{"gelu",
             kX + kErf +
                 "  %k = Constant {value=f32[](1.4142135)}\n  %d = Binary(%x, %k) {fn=div}\n"
                 "  %f = Unary(%d) {fn=erf}\n  %g = Binary(%f, %one) {fn=add}\n"
                 "  %t = Binary(%x, %h) {fn=mul}\n  %y = Binary(%t, %g) {fn=mul}\n",
             "Activation(%0) {fn=gelu}", "erf"},
        Case{"gelu_of_another_width_stays",
             kX + kErf +
                 "  %k = Constant {value=f32[](1.5)}\n  %d = Binary(%x, %k) {fn=div}\n"
                 "  %f = Unary(%d) {fn=erf}\n  %g = Binary(%f, %one) {fn=add}\n"
                 "  %t = Binary(%x, %h) {fn=mul}\n  %y = Binary(%t, %g) {fn=mul}\n",
             "erf", "Activation"},
        Case{"gelu_tanh",
             kX + kErf +
                 "  %three = Constant {value=f32[](3)}\n  %p = Binary(%x, %three) {fn=pow}\n"
                 "  %k = Constant {value=f32[](0.044715)}\n  %a = Binary(%p, %k) {fn=mul}\n"
                 "  %s = Binary(%x, %a) {fn=add}\n  %l = Constant {value=f32[](0.7978845608)}\n"
                 "  %d = Binary(%s, %l) {fn=mul}\n  %f = Unary(%d) {fn=tanh}\n"
                 "  %g = Binary(%f, %one) {fn=add}\n"
                 "  %t = Binary(%h, %x) {fn=mul}\n  %y = Binary(%t, %g) {fn=mul}\n",
             "Activation(%0) {fn=gelu_tanh}", "pow"},
        Case{"relu", kX + "  %o = Constant {value=f32[](0)}\n  %y = Binary(%x, %o) {fn=max}\n",
             "Activation(%0) {fn=relu}", "max"}),
    [](const auto& c) { return c.param.name; });

// x [b, 4, s, 8]; tables from angles [1, s, 4] that stand twice.
std::string rope(const std::string& second_table, const std::string& sum) {
  return "  %x = Input {name=\"x\", dtype=f32, shape=[b, 4, s, 8]}\n"
         "  %a = Input {name=\"a\", dtype=f32, shape=[1, s, 4]}\n"
         "  %o = Input {name=\"o\", dtype=f32, shape=[1, s, 4]}\n"
         "  %t = Concat(%a, " +
         second_table +
         ") {axis=-1}\n"
         "  %cos = Unary(%t) {fn=cos}\n  %sin = Unary(%t) {fn=sin}\n"
         "  %c = Unsqueeze(%cos) {axes=[1]}\n  %n = Unsqueeze(%sin) {axes=[1]}\n"
         "  %first = Slice(%x) {axis=3, begin=0, end=4, step=1}\n"
         "  %second = Slice(%x) {axis=3, begin=4, end=8, step=1}\n"
         "  %neg = Unary(%second) {fn=neg}\n  %turned = Concat(%neg, %first) {axis=-1}\n"
         "  %p = Binary(%x, %c) {fn=mul}\n  %q = Binary(%turned, %n) {fn=mul}\n" +
         sum;
}

INSTANTIATE_TEST_SUITE_P(
    Rope, Recognize,
    ::testing::Values(
        Case{"rope", rope("%a", "  %y = Binary(%p, %q) {fn=add}\n"), "Rope(", "neg"},
        Case{"rope_other_order", rope("%a", "  %y = Binary(%q, %p) {fn=add}\n"), "Rope(", "neg"},
        Case{"rope_with_unequal_halves_stays", rope("%o", "  %y = Binary(%p, %q) {fn=add}\n"),
             "neg", "Rope"},
        Case{"difference_stays", rope("%a", "  %y = Binary(%p, %q) {fn=sub}\n"), "neg", "Rope"}),
    [](const auto& c) { return c.param.name; });

// q [b, 4, s, 8], keys and values [b, 2, t, 8], a padding mask i64 [b, t].
std::string attention(const std::string& mask, const std::string& last) {
  return "  %q = Input {name=\"q\", dtype=f32, shape=[b, 4, s, 8]}\n"
         "  %k = Input {name=\"k\", dtype=f32, shape=[b, 2, past + s, 8]}\n"
         "  %v = Input {name=\"v\", dtype=f32, shape=[b, 2, past + s, 8]}\n"
         "  %pad = Input {name=\"pad\", dtype=i64, shape=[b, past + s]}\n" +
         mask + last;
}
const std::string kRepeated =
    "  %k1 = Unsqueeze(%k) {axes=[2]}\n  %k2 = Expand(%k1) {shape=[b, 2, 2, past + s, 8]}\n"
    "  %k3 = Reshape(%k2) {shape=[b, 4, past + s, 8]}\n"
    "  %v1 = Unsqueeze(%v) {axes=[2]}\n  %v2 = Expand(%v1) {shape=[b, 2, 2, past + s, 8]}\n"
    "  %v3 = Reshape(%v2) {shape=[b, 4, past + s, 8]}\n";
const std::string kCausalMask =
    "  %ti = Iota {count=past + s}\n  %t = Unsqueeze(%ti) {axes=[0, 1, 2]}\n"
    "  %si = Iota {count=s}\n  %past = DimToTensor {dim=past}\n"
    "  %sp = Binary(%si, %past) {fn=add}\n  %p = Unsqueeze(%sp) {axes=[0, 1, 3]}\n"
    "  %causal = Compare(%t, %p) {fn=le}\n";
const std::string kPadding =
    "  %zero = Constant {value=i64[](0)}\n  %flags = Compare(%pad, %zero) {fn=ne}\n"
    "  %keys = Unsqueeze(%flags) {axes=[1, 2]}\n";
const std::string kBoth = kCausalMask + kPadding +
                          "  %and = Binary(%causal, %keys) {fn=and}\n"
                          "  %mask = Expand(%and) {shape=[b, 1, s, past + s]}\n";
const std::string kMasked = "  %y = Attention(%q, %k, %v, _, %mask) {scale=0.35}\n";

INSTANTIATE_TEST_SUITE_P(
    Attention, Recognize,
    ::testing::Values(
        Case{"repeated_keys_are_shared",
             attention(kRepeated, "  %y = Attention(%q, %k3, %v3, _, _) {scale=0.35}\n"),
             "Attention(%0, %1, %2, _, _)", "Expand"},
        Case{"a_factor_on_the_query_is_the_scale",
             attention("  %h = Constant {value=f32[](0.5)}\n  %g = Binary(%q, %h) {fn=mul}\n",
                       "  %y = Attention(%g, %k, %v, _, _) {scale=1}\n"),
             "{scale=0.5,", "mul"},
        Case{"written_out",
             attention(kRepeated + "  %kt = Transpose(%k3) {perm=[0, 1, 3, 2]}\n"
                                   "  %m = MatMul(%q, %kt)\n  %h = Constant {value=f32[](0.35)}\n"
                                   "  %scores = Binary(%m, %h) {fn=mul}\n"
                                   "  %p = Softmax(%scores) {axis=-1}\n",
                       "  %y = MatMul(%p, %v3)\n"),
             "Attention(%0, %1, %2, _, _)", "Softmax"},
        Case{"softmax_over_queries_stays",
             attention(kRepeated + "  %kt = Transpose(%k3) {perm=[0, 1, 3, 2]}\n"
                                   "  %m = MatMul(%q, %kt)\n  %p = Softmax(%m) {axis=2}\n",
                       "  %y = MatMul(%p, %v3)\n"),
             "Softmax", "Attention"}),
    [](const auto& c) { return c.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Masks, Recognize,
    ::testing::Values(
        Case{"causal",
             attention(kCausalMask + "  %mask = Expand(%causal) {shape=[b, 1, s, past + s]}\n",
                       kMasked),
             ", _, _) {scale=0.35, causal=true, window=none}", "Iota"},
        Case{"padding",
             attention(kPadding + "  %mask = Expand(%keys) {shape=[b, 1, s, past + s]}\n", kMasked),
             ", _) {scale=0.35, causal=false, window=none}", "Expand"},
        Case{"causal_and_padding", attention(kBoth, kMasked),
             ", _) {scale=0.35, causal=true, window=none}", "Iota"},
        Case{"padding_read_by_indices",
             attention(
                 "  %zero = Constant {value=i64[](0)}\n  %flags = Compare(%pad, %zero) {fn=ne}\n"
                 "  %bi = Iota {count=b}\n  %bu = Unsqueeze(%bi) {axes=[1, 2, 3]}\n"
                 "  %be = Expand(%bu) {shape=[b, 1, 1, past + s]}\n"
                 "  %ti = Iota {count=past + s}\n  %tu = Unsqueeze(%ti) {axes=[0, 1, 2]}\n"
                 "  %te = Expand(%tu) {shape=[b, 1, 1, past + s]}\n"
                 "  %b1 = Unsqueeze(%be) {axes=[-1]}\n  %t1 = Unsqueeze(%te) {axes=[-1]}\n"
                 "  %at = Concat(%b1, %t1) {axis=-1}\n"
                 "  %keys = GatherNd(%flags, %at) {batch_dims=0}\n"
                 "  %mask = Expand(%keys) {shape=[b, 1, s, past + s]}\n",
                 kMasked),
             ", _) {scale=0.35, causal=false, window=none}", "Iota"},
        Case{"window",
             attention(kCausalMask +
                           "  %w = Constant {value=i64[](3)}\n  %oldest = Binary(%p, %w) {fn=sub}\n"
                           "  %young = Compare(%t, %oldest) {fn=gt}\n"
                           "  %mask = Binary(%young, %causal) {fn=and}\n",
                       kMasked),
             "{scale=0.35, causal=true, window=3}", "Iota"},
        Case{"one_extra_visible_key_keeps_its_bias",
             attention(
                 "  %ti = Iota {count=past + s}\n  %t = Unsqueeze(%ti) {axes=[0, 1, 2]}\n"
                 "  %si = Iota {count=s}\n  %past = DimToTensor {dim=past + 1}\n"
                 "  %sp = Binary(%si, %past) {fn=add}\n  %p = Unsqueeze(%sp) {axes=[0, 1, 3]}\n"
                 "  %mask = Compare(%t, %p) {fn=le}\n",
                 kMasked),
             "Compare", "causal=true"},
        Case{"less_than_the_causal_keys_keeps_its_bias",
             attention(
                 "  %ti = Iota {count=past + s}\n  %t = Unsqueeze(%ti) {axes=[0, 1, 2]}\n"
                 "  %si = Iota {count=s}\n  %past = DimToTensor {dim=past}\n"
                 "  %sp = Binary(%si, %past) {fn=add}\n  %p = Unsqueeze(%sp) {axes=[0, 1, 3]}\n"
                 "  %mask = Compare(%t, %p) {fn=lt}\n",
                 kMasked),
             "Compare", "causal=true"},
        Case{"queries_and_keys_swapped_keep_their_bias",
             attention(
                 "  %ti = Iota {count=past + s}\n  %t = Unsqueeze(%ti) {axes=[0, 1, 2]}\n"
                 "  %si = Iota {count=s}\n  %past = DimToTensor {dim=past}\n"
                 "  %sp = Binary(%si, %past) {fn=add}\n  %p = Unsqueeze(%sp) {axes=[0, 1, 3]}\n"
                 "  %mask = Compare(%p, %t) {fn=le}\n",
                 kMasked),
             "Compare", "causal=true"},
        Case{"a_padding_that_may_hide_all_keeps_a_bias_of_numbers",
             attention(kPadding + "  %o = Constant {value=f32[](0)}\n  %low = Constant "
                                  "{value=f32[](-3.4028235e38)}\n"
                                  "  %mask = Where(%keys, %o, %low)\n",
                       kMasked),
             "Where"},
        Case{"a_causal_bias_of_numbers_is_causal",
             attention(kCausalMask + "  %o = Constant {value=f32[](0)}\n  %low = Constant "
                                     "{value=f32[](-3.4028235e38)}\n"
                                     "  %mask = Where(%causal, %o, %low)\n",
                       kMasked),
             "causal=true", "Where"}),
    [](const auto& c) { return c.param.name; });

TEST(Recognize, ACacheThatIsAnInputGrows) {
  const std::string after = nodes_after(
      "  %p = Input {name=\"p\", dtype=f32, shape=[b, 2, past, 8]}\n"
      "  %n = Input {name=\"n\", dtype=f32, shape=[b, 2, s, 8]}\n"
      "  %y = Concat(%p, %n) {axis=-2}\n");
  EXPECT_NE(after.find("CacheAppend(%0, %1)"), std::string::npos) << after;
}

/// The interpreter's numbers of a graph, inputs made up.
std::vector<double> numbers(const std::string& nodes, bool recognized) {
  GraphPtr graph = ir::parse("graph g\n" + nodes + "  output y %y\nend\n");
  if (recognized) recognize(graph);
  specialize(graph, {{"b", 2}, {"s", 2}, {"past", 3}});
  NamedTensors feed;
  std::mt19937 random(7);
  for (const ir::Node* node : graph->inputs()) {
    const auto& input = ir::as<ir::Input>(*node->op);
    Tensor tensor(input.dtype, input.shape.sizes());
    for (int64_t i = 0; i < tensor.num_elements(); ++i)
      tensor.set(
          i, input.dtype == DType::kI64 ? double(random() % 2) : double(random() % 100) / 50 - 1);
    feed.emplace(input.name, std::move(tensor));
  }
  const auto outputs = interpret(*graph, feed, {});
  std::vector<double> out;
  for (int64_t i = 0; i < outputs.at("y").num_elements(); ++i) out.push_back(outputs.at("y").at(i));
  return out;
}

TEST(Recognize, KeepsTheNumbers) {
  for (const std::string& nodes :
       {rope("%a", "  %y = Binary(%p, %q) {fn=add}\n"), attention(kBoth, kMasked),
        attention(kRepeated, "  %y = Attention(%q, %k3, %v3, _, _) {scale=0.35}\n")}) {
    const std::vector<double> before = numbers(nodes, false), after = numbers(nodes, true);
    ASSERT_EQ(before.size(), after.size());
    for (size_t i = 0; i < before.size(); ++i) EXPECT_NEAR(before[i], after[i], 1e-6);
  }
}

}  // namespace
}  // namespace tranship::passes
