#include "exporters/shapes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing.h"
#include "ir/text.h"

namespace tranship::exporters {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

/// A prompt's graph and a step's, as tasks make them.
ir::Program program() {
  ir::Program out;
  out.components.push_back({"prefill",
                            ir::parse(R"(graph prefill
  %0 = Input {name="input_ids", dtype=i64, shape=[batch, sequence]}
  %1 = Input {name="attention_mask", dtype=i64, shape=[batch, sequence]}
  output a %0
  output b %1
end
)"),
                            {}});
  out.components.push_back({"decode",
                            ir::parse(R"(graph decode
  range past 0 any
  %0 = Input {name="input_ids", dtype=i64, shape=[batch, 1]}
  %1 = Input {name="attention_mask", dtype=i64, shape=[batch, past + 1]}
  %2 = Input {name="input.cache.keys", dtype=f32, shape=[batch, 2, past, 4]}
  output a %0
  output b %1
  output c %2
end
)"),
                            {{.name = "cache.keys", .input = "input.cache.keys", .output = "c"}}});
  return out;
}

ir::Program forward_program() {
  ir::Program out = program();
  out.components.pop_back();
  return out;
}

NamedTensors samples(int64_t batch, int64_t length) {
  return {{"input_ids", Tensor(DType::kI64, {batch, length})}};
}

ShapePlan plan_shapes(const ir::Program& p, const NamedTensors& sample_inputs,
                      const OnnxConfig& config) {
  return exporters::plan_shapes(p, sample_inputs, config);
}

std::string message_of(const ir::Program& p, const NamedTensors& sample_inputs,
                       const OnnxConfig& config, ErrorKind kind = ErrorKind::kInvalidArgument) {
  const Error error = error_of([&] { plan_shapes(p, sample_inputs, config); });
  EXPECT_EQ(error.kind(), kind) << error.what();
  return error.what();
}

std::string input_type(const ir::Program& p, size_t component, size_t input) {
  const ir::Graph& graph = *p.components[component].graph;
  return graph.type(graph.inputs()[input]->outputs[0]).text();
}

TEST(Shapes, dynamic_leaves_all_axes_open) {
  const ShapePlan plan = plan_shapes(program(), {}, {.dynamic = true});
  EXPECT_THAT(plan.sizes, IsEmpty());
  EXPECT_THAT(plan.ranges, IsEmpty());
  EXPECT_THAT(plan.examples, ElementsAre(Pair("batch", 2), Pair("past", 8), Pair("sequence", 8)));
}

TEST(Shapes, samples_fix_what_is_not_dynamic) {
  ir::Program p = forward_program();
  apply_shapes(plan_shapes(p, samples(3, 7), {}), p);
  EXPECT_EQ(input_type(p, 0, 0), "i64[3, 7]");
  EXPECT_EQ(input_type(p, 0, 1), "i64[3, 7]");
}

TEST(Shapes, samples_of_a_dynamic_export_are_its_examples) {
  const ShapePlan plan = plan_shapes(forward_program(), samples(3, 7), {.dynamic = true});
  EXPECT_THAT(plan.sizes, IsEmpty());
  EXPECT_THAT(plan.examples, ElementsAre(Pair("batch", 3), Pair("sequence", 7)));
}

TEST(Shapes, static_shapes_fix_and_the_cache_still_grows) {
  ir::Program p = program();
  apply_shapes(plan_shapes(p, {}, {.static_shapes = {{"batch", 1}, {"sequence", 128}}}), p);
  EXPECT_EQ(input_type(p, 0, 0), "i64[1, 128]");
  EXPECT_EQ(input_type(p, 1, 1), "i64[1, past + 1]");
  EXPECT_EQ(input_type(p, 1, 2), "f32[1, 2, past, 4]");
}

TEST(Shapes, a_named_cache_length_is_fixed_too) {
  ir::Program p = program();
  apply_shapes(plan_shapes(p, {}, {.dynamic = true, .static_shapes = {{"past", 15}}}), p);
  EXPECT_EQ(input_type(p, 1, 1), "i64[batch, 16]");
  EXPECT_EQ(input_type(p, 0, 0), "i64[batch, sequence]");
}

TEST(Shapes, dims_leave_axes_open_and_record_their_ranges) {
  ir::Program p = program();
  apply_shapes(
      plan_shapes(p, {},
                  {.dynamic = true,
                   .dims = {{"sequence", {"sequence", 2, 64}}, {"past", {"past", 0, 63}}}}),
      p);
  EXPECT_EQ(p.components[0].graph->symbols().at("sequence"), (ir::Range{2, 64}));
  EXPECT_FALSE(p.components[1].graph->symbols().contains("sequence"));
  EXPECT_EQ(p.components[1].graph->symbols().at("past"), (ir::Range{0, 63}));
}

TEST(Shapes, dynamic_shapes_open_what_they_name_and_fix_the_rest) {
  ir::Program p = forward_program();
  const OnnxConfig config = {.dynamic = true,
                             .dynamic_shapes = {{"input_ids", {{1, {"seq", 2, 9}}}},
                                                {"attention_mask", {{1, {"seq", 2, 9}}}}}};
  apply_shapes(plan_shapes(p, samples(3, 7), config), p);
  EXPECT_EQ(input_type(p, 0, 0), "i64[3, sequence]");
  EXPECT_EQ(p.components[0].graph->symbols().at("sequence"), (ir::Range{2, 9}));
}

TEST(Shapes, examples_lie_in_their_ranges) {
  const ShapePlan plan = plan_shapes(
      program(), {},
      {.dynamic = true, .dims = {{"batch", {"batch", 5, {}}}, {"sequence", {"sequence", 1, 4}}}});
  EXPECT_EQ(plan.examples.at("batch"), 5);
  EXPECT_EQ(plan.examples.at("sequence"), 4);
}

TEST(Shapes, an_example_has_some_of_the_pieces_that_an_axis_consists_of) {
  ir::Program p = forward_program();
  p.components[0].graph->set_range("sequence", {.min = 16, .max = {}});
  EXPECT_EQ(plan_shapes(p, {}, {.dynamic = true}).examples.at("sequence"), 64);
  p.components[0].graph->set_range("sequence", {.min = 16, .max = 40});
  EXPECT_EQ(plan_shapes(p, {}, {.dynamic = true}).examples.at("sequence"), 40);
}

TEST(Shapes, unknown_sizes_say_how_to_give_them) {
  const std::string message = message_of(program(), {}, {});
  EXPECT_THAT(message, HasSubstr("the size of 'batch', 'sequence' is not known"));
  EXPECT_THAT(message, HasSubstr("--static batch=N,sequence=N"));
  EXPECT_THAT(message, HasSubstr("--dynamic"));
}

TEST(Shapes, contradictions_are_errors) {
  const ir::Program p = forward_program();
  EXPECT_THAT(message_of(p,
                         {{"input_ids", Tensor(DType::kI64, {2, 7})},
                          {"attention_mask", Tensor(DType::kI64, {2, 8})}},
                         {}),
              HasSubstr("disagree on 'sequence': 8, and 7 in 'input_ids'"));
  EXPECT_THAT(message_of(p, samples(2, 7), {.static_shapes = {{"batch", 1}}}),
              HasSubstr("'batch' is 2 in the sample inputs and 1"));
  EXPECT_THAT(message_of(p, samples(2, 7), {.dims = {{"batch", {"batch", 3, 4}}}}),
              HasSubstr("outside of its range, 3 to 4"));
  EXPECT_THAT(
      message_of(
          p, {},
          {.dynamic = true, .static_shapes = {{"batch", 1}}, .dims = {{"batch", {"batch"}}}}),
      HasSubstr("choose one"));
  EXPECT_THAT(message_of(p, {}, {.dynamic = true, .static_shapes = {{"batch", 0}}}),
              HasSubstr("expected 1 to 2147483647"));
  EXPECT_THAT(message_of(p, {}, {.dynamic = true, .static_shapes = {{"batch", 1000000000000}}}),
              HasSubstr("the size of 'batch' is 1000000000000, expected 1 to 2147483647"));
  EXPECT_THAT(
      message_of(p, {},
                 {.dynamic = true, .static_shapes = {{"batch", 2000000}, {"sequence", 2000000}}}),
      HasSubstr("'batch = 2000000', 'sequence = 2000000': together 4e+12 places"));
  EXPECT_THAT(message_of(p, {}, {.dynamic = true, .dims = {{"batch", {"batch", 0, 2}}}}),
              HasSubstr("the range of 'batch' begins at 0, expected 1 or more"));
  EXPECT_THAT(message_of(p, {}, {.dynamic = true, .dims = {{"batch", {"batch", 3, 2}}}}),
              HasSubstr("3 to 2"));
  EXPECT_THAT(message_of(p, {{"input_ids", Tensor(DType::kF32, {2, 7})}}, {}),
              HasSubstr("is f32 of rank 2, expected i64[batch, sequence]"));
}

TEST(Shapes, unknown_axes_and_inputs_are_errors) {
  const ir::Program p = program();
  EXPECT_THAT(message_of(p, {}, {.dynamic = true, .static_shapes = {{"height", 1}}}),
              HasSubstr("no axis is called 'height'"));
  EXPECT_THAT(message_of(p, {}, {.dynamic = true, .dims = {{"width", {"width"}}}}),
              HasSubstr("axes are 'batch', 'past', 'sequence'"));
  EXPECT_THAT(message_of(p, {}, {.dynamic_shapes = {{"pixels", {{0, {"b"}}}}}}),
              HasSubstr("no input 'pixels'"));
  EXPECT_THAT(message_of(p, {}, {.dynamic_shapes = {{"input_ids", {{2, {"b"}}}}}}),
              HasSubstr("no axis 2"));
  EXPECT_THAT(message_of(p, {}, {.dynamic_shapes = {{"cache.keys", {{1, {"h"}}}}}}),
              HasSubstr("one size only"));
}

TEST(Shapes, names_of_dynamic_shapes_are_sizes) {
  const ir::Program p = forward_program();
  EXPECT_THAT(message_of(p, samples(2, 7),
                         {.dynamic_shapes = {{"attention_mask", {{1, {"t"}}}},
                                             {"input_ids", {{1, {"s"}}}}}}),
              HasSubstr("'t' and 's' are one size"));
  EXPECT_THAT(
      message_of(p, samples(7, 7), {.dynamic_shapes = {{"input_ids", {{0, {"n"}}, {1, {"n"}}}}}},
                 ErrorKind::kUnsupported),
      HasSubstr("'batch' and 'sequence' one size"));
  EXPECT_THAT(message_of(p, samples(2, 7),
                         {.dynamic_shapes = {{"attention_mask", {{1, {"s", 1, 9}}}},
                                             {"input_ids", {{1, {"s", 1, 8}}}}}}),
              HasSubstr("two ranges"));
}

}  // namespace
}  // namespace tranship::exporters
