#include "ir/draw.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <set>

#include "ir/build.h"
#include "ir/text.h"

namespace tranship::ir {
namespace {

using testing::HasSubstr;

constexpr std::string_view kThreeLayers =
    R"dot(digraph "model" {
  label="model\n600 parameters, 3 layers"
  labelloc=t
  node [shape=box, fontname=Helvetica, fontsize=11]
  edge [fontname=Helvetica, fontsize=9]
  b0 [label="x\ninput f32\n-> [batch, 8]", style="rounded,filled", fillcolor="#e9eef4"]
  subgraph cluster_0 {
    label="model.layers.0 ... 2 (x3)"
    b1 [label="norm\nRmsNorm\nweight [8]\n-> [batch, 8]", style=filled, fillcolor="#e6f0fa"]
    subgraph cluster_1 {
      label="mlp"
      b2 [label="gate\nLinear\nweight [8, 8]\n-> [batch, 8]", style=filled, fillcolor="#e6f0fa"]
      b3 [label="up\nLinear\nweight [8, 8]\n-> [batch, 8]", style=filled, fillcolor="#e6f0fa"]
      b4 [label="silu, mul\n-> [batch, 8]", style=rounded]
      b5 [label="down\nLinear\nweight [8, 8]\n-> [batch, 8]", style=filled, fillcolor="#e6f0fa"]
    }
    b6 [label="add\n-> [batch, 8]", style=rounded]
  }
  b7 [label="y\noutput f32\n-> [batch, 8]", style="rounded,filled", fillcolor="#e9eef4"]
  b0 -> b1 [label="[batch, 8]"]
  b1 -> b2 [label="[batch, 8]"]
  b1 -> b3 [label="[batch, 8]"]
  b2 -> b4 [label="[batch, 8]"]
  b3 -> b4 [label="[batch, 8]"]
  b4 -> b5 [label="[batch, 8]"]
  b0 -> b6 [label="[batch, 8]"]
  b5 -> b6 [label="[batch, 8]"]
  b6 -> b7 [label="[batch, 8]"]
}
)dot";

/// A residual block with a gate; `eps` tells layers apart.
Value add_layer(Graph& g, Value x, const std::string& path, double eps) {
  const auto param = [&](const std::string& name, Shape shape) {
    Param op;
    op.name = name;
    op.dtype = DType::kF32;
    op.shape = std::move(shape);
    return g.add_one(make(std::move(op)), {}, name);
  };
  const auto linear = [&](const std::string& name, Value in) {
    const Value weight = param(name + ".weight", {8, 8});
    return g.add_one(make(Linear{}), {in, weight, Value()}, name);
  };
  RmsNorm norm;
  norm.eps = eps;
  const Value weight = param(path + ".norm.weight", {8});
  const Value normed = g.add_one(make(norm), {x, weight}, path + ".norm");
  const Value gate = linear(path + ".mlp.gate", normed);
  const Value up = linear(path + ".mlp.up", normed);
  return x + linear(path + ".mlp.down", activation(ActivationKind::kSilu, gate) * up);
}

Component stack(const std::vector<std::string>& kinds) {
  Component component;
  component.name = "model";
  component.graph = std::make_unique<Graph>("model");
  Graph& g = *component.graph;
  Input input;
  input.name = "x";
  input.dtype = DType::kF32;
  input.shape = {Dim::symbol("batch"), 8};
  Value x = g.add_one(make(std::move(input)), {});
  for (size_t i = 0; i < kinds.size(); ++i) {
    const std::string path = "model.layers." + std::to_string(i);
    x = add_layer(g, x, path, 1e-6);
    if (kinds[i] == "long") x = add_layer(g, x, path + ".more", 1e-6);
  }
  g.add_output("y", x);
  return component;
}

std::vector<std::string> labels_of(const Folded& folded) {
  std::vector<std::string> out;
  for (const FoldedLayer& layer : folded.layers)
    out.push_back(layer.label + " x" + std::to_string(layer.count));
  return out;
}

/// The problem of a text that is not the XML that draw_svg may write; empty if there is none.
std::string xml_problem(std::string_view xml) {
  std::vector<std::string> open;
  while (!xml.empty()) {
    const size_t tag = xml.find('<');
    for (std::string_view text = xml.substr(0, tag); text.find('&') != text.npos;) {
      text.remove_prefix(text.find('&'));
      const std::string_view entity = text.substr(0, text.find(';') + 1);
      if (!std::set<std::string_view>{"&amp;", "&lt;", "&gt;", "&quot;", "&#8594;", "&#215;"}
               .contains(entity))
        return "a bare &";
      text.remove_prefix(entity.size());
    }
    if (tag == xml.npos) break;
    const size_t end = xml.find('>', tag);
    if (end == xml.npos) return "a tag without an end";
    const std::string_view inside = xml.substr(tag + 1, end - tag - 1);
    xml.remove_prefix(end + 1);
    if (inside.find('<') != inside.npos) return "a tag in a tag";
    if (std::ranges::count(inside, '"') % 2 != 0) return "an open quote";
    const std::string name(inside.substr(0, inside.find(' ')));
    if (name.starts_with("/")) {
      if (open.empty() || "/" + open.back() != name) return "the end " + name;
      open.pop_back();
    } else if (!inside.ends_with("/")) {
      open.push_back(name);
    }
  }
  return open.empty() ? "" : "no end of " + open.back();
}

TEST(Draw, a_graph_of_equal_layers_becomes_this_dot) {
  EXPECT_EQ(draw_dot(fold(stack({"short", "short", "short"}))), kThreeLayers);
}

TEST(Draw, layers_that_take_turns_are_drawn_once_each) {
  EXPECT_THAT(labels_of(fold(stack({"short", "long", "short", "long", "short", "long"}))),
              testing::ElementsAre("model.layers.0, 2 ... 4 x3", "model.layers.1, 3 ... 5 x3"));
}

TEST(Draw, a_layer_unlike_the_others_stands_alone) {
  EXPECT_THAT(
      labels_of(fold(stack({"long", "short", "short", "long"}))),
      testing::ElementsAre("model.layers.0 x1", "model.layers.1 ... 2 x2", "model.layers.3 x1"));
  EXPECT_THAT(labels_of(fold(stack({"short"}))), testing::ElementsAre("model.layers.0 x1"));
}

TEST(Draw, a_layer_with_another_epsilon_is_not_equal) {
  Component component = stack({"short"});
  Graph& g = *component.graph;
  const Value x = g.value(g.outputs()[0].value);
  g.clear_outputs();
  g.add_output("y", add_layer(g, x, "model.layers.1", 1e-5));
  EXPECT_EQ(fold(component).layers.size(), 2u);
}

TEST(Draw, a_link_goes_to_a_box_that_stands_before_it) {
  const Folded folded = fold(stack({"long", "short", "short", "long", "short", "long"}));
  for (size_t i = 0; i < folded.boxes.size(); ++i) {
    for (const FoldedLink& link : folded.boxes[i].sources) EXPECT_LT(link.from, i);
  }
}

TEST(Draw, caches_are_one_port_and_marked_where_they_grow) {
  Component component;
  component.name = "decode";
  component.graph = parse(R"(graph decode
  %0 = Input {name="new", dtype=f32, shape=[batch, 2, 1, 4]}
  %1 = Input {name="past.0.keys", dtype=f32, shape=[batch, 2, past, 4]}
  %2 = Input {name="past.1.keys", dtype=f32, shape=[batch, 2, past, 4]}
  %3 = CacheAppend(%1, %0)
  %4 = CacheAppend(%2, %0)
  output now.0.keys %3
  output now.1.keys %4
end
)");
  for (const std::string i : {"0", "1"})
    component.states.push_back(
        {.name = i + ".keys", .input = "past." + i + ".keys", .output = "now." + i + ".keys"});
  const std::string dot = draw_dot(fold(component));
  EXPECT_THAT(dot, HasSubstr("past.0 ... 1.keys [batch, 2, past, 4]"));
  EXPECT_THAT(dot, HasSubstr("now.0 ... 1.keys [batch, 2, past + 1, 4]"));
  EXPECT_THAT(dot, HasSubstr("keys cache\\nCacheAppend\\npast [batch, 2, past, 4]"));
}

TEST(Draw, an_svg_is_well_formed_xml_and_the_same_each_time) {
  for (const auto& kinds : std::vector<std::vector<std::string>>{
           {}, {"short"}, {"long", "short", "short"}, {"short", "long", "short", "long"}}) {
    const std::string svg = draw_svg(fold(stack(kinds)));
    EXPECT_EQ(xml_problem(svg), "");
    EXPECT_THAT(svg, HasSubstr("xmlns=\"http://www.w3.org/2000/svg\""));
    EXPECT_EQ(svg, draw_svg(fold(stack(kinds))));
  }
  EXPECT_THAT(draw_svg(fold(stack({"short", "short"}))), HasSubstr("&#215; 2<"));
}

TEST(Draw, hostile_names_are_escaped) {
  Component component;
  component.name = "a\"b\\<c>&\n\xff";
  component.graph = std::make_unique<Graph>("g");
  Graph& g = *component.graph;
  Input input;
  input.name = "</text><script>\"&";
  input.dtype = DType::kF32;
  input.shape = {8};
  Value x = g.add_one(make(std::move(input)), {});
  for (const char* path : {"..", ".", "m.<b>.0", "m.\"\\", "7", "m.<b>"})
    x = add_layer(g, x, path, 1e-6);
  g.add_output("\x01]]>-->", x);
  const Folded folded = fold(component);
  const std::string svg = draw_svg(folded), dot = draw_dot(folded);
  EXPECT_EQ(xml_problem(svg), "");
  EXPECT_THAT(svg, HasSubstr("&lt;/text&gt;&lt;script&gt;&quot;&amp;"));
  EXPECT_THAT(svg, HasSubstr("a&quot;b\\&lt;c&gt;&amp;??"));
  EXPECT_THAT(dot, HasSubstr("digraph \"a\\\"b\\\\<c>&??\" {"));
  for (const char c : svg + dot) EXPECT_TRUE(c == '\n' || (c >= ' ' && c <= '~'));
}

TEST(Draw, a_graph_of_nothing_is_a_picture_of_nothing) {
  Component component;
  component.graph = std::make_unique<Graph>("empty");
  EXPECT_EQ(xml_problem(draw_svg(fold(component))), "");
  EXPECT_THAT(draw_dot(fold(component)), HasSubstr("0 parameters"));
}

TEST(Draw, hundreds_of_layers_take_less_than_a_second) {
  const Component component = stack(std::vector<std::string>(500, "short"));
  const std::clock_t begin = std::clock();
  const Folded folded = fold(component);
  const std::string svg = draw_svg(folded);
  EXPECT_LT(double(std::clock() - begin) / CLOCKS_PER_SEC, 1.0);
  EXPECT_THAT(labels_of(folded), testing::ElementsAre("model.layers.0 ... 499 x500"));
  EXPECT_LT(svg.size(), 20'000u);
}

}  // namespace
}  // namespace tranship::ir
