// Each recognizer as text before and text after: the formula, as exporters write it, becomes the
// composite; what only looks like it stays.
#include "passes/recognize/testing.h"

namespace tranship::passes {
namespace {

class Recognize : public ::testing::TestWithParam<Case> {};
TEST_P(Recognize, TheFormulaBecomesTheComposite) { expect_recognized(GetParam()); }

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

const std::string kRms = rms(kX + kW, kPow, kByReciprocal);
const std::string kLayer = rms(kCentered + kW, kTimes, kByDivision);

INSTANTIATE_TEST_SUITE_P(
    NearNorms, Recognize,
    ::testing::Values(
        Case{"epsilon_behind_the_root_stays",
             with(with(kRms, "%z = Binary(%m, %e) {fn=add}", "%k = Unary(%m) {fn=sqrt}"),
                  "%r = Unary(%z) {fn=sqrt}", "%r = Binary(%k, %e) {fn=add}"),
             "sqrt", "RmsNorm"},
        Case{"sum_of_squares_stays", with(kRms, "{fn=mean,", "{fn=sum,"), "sqrt", "RmsNorm"},
        Case{"mean_of_cubes_stays", with(kRms, "f32[](2)", "f32[](3)"), "sqrt", "RmsNorm"},
        Case{"mean_of_another_value_stays",
             with(with(kRms, "Binary(%x, %two)", "Binary(%o, %two)"), "  %two",
                  "  %o = Input {name=\"o\", dtype=f32, shape=[b, s, 8]}\n  %two"),
             "sqrt", "RmsNorm"},
        Case{"two_axes_stay", with(kRms, "axes=[-1]", "axes=[1, 2]"), "sqrt", "RmsNorm"},
        Case{"a_weight_of_each_row_stays",
             with(kRms, "Param {name=\"w\", dtype=f32, shape=[8]}",
                  "Input {name=\"w\", dtype=f32, shape=[b, s, 8]}"),
             "sqrt", "RmsNorm"},
        Case{"what_is_used_elsewhere_stays_beside_the_norm", kRms + "  output mean %m\n",
             "RmsNorm(", nullptr},
        Case{"variance_of_what_is_not_centered_stays",
             with(kLayer, "Binary(%x, %x) {fn=mul}", "Binary(%a, %a) {fn=mul}"), "sqrt",
             "LayerNorm"},
        Case{"mean_over_another_axis_is_no_part_of_the_norm",
             with(kLayer, "%mean = Reduce(%a) {fn=mean, axes=[2]",
                  "%mean = Reduce(%a) {fn=mean, axes=[1]"),
             "RmsNorm(%2, %3)", "LayerNorm"}),
    name_of);

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
    name_of);

INSTANTIATE_TEST_SUITE_P(
    NearActivations, Recognize,
    ::testing::Values(
        Case{"sigmoid_of_another_value_stays",
             kX + "  %o = Input {name=\"o\", dtype=f32, shape=[b, s, 8]}\n"
                  "  %g = Unary(%o) {fn=sigmoid}\n  %y = Binary(%x, %g) {fn=mul}\n",
             "sigmoid", "Activation"},
        Case{"sigmoid_of_another_multiple_stays",
             kX + "  %k = Constant {value=f32[](1.7)}\n  %t = Binary(%k, %x) {fn=mul}\n"
                  "  %g = Unary(%t) {fn=sigmoid}\n  %y = Binary(%x, %g) {fn=mul}\n",
             "sigmoid", "Activation"},
        Case{"a_cube_of_relu_stays",
             kX + "  %r = Activation(%x) {fn=relu}\n  %k = Constant {value=f32[](3)}\n"
                  "  %y = Binary(%r, %k) {fn=pow}\n",
             "pow", "relu2"},
        Case{"twice_silu_stays",
             kX + "  %k = Constant {value=f32[](2)}\n  %t = Binary(%k, %x) {fn=mul}\n"
                  "  %g = Unary(%x) {fn=sigmoid}\n  %y = Binary(%t, %g) {fn=mul}\n",
             "sigmoid", "Activation"},
        Case{"a_maximum_with_another_number_stays",
             kX + "  %o = Constant {value=f32[](0.1)}\n  %y = Binary(%x, %o) {fn=max}\n", "max",
             "Activation"}),
    name_of);

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
        Case{"square_of_relu",
             kX + "  %r = Activation(%x) {fn=relu}\n  %k = Constant {value=f32[](2)}\n"
                  "  %y = Binary(%r, %k) {fn=pow}\n",
             "Activation(%0) {fn=relu2}", "pow"},
        Case{"relu", kX + "  %o = Constant {value=f32[](0)}\n  %y = Binary(%x, %o) {fn=max}\n",
             "Activation(%0) {fn=relu}", "max"}),
    name_of);

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
        Case{"halves_turned_the_other_way_stay",
             with(rope("%a", "  %y = Binary(%p, %q) {fn=add}\n"), "Concat(%neg, %first)",
                  "Concat(%first, %neg)"),
             "neg", "Rope"},
        Case{"halves_that_overlap_stay",
             with(rope("%a", "  %y = Binary(%p, %q) {fn=add}\n"),
                  "%second = Slice(%x) {axis=3, begin=4, end=8",
                  "%second = Slice(%x) {axis=3, begin=3, end=7"),
             "neg", "Rope"},
        Case{"sine_and_cosine_of_other_tables_stay",
             with(rope("%a", "  %y = Binary(%p, %q) {fn=add}\n"), "Unary(%t) {fn=sin}",
                  "Concat(%o, %a) {axis=-1}"),
             "neg", "Rope"},
        Case{"difference_stays", rope("%a", "  %y = Binary(%p, %q) {fn=sub}\n"), "neg", "Rope"}),
    name_of);

const std::string kRepeated =
    "  %k1 = Unsqueeze(%k) {axes=[2]}\n  %k2 = Expand(%k1) {shape=[b, 2, 2, past + s, 8]}\n"
    "  %k3 = Reshape(%k2) {shape=[b, 4, past + s, 8]}\n"
    "  %v1 = Unsqueeze(%v) {axes=[2]}\n  %v2 = Expand(%v1) {shape=[b, 2, 2, past + s, 8]}\n"
    "  %v3 = Reshape(%v2) {shape=[b, 4, past + s, 8]}\n";
// q, k and v [b, 4, ...] as matrices [4 b, ...], as bmm takes them.
const std::string kMerged =
    "  %q = Input {name=\"q\", dtype=f32, shape=[b, 4, s, 8]}\n"
    "  %k = Input {name=\"k\", dtype=f32, shape=[b, 4, t, 8]}\n"
    "  %v = Input {name=\"v\", dtype=f32, shape=[b, 4, t, 8]}\n"
    "  %q3 = Reshape(%q) {shape=[4*b, s, 8]}\n  %k3 = Reshape(%k) {shape=[4*b, t, 8]}\n"
    "  %v3 = Reshape(%v) {shape=[4*b, t, 8]}\n  %kt = Transpose(%k3) {perm=[0, 2, 1]}\n"
    "  %h = Constant {value=f32[](0.35)}\n  %m = MatMul(%q3, %kt)\n"
    "  %scores = Binary(%m, %h) {fn=mul}\n  %p = Softmax(%scores) {axis=-1}\n"
    "  %o = MatMul(%p, %v3)\n  %y = Reshape(%o) {shape=[b, 4, s, 8]}\n";

std::string hidden(const std::string& choice, const std::string& low) {
  return "  %q = Input {name=\"q\", dtype=f32, shape=[b, 4, s, 8]}\n"
         "  %k = Input {name=\"k\", dtype=f32, shape=[b, 4, t, 8]}\n"
         "  %v = Input {name=\"v\", dtype=f32, shape=[b, 4, t, 8]}\n"
         "  %seen = Input {name=\"m\", dtype=bool, shape=[b, 1, s, t]}\n"
         "  %kt = Transpose(%k) {perm=[0, 1, 3, 2]}\n  %scores = MatMul(%q, %kt)\n"
         "  %low = Constant {value=f32[](" +
         low + ")}\n  %c = Where(" + choice +
         ")\n  %p = Softmax(%c) {axis=-1}\n  %y = MatMul(%p, %v)\n";
}

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
        Case{"keys_turned_at_once",
             "  %q = Input {name=\"q\", dtype=f32, shape=[b, 4, s, 8]}\n"
             "  %k = Input {name=\"k\", dtype=f32, shape=[b, t, 4, 8]}\n"
             "  %v = Input {name=\"v\", dtype=f32, shape=[b, 4, t, 8]}\n"
             "  %kh = Transpose(%k) {perm=[0, 2, 1, 3]}\n"
             "  %kt = Transpose(%kh) {perm=[0, 1, 3, 2]}\n"
             "  %m = MatMul(%q, %kt)\n  %p = Softmax(%m) {axis=-1}\n  %y = MatMul(%p, %v)\n",
             "Attention(%0, %3, %2, _, _)", "Softmax"},
        Case{"heads_on_the_axis_of_the_batch", kMerged, "Attention(%0, %1, %2, _, _) {scale=0.35",
             "MatMul"},
        Case{"heads_made_one_axis_with_what_is_not_the_batch_stay",
             with(kMerged, "%q3 = Reshape(%q)",
                  "%qt = Transpose(%q) {perm=[1, 0, 2, 3]}\n  %q3 = Reshape(%qt)"),
             "MatMul", "Attention"},
        Case{"hidden_scores_are_a_bias", hidden("%seen, %scores, %low", "-3.4028235e38"),
             "Attention(", "Softmax"},
        Case{"hidden_scores_by_what_is_hidden_are_a_bias",
             hidden("%seen, %low, %scores", "-3.4028235e38"), "Attention(", "Softmax"},
        Case{"scores_that_are_replaced_by_a_number_that_counts_stay",
             hidden("%seen, %scores, %low", "-10000"), "Softmax", "Attention"},
        Case{"keys_repeated_in_another_order_stay_repeated",
             attention("  %k1 = Unsqueeze(%k) {axes=[1]}\n"
                       "  %k2 = Expand(%k1) {shape=[b, 2, 2, past + s, 8]}\n"
                       "  %k3 = Reshape(%k2) {shape=[b, 4, past + s, 8]}\n"
                       "  %v1 = Unsqueeze(%v) {axes=[1]}\n"
                       "  %v2 = Expand(%v1) {shape=[b, 2, 2, past + s, 8]}\n"
                       "  %v3 = Reshape(%v2) {shape=[b, 4, past + s, 8]}\n",
                       "  %y = Attention(%q, %k3, %v3, _, _) {scale=0.35}\n"),
             "Expand"},
        Case{"keys_that_are_not_turned_stay",
             "  %q = Input {name=\"q\", dtype=f32, shape=[b, 4, 8, 8]}\n"
             "  %k = Input {name=\"k\", dtype=f32, shape=[b, 4, 8, 8]}\n"
             "  %v = Input {name=\"v\", dtype=f32, shape=[b, 4, 8, 8]}\n"
             "  %m = MatMul(%q, %k)\n  %p = Softmax(%m) {axis=-1}\n  %y = MatMul(%p, %v)\n",
             "Softmax", "Attention"},
        Case{"a_scale_for_each_head_stays",
             attention(kRepeated + "  %kt = Transpose(%k3) {perm=[0, 1, 3, 2]}\n"
                                   "  %m = MatMul(%q, %kt)\n"
                                   "  %h = Param {name=\"h\", dtype=f32, shape=[4, 1, 1]}\n"
                                   "  %scores = Binary(%m, %h) {fn=mul}\n"
                                   "  %p = Softmax(%scores) {axis=-1}\n",
                       "  %y = MatMul(%p, %v3)\n"),
             "Softmax", "Attention"},
        Case{"softmax_over_queries_stays",
             attention(kRepeated + "  %kt = Transpose(%k3) {perm=[0, 1, 3, 2]}\n"
                                   "  %m = MatMul(%q, %kt)\n  %p = Softmax(%m) {axis=2}\n",
                       "  %y = MatMul(%p, %v3)\n"),
             "Softmax", "Attention"}),
    name_of);

const std::string kPast = "  %p = Input {name=\"p\", dtype=f32, shape=[b, 2, past, 8]}\n";
const std::string kNew = "  %n = Input {name=\"n\", dtype=f32, shape=[b, 2, s, 8]}\n";

INSTANTIATE_TEST_SUITE_P(
    Caches, Recognize,
    ::testing::Values(
        Case{"an_input_grows", kPast + kNew + "  %y = Concat(%p, %n) {axis=-2}\n",
             "CacheAppend(%0, %1)", "Concat"},
        Case{"a_computed_value_stays",
             kPast + kNew + "  %c = Unary(%p) {fn=neg}\n  %y = Concat(%c, %n) {axis=2}\n", "Concat",
             "CacheAppend"},
        Case{"another_axis_stays", kPast + "  %y = Concat(%p, %p) {axis=1}\n", "Concat",
             "CacheAppend"},
        Case{"three_parts_stay", kPast + kNew + "  %y = Concat(%p, %n, %n) {axis=2}\n", "Concat",
             "CacheAppend"}),
    name_of);

TEST(Recognize, KeepsTheNumbers) {
  const std::map<std::string, int64_t> sizes = {{"b", 2}, {"s", 2}, {"past", 3}};
  expect_same_numbers(rope("%a", "  %y = Binary(%p, %q) {fn=add}\n"), {{"b", 2}, {"s", 2}});
  expect_same_numbers(kMerged, {{"b", 2}, {"s", 2}, {"t", 3}});
  expect_same_numbers(hidden("%seen, %scores, %low", "-3.4028235e38"),
                      {{"b", 2}, {"s", 3}, {"t", 2}});
  expect_same_numbers(kRms, {{"b", 2}, {"s", 2}});
  expect_same_numbers(kLayer, {{"b", 2}, {"s", 2}});
  expect_same_numbers(attention(kRepeated, "  %y = Attention(%q, %k3, %v3, _, _) {scale=0.35}\n"),
                      sizes);
}

}  // namespace
}  // namespace tranship::passes
