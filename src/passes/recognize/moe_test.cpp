// Transformers' two spellings of a mixture of experts, and what only looks like them.
#include "passes/recognize/testing.h"

namespace tranship::passes {
namespace {

class Experts : public ::testing::TestWithParam<Case> {};
TEST_P(Experts, BecomeMoe) { expect_recognized(GetParam()); }

// 3 experts, 2 of them for each of t tokens of 4 numbers; 5 numbers inside an expert.
const std::string kRouter =
    "  %x = Input {name=\"x\", dtype=f32, shape=[t, 4]}\n"
    "  %gate = Param {name=\"gate\", dtype=f32, shape=[3, 4]}\n"
    "  %gate_up = Param {name=\"gate_up\", dtype=f32, shape=[3, 10, 4]}\n"
    "  %down = Param {name=\"down\", dtype=f32, shape=[3, 4, 5]}\n"
    "  %logits = Linear(%x, %gate, _)\n  %p = Softmax(%logits) {axis=1}\n"
    "  %share, %expert = TopK(%p) {axis=1, k=2, largest=true, sorted=true}\n"
    "  %shares = Reshape(%share) {shape=[2*t]}\n  %experts = Reshape(%expert) {shape=[2*t]}\n";
const std::string kGate =
    "  %g = Slice(%both) {axis=1, begin=0, end=5, step=1}\n"
    "  %u = Slice(%both) {axis=1, begin=5, end=10, step=1}\n"
    "  %s = Activation(%g) {fn=silu}\n  %inner = Binary(%s, %u) {fn=mul}\n";

const std::string kBatched =
    kRouter +
    "  %x1 = Unsqueeze(%x) {axes=[1]}\n  %x2 = Expand(%x1) {shape=[t, 2, 4]}\n"
    "  %rows = Reshape(%x2) {shape=[2*t, 4]}\n"
    "  %wg = Gather(%gate_up, %experts) {axis=0}\n  %column = Unsqueeze(%rows) {axes=[2]}\n"
    "  %b3 = MatMul(%wg, %column)\n  %both = Squeeze(%b3) {axes=[2]}\n" +
    kGate +
    "  %wd = Gather(%down, %experts) {axis=0}\n  %c2 = Unsqueeze(%inner) {axes=[2]}\n"
    "  %d3 = MatMul(%wd, %c2)\n  %made = Squeeze(%d3) {axes=[2]}\n"
    "  %by = Unsqueeze(%shares) {axes=[1]}\n  %weighted = Binary(%made, %by) {fn=mul}\n"
    "  %slots = Reshape(%weighted) {shape=[t, 2, 4]}\n"
    "  %y = Reduce(%slots) {fn=sum, axes=[1], keepdims=false}\n";

/// Scan over the experts: rows [begin, end) get the product with theirs.
std::string grouped(const std::string& name, const std::string& weights, const std::string& rows,
                    int in, int out) {
  const std::string i = std::to_string(in), o = std::to_string(out);
  return "  %" + name + "t = Transpose(%" + weights + ") {perm=[0, 2, 1]}\n  %" + name +
         "0 = Full(%f0) {shape=[2*t, " + o + "]}\n  %" + name + " = Scan(%" + name + "0, %" + name +
         "t, %begins, %ends, %" + rows +
         ", %numbers) {num_carried=1, num_scanned=3}\n"
         "    graph group\n"
         "      %0 = Input {name=\"sum\", dtype=f32, shape=[2*t, " +
         o +
         "]}\n"
         "      %1 = Input {name=\"weight\", dtype=f32, shape=[" +
         i + ", " + o +
         "]}\n"
         "      %2 = Input {name=\"begin\", dtype=i64, shape=[]}\n"
         "      %3 = Input {name=\"end\", dtype=i64, shape=[]}\n"
         "      %4 = Input {name=\"x\", dtype=f32, shape=[2*t, " +
         i +
         "]}\n"
         "      %5 = Input {name=\"row\", dtype=i64, shape=[2*t]}\n"
         "      %6 = Compare(%5, %3) {fn=lt}\n      %7 = Compare(%2, %5) {fn=le}\n"
         "      %8 = Binary(%7, %6) {fn=and}\n      %9 = MatMul(%4, %1)\n"
         "      %10 = Unsqueeze(%8) {axes=[1]}\n      %11 = Where(%10, %9, %0)\n"
         "      output new_sum %11\n    end\n";
}

const std::string kCounted =
    "  %wide = Cast(%sorted) {to=f32}\n  %f0 = Constant {value=f32[](0)}\n"
    "  %per = Constant {value=f32[](1.5)}\n  %f2 = Constant {value=f32[](2)}\n"
    "  %scaled = Binary(%wide, %per) {fn=mul}\n  %bin = Unary(%scaled) {fn=floor}\n"
    "  %least = Binary(%bin, %f2) {fn=min}\n"
    "  %bins = Constant {value=f32[3, 1](0, 1, 2)}\n  %row = Unsqueeze(%least) {axes=[0]}\n"
    "  %hit = Compare(%row, %bins) {fn=eq}\n  %one = Cast(%hit) {to=f32}\n"
    "  %count = Reduce(%one) {fn=sum, axes=[1], keepdims=false}\n"
    "  %narrow = Cast(%count) {to=i32}\n  %sums = CumSum(%narrow) {axis=0}\n"
    "  %ends = Cast(%sums) {to=i64}\n  %i0 = Constant {value=i64[1](0)}\n"
    "  %others = Slice(%ends) {axis=0, begin=0, end=2, step=1}\n"
    "  %begins = Concat(%i0, %others) {axis=0}\n";

const std::string kGrouped =
    kRouter +
    "  %sorted, %order = TopK(%experts) {axis=0, k=2*t, largest=false, sorted=true}\n"
    "  %two = Constant {value=i64[](2)}\n  %token = Binary(%order, %two) {fn=floor_div}\n"
    "  %rows = Gather(%x, %token) {axis=0}\n  %moved = Gather(%shares, %order) {axis=0}\n" +
    kCounted + "  %numbers = Iota {count=2*t}\n" + grouped("both", "gate_up", "rows", 4, 10) +
    kGate + grouped("made", "down", "inner", 5, 4) +
    "  %by = Unsqueeze(%moved) {axes=[1]}\n  %weighted = Binary(%made, %by) {fn=mul}\n"
    "  %zero = Constant {value=i64[](0)}\n  %empty = Expand(%zero) {shape=[2*t]}\n"
    "  %places = Unsqueeze(%order) {axes=[1]}\n"
    "  %back = ScatterNd(%empty, %places, %numbers) {reduction=none}\n"
    "  %slot = Gather(%weighted, %back) {axis=0}\n"
    "  %slots = Reshape(%slot) {shape=[t, 2, 4]}\n"
    "  %y = Reduce(%slots) {fn=sum, axes=[1], keepdims=false}\n";

INSTANTIATE_TEST_SUITE_P(
    Spellings, Experts,
    ::testing::Values(Case{"in_groups", kGrouped, "Moe(%0, %7, %6, %2, %3) {fn=silu}", "Scan"},
                      Case{"with_copies", kBatched, "Moe(%0, %7, %6, %2, %3) {fn=silu}", "MatMul"},
                      Case{"with_another_activation", with(kGrouped, "fn=silu", "fn=gelu"),
                           "{fn=gelu}", "Scan"}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    NearGroups, Experts,
    ::testing::Values(
        Case{"the_largest_first_stays", with(kGrouped, "largest=false", "largest=true"), "Scan",
             "Moe"},
        Case{"tokens_of_other_slots_stay",
             with(kGrouped, "%two = Constant {value=i64[](2)}", "%two = Constant {value=i64[](3)}"),
             "Scan", "Moe"},
        Case{"shares_in_another_order_stay",
             with(kGrouped, "Gather(%shares, %order)", "Gather(%shares, %token)"), "Scan", "Moe"},
        Case{"counts_of_other_bins_stay", with(kGrouped, "f32[](1.5)", "f32[](0.5)"), "Scan",
             "Moe"},
        Case{"bins_in_another_order_stay",
             with(kGrouped, "f32[3, 1](0, 1, 2)", "f32[3, 1](0, 2, 1)"), "Scan", "Moe"},
        Case{"halves_that_change_places_stay",
             with(kGrouped, "%s = Activation(%g) {fn=silu}\n  %inner = Binary(%s, %u)",
                  "%s = Activation(%u) {fn=silu}\n  %inner = Binary(%s, %g)"),
             "Scan", "Moe"},
        Case{"slots_that_are_not_put_back_stay",
             with(kGrouped, "Gather(%weighted, %back)", "Gather(%weighted, %order)"), "Scan",
             "Moe"},
        Case{"the_mean_of_slots_stays",
             with(kGrouped, "%y = Reduce(%slots) {fn=sum", "%y = Reduce(%slots) {fn=mean"), "Scan",
             "Moe"},
        Case{"groups_that_begin_elsewhere_stay",
             with(kGrouped, "%i0 = Constant {value=i64[1](0)}", "%i0 = Constant {value=i64[1](1)}"),
             "Scan", "Moe"},
        Case{"experts_that_are_given_stay",
             with(kGrouped, "%experts = Reshape(%expert) {shape=[2*t]}",
                  "%experts = Input {name=\"e\", dtype=i64, shape=[2*t]}"),
             "Scan", "Moe"}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    NearCopies, Experts,
    ::testing::Values(
        Case{"weights_of_other_experts_stay",
             "  %others = Input {name=\"e\", dtype=i64, shape=[2*t]}\n" +
                 with(kBatched, "Gather(%down, %experts)", "Gather(%down, %others)"),
             "MatMul", "Moe"},
        Case{"rows_in_another_order_stay",
             with(with(kBatched, "Unsqueeze(%x) {axes=[1]}", "Unsqueeze(%x) {axes=[0]}"),
                  "shape=[t, 2, 4]", "shape=[2, t, 4]"),
             "MatMul", "Moe"},
        Case{"an_offset_before_the_sum_stays",
             with(kBatched, "%slots = Reshape(%weighted)",
                  "%moved = Binary(%weighted, %by) {fn=add}\n  %slots = Reshape(%moved)"),
             "MatMul", "Moe"}),
    name_of);

TEST(MoeNumbers, StayTheSame) {
  expect_same_numbers(kGrouped, {{"t", 7}});
  expect_same_numbers(kBatched, {{"t", 7}});
}

TEST(MoeNumbers, TheIntermediateValueMayBeUsedElsewhere) {
  const std::string after = nodes_after(kBatched + "  output inner %inner\n");
  EXPECT_NE(after.find("Moe("), std::string::npos) << after;
  EXPECT_NE(after.find("MatMul("), std::string::npos) << after;
}

}  // namespace
}  // namespace tranship::passes
