#include "formats/pt2/lower.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing.h"
#include "formats/pt2/testing.h"
#include "ir/text.h"
#include "passes/passes.h"

namespace tranship::pt2 {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

struct Lowered {
  LoweredGraph graph;
  Unsupported unsupported;
  std::string range_constraints;
};

/// A graph of text, after the passes, as it is written. Each input is an argument of its name.
Lowered lower(const std::string& text, const std::vector<ir::State>& states = {}) {
  std::unique_ptr<ir::Graph> graph = ir::parse(text);
  spell_out_masks(graph);
  passes::run_pipeline(graph, claims);
  std::map<std::string, int64_t> examples;
  std::vector<Leaf> inputs, outputs;
  for (const ir::Node* node : graph->inputs()) {
    const auto& input = ir::as<ir::Input>(*node->op);
    inputs.push_back({input.name, input.name});
    for (const ir::Dim& dim : input.shape.dims) {
      for (const std::string& symbol : dim.symbols()) examples[symbol] = 4;
    }
  }
  for (const ir::Output& output : graph->outputs()) outputs.push_back({output.name, output.name});
  const SymbolTable symbols(*graph, examples);
  Lowered lowered;
  lowered.range_constraints = symbols.range_constraints();
  lowered.graph = lower_graph(*graph, inputs, outputs, states, symbols, lowered.unsupported);
  return lowered;
}

struct Case {
  const char* name;
  const char* lines;     // of a graph that gives %y
  const char* expected;  // nodes, without the return
};

class Lower : public ::testing::TestWithParam<Case> {};

constexpr const char* kInputs =
    "  %x = Input {name=\"x\", dtype=f32, shape=[b, s, 8]}\n"
    "  %i = Input {name=\"i\", dtype=i64, shape=[b, s]}\n"
    "  %m = Input {name=\"m\", dtype=bool, shape=[b, s]}\n"
    "  %w = Input {name=\"w\", dtype=f32, shape=[8]}\n";

TEST_P(Lower, SaysIt) {
  const Lowered lowered =
      lower("graph g\n" + std::string(kInputs) + GetParam().lines + "  output y %y\nend\n");
  EXPECT_TRUE(lowered.unsupported.empty());
  const std::string text = listing(lowered.graph.graph);
  EXPECT_EQ(text.substr(0, text.rfind("return ")), GetParam().expected);
}

const Case kCases[] = {
    {"full", "  %c = Constant {value=f32[](0.5)}\n  %y = Full(%c) {shape=[b, 2]}\n",
     "sym_size_int = aten.sym_size.int(x, 0)\n"
     "full = aten.full.default([sym_size_int, 2], 0.5, dtype=7, device={\"type\":\"cpu\","
     "\"index\":null}, pin_memory=false)\n"},
    {"iota", "  %y = Iota {count=s + 1}\n",
     "sym_size_int = aten.sym_size.int(x, 1)\n"
     "add = _operator.add(sym_size_int, 1)\n"
     "arange = aten.arange.default(add, dtype=5, device={\"type\":\"cpu\",\"index\":null}, "
     "pin_memory=false)\n"},
    {"dim_to_tensor", "  %y = DimToTensor {dim=b*s}\n",
     "sym_size_int = aten.sym_size.int(x, 0)\n"
     "sym_size_int_1 = aten.sym_size.int(x, 1)\n"
     "mul = _operator.mul(sym_size_int, sym_size_int_1)\n"
     "scalar_tensor = aten.scalar_tensor.default(mul, dtype=5, device={\"type\":\"cpu\","
     "\"index\":null}, pin_memory=false)\n"},
    {"cast", "  %y = Cast(%i) {to=f16}\n", "_to_copy = aten._to_copy.default(i, dtype=6)\n"},
    {"unary", "  %y = Unary(%m) {fn=not}\n", "logical_not = aten.logical_not.default(m)\n"},
    {"binary", "  %y = Binary(%x, %w) {fn=sub}\n", "sub = aten.sub.Tensor(x, w)\n"},
    {"scalar_second", "  %c = Constant {value=f32[](2)}\n  %y = Binary(%x, %c) {fn=pow}\n",
     "pow_1 = aten.pow.Tensor_Scalar(x, 2.0)\n"},
    {"scalar_first", "  %c = Constant {value=f32[](2)}\n  %y = Binary(%c, %x) {fn=sub}\n",
     "rsub = aten.rsub.Scalar(x, 2.0)\n"},
    {"scalar_first_of_a_quotient",
     "  %c = Constant {value=f32[](2)}\n  %y = Binary(%c, %x) {fn=div}\n",
     "div = aten.div.Tensor(c_constant_0, x)\n"},
    {"size_as_scalar", "  %c = DimToTensor {dim=s}\n  %y = Binary(%i, %c) {fn=add}\n",
     "sym_size_int = aten.sym_size.int(x, 1)\n"
     "add = aten.add.Scalar(i, sym_size_int)\n"},
    {"division_of_integers", "  %c = Constant {value=i64[](3)}\n  %y = Binary(%i, %c) {fn=div}\n",
     "div = aten.div.Scalar_mode(i, 3, rounding_mode=trunc)\n"},
    {"floor_division", "  %y = Binary(%i, %i) {fn=floor_div}\n",
     "div = aten.div.Tensor_mode(i, i, rounding_mode=floor)\n"},
    {"minimum_with_a_number", "  %c = Constant {value=f32[](2)}\n  %y = Binary(%x, %c) {fn=min}\n",
     "minimum = aten.minimum.default(x, c_constant_0)\n"},
    {"compare", "  %c = Constant {value=i64[](3)}\n  %y = Compare(%i, %c) {fn=le}\n",
     "le = aten.le.Scalar(i, 3)\n"},
    {"compare_turned", "  %c = Constant {value=i64[](3)}\n  %y = Compare(%c, %i) {fn=lt}\n",
     "gt = aten.gt.Scalar(i, 3)\n"},
    {"where", "  %u = Unsqueeze(%m) {axes=[2]}\n  %y = Where(%u, %x, %w)\n",
     "unsqueeze = aten.unsqueeze.default(m, 2)\n"
     "where = aten.where.self(unsqueeze, x, w)\n"},
    {"sum", "  %y = Reduce(%i) {fn=sum, axes=[-1], keepdims=false}\n",
     "sum_1 = aten.sum.dim_IntList(i, [-1], false, dtype=5)\n"},
    {"any", "  %y = Reduce(%m) {fn=any, axes=[0, 1], keepdims=true}\n",
     "any_1 = aten.any.dims(m, [0, 1], true)\n"},
    {"argmax", "  %y = ArgMax(%x) {axis=-1}\n", "argmax = aten.argmax.default(x, 2)\n"},
    {"cumsum", "  %y = CumSum(%i) {axis=-1}\n", "cumsum = aten.cumsum.default(i, 1, dtype=5)\n"},
    {"softmax", "  %y = Softmax(%x) {axis=1}\n", "_softmax = aten._softmax.default(x, 1, false)\n"},
    {"matmul", "  %t = Transpose(%x) {perm=[0, 2, 1]}\n  %y = MatMul(%x, %t)\n",
     "permute = aten.permute.default(x, [0, 2, 1])\nmatmul = aten.matmul.default(x, permute)\n"},
    {"reshape", "  %y = Reshape(%x) {shape=[b, s, 2, 4]}\n",
     "sym_size_int = aten.sym_size.int(x, 0)\n"
     "sym_size_int_1 = aten.sym_size.int(x, 1)\n"
     "reshape = aten.reshape.default(x, [sym_size_int, sym_size_int_1, 2, 4])\n"},
    {"expand", "  %y = Expand(%w) {shape=[b, 3, 8]}\n",
     "sym_size_int = aten.sym_size.int(x, 0)\n"
     "expand = aten.expand.default(w, [sym_size_int, 3, -1])\n"},
    {"unsqueeze_twice", "  %y = Unsqueeze(%i) {axes=[-1, 0]}\n",
     "unsqueeze = aten.unsqueeze.default(i, 0)\n"
     "unsqueeze_1 = aten.unsqueeze.default(unsqueeze, 3)\n"},
    {"squeeze",
     "  %u = Slice(%x) {axis=2, begin=0, end=1, step=1}\n  %y = Squeeze(%u) {axes=[-1]}\n",
     "slice_1 = aten.slice.Tensor(x, 2, 0, 1)\nsqueeze = aten.squeeze.dims(slice_1, [-1])\n"},
    {"slice_to_the_end", "  %y = Slice(%x) {axis=1, begin=1, end=s, step=2}\n",
     "slice_1 = aten.slice.Tensor(x, 1, 1, 9223372036854775807, 2)\n"},
    {"concat", "  %y = Concat(%x, %x) {axis=-1}\n", "cat = aten.cat.default([x, x], 2)\n"},
    {"gather_first_axis", "  %y = Gather(%w, %i) {axis=0}\n",
     "index = aten.index.Tensor(w, [i])\n"},
    {"gather_last_axis", "  %y = Gather(%x, %i) {axis=-1}\n",
     "index = aten.index.Tensor(x, [None, None, i])\n"},
    {"gather_elements", "  %y = GatherElements(%i, %i) {axis=1}\n",
     "lt = aten.lt.Scalar(i, 0)\nsym_size_int = aten.sym_size.int(x, 1)\n"
     "add = aten.add.Scalar(i, sym_size_int)\nwhere = aten.where.self(lt, add, i)\n"
     "gather = aten.gather.default(i, 1, where)\n"},
    {"gather_elements_from_the_front",
     "  %a = ArgMax(%x) {axis=-1}\n  %y = GatherElements(%i, %a) {axis=1}\n",
     "argmax = aten.argmax.default(x, 2)\ngather = aten.gather.default(i, 1, argmax)\n"},
    {"rms_norm", "  %y = RmsNorm(%x, %w) {eps=1e-06}\n",
     "rms_norm = aten.rms_norm.default(x, [8], w, 1e-06)\n"},
    {"layer_norm", "  %y = LayerNorm(%x, %w, _) {eps=1e-05}\n",
     "layer_norm = aten.layer_norm.default(x, [8], w, None, 1e-05)\n"},
    {"gelu_tanh", "  %y = Activation(%x) {fn=gelu_tanh}\n",
     "gelu = aten.gelu.default(x, approximate=tanh)\n"},
    {"quick_gelu_by_parts", "  %y = Activation(%x) {fn=quick_gelu}\n",
     "mul = aten.mul.Scalar(x, 1.7020000219345093)\nsigmoid = aten.sigmoid.default(mul)\n"
     "mul_1 = aten.mul.Tensor(x, sigmoid)\n"},
    {"infinity", "  %c = Constant {value=f32[](-inf)}\n  %y = Binary(%x, %c) {fn=add}\n",
     "add = aten.add.Scalar(x, -Infinity)\n"},
};

INSTANTIATE_TEST_SUITE_P(Operators, Lower, ::testing::ValuesIn(kCases),
                         [](const auto& one) { return one.param.name; });

// ---- attention

std::string attention(const std::string& operands, const std::string& attributes) {
  const Lowered lowered = lower(
      "graph g\n"
      "  %q = Input {name=\"q\", dtype=f32, shape=[b, 4, s, 8]}\n"
      "  %r = Input {name=\"r\", dtype=f32, shape=[b, 4, 1, 8]}\n"
      "  %k = Input {name=\"k\", dtype=f32, shape=[b, 2, s, 8]}\n"
      "  %j = Input {name=\"j\", dtype=f32, shape=[b, 4, s, 8]}\n"
      "  %m = Input {name=\"m\", dtype=bool, shape=[b, s]}\n"
      "  %z = Input {name=\"z\", dtype=f32, shape=[b, 1, s, s]}\n"
      "  %y = Attention(" +
      operands + ") {" + attributes + "}\n  output y %y\nend\n");
  return listing(lowered.graph.graph);
}

TEST(LowerAttention, a_whole_causal_one_needs_no_mask) {
  EXPECT_EQ(attention("%q, %j, %j, _, _", "scale=0.5, causal=true"),
            "scaled_dot_product_attention = aten.scaled_dot_product_attention.default(q, j, j, "
            "is_causal=true, scale=0.5)\nreturn scaled_dot_product_attention\n");
}

TEST(LowerAttention, one_query_sees_all_keys) {
  EXPECT_EQ(attention("%r, %k, %k, _, _", "scale=0.5, causal=true"),
            "scaled_dot_product_attention = aten.scaled_dot_product_attention.default(r, k, k, "
            "scale=0.5, enable_gqa=true)\nreturn scaled_dot_product_attention\n");
}

TEST(LowerAttention, padding_and_windows_become_a_mask) {
  const std::string text = attention("%q, %k, %k, %m, _", "scale=0.5, causal=true, window=3");
  EXPECT_THAT(text, HasSubstr("le = aten.le.Tensor("));
  EXPECT_THAT(text, HasSubstr("gt = aten.gt.Tensor("));
  EXPECT_THAT(text, HasSubstr("scaled_dot_product_attention.default(q, k, k, logical_and_1,"
                              " scale=0.5, enable_gqa=true)"));
  EXPECT_THAT(text, Not(HasSubstr("is_causal")));
}

TEST(LowerAttention, a_bias_is_minus_infinity_where_nothing_is_seen) {
  const std::string text = attention("%q, %j, %j, _, %z", "scale=0.5, causal=true");
  EXPECT_THAT(text, HasSubstr("where = aten.where.self(le, z, c_constant_0)"));
  EXPECT_THAT(text, HasSubstr("default(q, j, j, where, scale=0.5)"));
}

TEST(LowerAttention, layers_share_their_mask) {
  const Lowered lowered = lower(
      "graph g\n"
      "  %q = Input {name=\"q\", dtype=f32, shape=[b, 4, s, 8]}\n"
      "  %m = Input {name=\"m\", dtype=bool, shape=[b, s]}\n"
      "  %y = Attention(%q, %q, %q, %m, _) {scale=0.5, causal=true}\n"
      "  %z = Attention(%y, %q, %q, %m, _) {scale=0.5, causal=true}\n"
      "  output z %z\nend\n");
  const std::string text = listing(lowered.graph.graph);
  EXPECT_THAT(text, HasSubstr("q, logical_and, scale"));
  EXPECT_THAT(text, Not(HasSubstr("logical_and_1")));
}

// ---- names, sizes, weights

TEST(LowerGraph, a_weight_used_twice_is_one_parameter) {
  const Lowered lowered = lower(
      "graph g\n"
      "  %i = Input {name=\"ids\", dtype=i64, shape=[b]}\n"
      "  %w = Param {name=\"model.embed.weight\", dtype=f32, shape=[5, 8]}\n"
      "  %v = Param {name=\"model.embed.weight\", dtype=f32, shape=[5, 8]}\n"
      "  %x = Embedding(%w, %i)\n  %y = Linear(%x, %v, _)\n  output y %y\nend\n");
  EXPECT_THAT(lowered.graph.parameters, ElementsAre("model.embed.weight"));
  EXPECT_THAT(listing(lowered.graph.graph),
              HasSubstr("linear.default(embedding, p_model_embed_weight)"));
  const Json signature = Json::parse(lowered.graph.signature);
  EXPECT_EQ(signature["input_specs"].size(), 2U);
  EXPECT_EQ(signature["input_specs"][0]["parameter"]["parameter_name"], "model.embed.weight");
  EXPECT_EQ(signature["input_specs"][1]["user_input"]["arg"]["as_tensor"]["name"], "ids");
}

TEST(LowerGraph, constants_stand_between_weights_and_inputs) {
  const Lowered lowered = lower(
      "graph g\n"
      "  %i = Input {name=\"ids\", dtype=f32, shape=[2]}\n"
      "  %c = Constant {value=f32[2](1, 2)}\n  %d = Constant {value=f32[2](1, 2)}\n"
      "  %w = Param {name=\"w\", dtype=f32, shape=[2]}\n"
      "  %x = Binary(%i, %c) {fn=mul}\n  %y = Binary(%x, %d) {fn=add}\n"
      "  %z = Binary(%y, %w) {fn=add}\n  output z %z\nend\n");
  ASSERT_EQ(lowered.graph.constants.size(), 1U);  // equal ones are one
  EXPECT_EQ(lowered.graph.constants[0].first, "constant_0");
  const Json graph = Json::parse(lowered.graph.graph);
  std::vector<std::string> inputs;
  for (const Json& input : graph["inputs"]) inputs.push_back(shown(input));
  EXPECT_THAT(inputs, ElementsAre("p_w", "c_constant_0", "ids"));
}

TEST(LowerGraph, names_are_safe_in_python) {
  const Lowered lowered = lower(
      "graph g\n"
      "  %a = Input {name=\"input\", dtype=f32, shape=[2]}\n"
      "  %b = Input {name=\"lambda\", dtype=f32, shape=[2]}\n"
      "  %c = Input {name=\"1.x\", dtype=f32, shape=[2]}\n"
      "  %y = Binary(%a, %b) {fn=add}\n  %z = Binary(%y, %c) {fn=add}\n  output z %z\nend\n");
  EXPECT_EQ(listing(lowered.graph.graph),
            "add = aten.add.Tensor(input_1, lambda_1)\nadd_1 = aten.add.Tensor(add, _1_x)\n"
            "return add_1\n");
}

TEST(LowerGraph, sizes_are_computed_once_from_inputs_that_have_them) {
  const Lowered lowered = lower(
      "graph g\n  range past 0 64\n"
      "  %m = Input {name=\"m\", dtype=f32, shape=[b, past + 1]}\n"
      "  %k = Input {name=\"k\", dtype=f32, shape=[b, past]}\n"
      "  %y = Reshape(%m) {shape=[b*past + b]}\n  %z = Reshape(%k) {shape=[past*b]}\n"
      "  output y %y\n  output z %z\nend\n");
  EXPECT_EQ(listing(lowered.graph.graph),
            "sym_size_int = aten.sym_size.int(m, 0)\n"
            "sym_size_int_1 = aten.sym_size.int(k, 1)\n"
            "mul = _operator.mul(sym_size_int, sym_size_int_1)\n"
            "add = _operator.add(sym_size_int, mul)\n"
            "reshape = aten.reshape.default(m, [add])\n"
            "reshape_1 = aten.reshape.default(k, [mul])\nreturn reshape, reshape_1\n");
  EXPECT_EQ(Json::parse(lowered.range_constraints),
            Json::parse(R"({"s0": {"min_val": 1, "max_val": null},
                            "s1": {"min_val": 0, "max_val": 64}})"));
  const Json values = Json::parse(lowered.graph.graph)["tensor_values"];
  EXPECT_EQ(
      values["m"]["sizes"][1]["as_expr"],
      Json::parse(R"j({"expr_str": "Add(Symbol('s1', positive=True, integer=True), Integer(1))",
                             "hint": {"as_int": 5}})j"));
}

TEST(LowerGraph, a_size_of_no_input_is_unsupported) {
  const Error error = error_of([] {
    lower(
        "graph g\n  %m = Input {name=\"m\", dtype=f32, shape=[n + 1]}\n"
        "  %y = Iota {count=n}\n  output y %y\nend\n");
  });
  EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
  EXPECT_THAT(error.what(), HasSubstr("'n'"));
}

TEST(LowerGraph, what_is_assumed_of_sizes_is_checked) {
  const Lowered lowered = lower(
      "graph g\n  %x = Input {name=\"x\", dtype=f32, shape=[a]}\n"
      "  %y = Input {name=\"y\", dtype=f32, shape=[b]}\n"
      "  %z = Binary(%x, %y) {fn=add}\n  output z %z\nend\n");
  EXPECT_EQ(listing(lowered.graph.graph),
            "sym_size_int = aten.sym_size.int(x, 0)\nsym_size_int_1 = aten.sym_size.int(y, 0)\n"
            "eq = _operator.eq(sym_size_int, sym_size_int_1)\n"
            "aten._assert_scalar.default(eq, a is b)\n"
            "add = aten.add.Tensor(x, y)\nreturn add\n");
}

TEST(LowerGraph, an_input_may_be_an_output) {
  const Lowered lowered =
      lower("graph g\n  %x = Input {name=\"x\", dtype=f32, shape=[2]}\n  output y %x\nend\n");
  EXPECT_EQ(listing(lowered.graph.graph), "return x\n");
}

constexpr const char* kSlots =
    "graph g\n  %k = Input {name=\"input.k\", dtype=f32, shape=[b, 2, t, 8]}\n"
    "  %n = Input {name=\"input.n\", dtype=i64, shape=[]}\n"
    "  %x = Input {name=\"x\", dtype=f32, shape=[b, 2, s, 8]}\n"
    "  %i = Iota {count=s}\n  %j = Binary(%i, %n) {fn=add}\n"
    "  %u = Unsqueeze(%j) {axes=[0, 1, 3]}\n  %e = Expand(%u) {shape=[b, 2, s, 8]}\n"
    "  %w = ScatterElements(%k, %e, %x) {axis=2}\n"
    "  %c = DimToTensor {dim=s}\n  %m = Binary(%n, %c) {fn=add}\n";

const std::vector<ir::State> kSlotStates = {
    {.name = "k", .kind = ir::State::Kind::kSlots, .input = "input.k", .output = "output.k"},
    {.name = "n", .kind = ir::State::Kind::kCounter, .input = "input.n", .output = "output.n"}};

constexpr const char* kTwoScans = R"(graph g
  %x = Input {name="x", dtype=f32, shape=[l, b, 8]}
  %s = Input {name="s", dtype=f32, shape=[b, 8]}
  %t, %a = Scan(%s, %x) {num_carried=1, num_scanned=1}
    graph one
      %s = Input {name="s", dtype=f32, shape=[b, 8]}
      %x = Input {name="x", dtype=f32, shape=[b, 8]}
      %n = Binary(%s, %x) {fn=add}
      output s %n
      output y %x
    end
  %u, %c = Scan(%t, %a) {num_carried=1, num_scanned=1}
    graph two
      %s = Input {name="s", dtype=f32, shape=[b, 8]}
      %x = Input {name="x", dtype=f32, shape=[b, 8]}
      %n = Binary(%s, %x) {fn=mul}
      output s %n
      output y %x
    end
  output c %c
end
)";

TEST(LowerGraph, sub_graphs_have_names_of_their_own) {
  const Json json = parse_json("test", "graph", lower(kTwoScans).graph.graph);
  std::vector<std::string> names;
  for (const Json& node : json["nodes"]) {
    for (const Json& input : node["inputs"]) {
      if (input["arg"].contains("as_graph")) names.push_back(input["arg"]["as_graph"]["name"]);
    }
  }
  EXPECT_THAT(names, ElementsAre("scan_combine_graph", "scan_combine_graph_1"));
}

TEST(LowerGraph, a_scan_gets_the_sizes_of_what_it_stacks) {
  const Json json = parse_json("test", "graph", lower(kTwoScans).graph.graph);
  EXPECT_EQ(shown_node(json["nodes"][0]), "sym_size_int = aten.sym_size.int(x, 1)");
  const Json& scan = json["nodes"][1]["inputs"];
  EXPECT_EQ(scan[3]["arg"].dump(), R"({"as_tensors":[{"name":"sym_size_int"}]})");
  const Json& body = scan[0]["arg"]["as_graph"]["graph"];
  EXPECT_EQ(body["inputs"].back().dump(), R"({"as_sym_int":{"as_name":"size"}})");
  EXPECT_THAT(body["sym_int_values"]["size"].dump(), HasSubstr("Symbol('s1'"));
}

TEST(LowerGraph, a_sub_graph_gets_the_sizes_that_it_reads) {
  const Lowered lowered = lower(R"(graph g
  %x = Input {name="x", dtype=f32, shape=[b, 8]}
  %p = Input {name="p", dtype=bool, shape=[]}
  %y = If(%p)
    graph yes
      %i = Iota {count=b}
      output y %i
    end
    graph no
      %c = Constant {value=i64[](0)}
      %i = Full(%c) {shape=[b]}
      output y %i
    end
  output y %y
end
)");
  const Json node = parse_json("test", "graph", lowered.graph.graph)["nodes"][1];
  EXPECT_EQ(node["inputs"].back()["arg"].dump(), R"({"as_tensors":[{"name":"sym_size_int"}]})");
  EXPECT_THAT(listing(node["inputs"][1]["arg"]["as_graph"]["graph"].dump()),
              HasSubstr("arange = aten.arange.default(size, "));
}

TEST(LowerGraph, slots_and_their_counter_are_written_in_place) {
  const Lowered lowered =
      lower(std::string(kSlots) + "  output output.k %w\n  output output.n %m\nend\n", kSlotStates);
  EXPECT_FALSE(lowered.graph.is_functional);
  EXPECT_EQ(listing(lowered.graph.graph),
            "sym_size_int = aten.sym_size.int(x, 2)\n"
            "arange = aten.arange.default(sym_size_int, dtype=5, device={\"type\":\"cpu\","
            "\"index\":null}, pin_memory=false)\n"
            "add = aten.add.Tensor(arange, input_n)\n"
            "index_copy_ = aten.index_copy_.default(input_k, 2, add, x)\n"
            "add_1 = aten.add.Scalar(input_n, sym_size_int)\n"
            "copy_ = aten.copy_.default(input_n, add_1)\nreturn index_copy_, copy_\n");
}

TEST(LowerGraph, what_looks_at_slots_before_they_are_written_keeps_what_it_saw) {
  const Lowered lowered = lower(std::string(kSlots) +
                                    "  %v = Transpose(%k) {perm=[0, 2, 1, 3]}\n"
                                    "  output output.k %w\n  output output.n %m\n"
                                    "  output before %v\nend\n",
                                kSlotStates);
  EXPECT_EQ(listing(lowered.graph.graph),
            "sym_size_int = aten.sym_size.int(x, 2)\n"
            "arange = aten.arange.default(sym_size_int, dtype=5, device={\"type\":\"cpu\","
            "\"index\":null}, pin_memory=false)\n"
            "add = aten.add.Tensor(arange, input_n)\n"
            "index_copy = aten.index_copy.default(input_k, 2, add, x)\n"
            "add_1 = aten.add.Scalar(input_n, sym_size_int)\n"
            "permute = aten.permute.default(input_k, [0, 2, 1, 3])\n"
            "clone = aten.clone.default(permute)\n"
            "copy_ = aten.copy_.default(input_k, index_copy)\n"
            "copy__1 = aten.copy_.default(input_n, add_1)\nreturn copy_, copy__1, clone\n");
}

TEST(LowerGraph, what_nobody_has_mapped_is_reported) {
  const Lowered lowered = lower(
      "graph g\n  %x = Input {name=\"x\", dtype=f32, shape=[2]}\n"
      "  %y = Opaque(%x) {target=\"aten.foo\", dtype=f32, shape=[2]}\n  output y %y\nend\n");
  EXPECT_EQ(lowered.unsupported.count("aten.foo"), 1U);
}

}  // namespace
}  // namespace tranship::pt2
