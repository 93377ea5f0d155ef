// Which masks are read as the rule that they follow, and which keep their bias.
#include "passes/recognize/testing.h"
#include "tranship/error.h"

namespace tranship::passes {
namespace {

class Masks : public ::testing::TestWithParam<Case> {};
TEST_P(Masks, AreReadAsTheirRule) { expect_recognized(GetParam()); }

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
    Rules, Masks,
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
    name_of);

// Flags [c, t] read at each row and key, as Transformers' masks do.
const std::string kRead =
    "  %flags = Input {name=\"flags\", dtype=bool, shape=[c, t]}\n"
    "  %bi = Iota {count=b}\n  %bu = Unsqueeze(%bi) {axes=[1, 2, 3]}\n"
    "  %be = Expand(%bu) {shape=[b, 1, 1, past + s]}\n"
    "  %ti = Iota {count=past + s}\n  %te = Expand(%ti) {shape=[b, 1, 1, past + s]}\n"
    "  %b1 = Unsqueeze(%be) {axes=[-1]}\n  %t1 = Unsqueeze(%te) {axes=[-1]}\n"
    "  %at = Concat(%b1, %t1) {axis=-1}\n  %mask = GatherNd(%flags, %at) {batch_dims=0}\n";
const std::string kOfNumbers =
    "  %o = Constant {value=f32[](0)}\n  %low = Constant {value=f32[](-3.4028235e38)}\n";
const std::string kLearned = "  %l = Param {name=\"l\", dtype=f32, shape=[4, 1, 1]}\n";

INSTANTIATE_TEST_SUITE_P(
    Readings, Masks,
    ::testing::Values(
        Case{"flags_of_more_rows_and_keys_are_cut", attention(kRead, kMasked),
             "Gather(%5, %6) {axis=1}", "GatherNd"},
        Case{"flags_of_the_next_key_keep_their_bias",
             attention(with(with(kRead, "Expand(%ti)", "Expand(%tn)"), "  %te",
                            "  %i1 = Constant {value=i64[](1)}\n"
                            "  %tn = Binary(%ti, %i1) {fn=add}\n  %te"),
                       kMasked),
             "GatherNd"},
        Case{"what_is_always_true_is_no_mask",
             attention("  %i = Iota {count=s}\n  %z = Constant {value=i64[](0)}\n"
                       "  %ge = Compare(%i, %z) {fn=ge}\n  %row = Unsqueeze(%ge) {axes=[0, 1, 3]}\n"
                       "  %mask = Expand(%row) {shape=[b, 1, s, past + s]}\n",
                       kMasked),
             "Attention(%0, %1, %2, _, _) {scale=0.35, causal=false, window=none}", "Compare"},
        Case{"what_is_false_of_the_first_query_keeps_its_bias",
             attention("  %i = Iota {count=s}\n  %z = Constant {value=i64[](0)}\n"
                       "  %ge = Compare(%i, %z) {fn=gt}\n  %row = Unsqueeze(%ge) {axes=[0, 1, 3]}\n"
                       "  %mask = Expand(%row) {shape=[b, 1, s, past + s]}\n",
                       kMasked),
             "Compare"},
        Case{"flags_of_each_query_keep_their_bias",
             attention("  %mask = Input {name=\"m\", dtype=bool, shape=[b, 1, s, past + s]}\n",
                       kMasked),
             "Attention(%0, %1, %2, _, %4) {scale=0.35, causal=false, window=none}"},
        Case{"flags_of_each_row_and_key_are_of_keys",
             attention("  %mask = Input {name=\"m\", dtype=bool, shape=[b, 1, 1, past + s]}\n",
                       kMasked),
             ", _) {scale=0.35, causal=false, window=none}"},
        Case{"flags_of_each_head_keep_their_bias",
             attention("  %mask = Input {name=\"m\", dtype=bool, shape=[b, 4, 1, past + s]}\n",
                       kMasked),
             "Attention(%0, %1, %2, _, %4) {scale=0.35, causal=false, window=none}"}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Numbers, Masks,
    ::testing::Values(
        Case{"a_learned_bias_is_causal_beside_it",
             attention(kCausalMask + kOfNumbers + kLearned + "  %mask = Where(%causal, %l, %low)\n",
                       kMasked),
             "{scale=0.35, causal=true, window=none}", "Where"},
        Case{"a_causal_bias_is_added_to_a_learned_one",
             attention(kCausalMask + kOfNumbers + kLearned +
                           "  %hidden = Where(%causal, %o, %low)\n"
                           "  %mask = Binary(%l, %hidden) {fn=add}\n",
                       kMasked),
             "{scale=0.35, causal=true, window=none}", "Where"},
        Case{"a_learned_bias_with_padding_stays_one_of_numbers",
             attention(kRead + kOfNumbers + kLearned + "  %bias = Where(%mask, %l, %low)\n",
                       with(kMasked, "%mask", "%bias")),
             "Where", "GatherNd"},
        Case{"a_bias_that_lets_through_what_it_hides_stays",
             attention(kCausalMask + with(kOfNumbers, "-3.4028235e38", "-10000") +
                           "  %mask = Where(%causal, %o, %low)\n",
                       kMasked),
             "Where", "causal=true"},
        Case{"a_bias_that_hides_what_is_causal_stays",
             attention(kCausalMask + kOfNumbers + "  %mask = Where(%causal, %low, %o)\n", kMasked),
             "Where", "causal=true"}),
    name_of);

/// An Attention of 3 queries and 4 keys with a constant mask.
std::string with_constant(const std::string& seen) {
  return "  %q = Input {name=\"q\", dtype=f32, shape=[b, 4, 3, 8]}\n"
         "  %k = Input {name=\"k\", dtype=f32, shape=[b, 4, 4, 8]}\n"
         "  %v = Input {name=\"v\", dtype=f32, shape=[b, 4, 4, 8]}\n"
         "  %mask = Constant {value=bool[1, 1, 3, 4](" +
         seen + ")}\n" + kMasked;
}

INSTANTIATE_TEST_SUITE_P(
    Constants, Masks,
    ::testing::Values(
        Case{"causal_element_by_element", with_constant("1, 1, 0, 0, 1, 1, 1, 0, 1, 1, 1, 1"),
             "Attention(%0, %1, %2, _, _) {scale=0.35, causal=true, window=none}"},
        Case{"one_extra_element_keeps_its_bias",
             with_constant("1, 1, 0, 1, 1, 1, 1, 0, 1, 1, 1, 1"),
             "Attention(%0, %1, %2, _, %3) {scale=0.35, causal=false, window=none}"},
        Case{"one_element_less_keeps_its_bias", with_constant("1, 1, 0, 0, 0, 1, 1, 0, 1, 1, 1, 1"),
             "Attention(%0, %1, %2, _, %3) {scale=0.35, causal=false, window=none}"},
        Case{"a_window_element_by_element", with_constant("1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 1, 1"),
             "Attention(%0, %1, %2, _, _) {scale=0.35, causal=true, window=2}"},
        Case{"all_true", with_constant("1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1"),
             "Attention(%0, %1, %2, _, _) {scale=0.35, causal=false, window=none}"},
        Case{"all_false_keeps_its_bias", with_constant("0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0"),
             "Attention(%0, %1, %2, _, %3) {scale=0.35, causal=false, window=none}"}),
    name_of);

TEST(MaskNumbers, StayTheSame) {
  const std::map<std::string, int64_t> sizes = {{"b", 2}, {"s", 2}, {"past", 3}};
  std::map<std::string, int64_t> longer = sizes;
  longer.insert({{"c", 3}, {"t", 7}});
  expect_same_numbers(attention(kBoth, kMasked), sizes);
  expect_same_numbers(attention(kRead, kMasked), longer);
  expect_same_numbers(
      attention(kRead + kOfNumbers + kLearned + "  %bias = Where(%mask, %l, %low)\n",
                with(kMasked, "%mask", "%bias")),
      longer);
  expect_same_numbers(attention(kCausalMask + kOfNumbers + kLearned +
                                    "  %hidden = Where(%causal, %o, %low)\n"
                                    "  %mask = Binary(%l, %hidden) {fn=add}\n",
                                kMasked),
                      sizes);
}

TEST(MaskNumbers, FlagsOfTooFewKeysAreRefused) {
  GraphPtr graph = graph_of(attention(kRead, kMasked));
  recognize(graph);
  specialize(graph, {{"b", 2}, {"s", 2}, {"past", 3}, {"c", 2}, {"t", 4}});
  EXPECT_THROW(numbers_of(graph), Error);
}

}  // namespace
}  // namespace tranship::passes
