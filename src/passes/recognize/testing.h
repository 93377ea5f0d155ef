// Text before and after, for the tests of recognizers.
#pragma once

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "interpret/interpret.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "passes/passes.h"
#include "passes/recognize/recognize.h"

namespace tranship::passes {

inline GraphPtr graph_of(const std::string& nodes) {
  return ir::parse("graph g\n" + nodes + "  output y %y\nend\n");
}

inline std::string nodes_after(const std::string& nodes) {
  GraphPtr graph = graph_of(nodes);
  recognize(graph);
  ir::verify(*graph);
  return ir::print(*graph);
}

/// q [b, 4, s, 8], keys and values [b, 2, t, 8], a padding mask i64 [b, t].
inline std::string attention(const std::string& mask, const std::string& last) {
  return "  %q = Input {name=\"q\", dtype=f32, shape=[b, 4, s, 8]}\n"
         "  %k = Input {name=\"k\", dtype=f32, shape=[b, 2, past + s, 8]}\n"
         "  %v = Input {name=\"v\", dtype=f32, shape=[b, 2, past + s, 8]}\n"
         "  %pad = Input {name=\"pad\", dtype=i64, shape=[b, past + s]}\n" +
         mask + last;
}

/// Nodes whose result is %y, what the text after holds, and what it does not.
struct Case {
  const char* name;
  std::string before;
  const char* expected;
  const char* gone = nullptr;
};
inline void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }
inline std::string name_of(const ::testing::TestParamInfo<Case>& info) { return info.param.name; }

inline void expect_recognized(const Case& c) {
  const std::string after = nodes_after(c.before);
  EXPECT_NE(after.find(c.expected), std::string::npos) << after;
  EXPECT_TRUE(c.gone == nullptr || after.find(c.gone) == std::string::npos) << after;
}

/// The text with one part replaced, which it must have.
inline std::string with(std::string text, const std::string& part, const std::string& by) {
  const size_t at = text.find(part);
  EXPECT_NE(at, std::string::npos) << part;
  return text.replace(at, part.size(), by);
}

/// The numbers that the interpreter gives, with inputs and weights made up: integers are 0 or 1.
inline std::vector<double> numbers_of(const GraphPtr& graph) {
  std::mt19937 random(7);
  const auto made_up = [&](DType dtype, const ir::Shape& shape) {
    Tensor tensor(dtype, shape.sizes());
    for (int64_t i = 0; i < tensor.num_elements(); ++i)
      tensor.set(i, is_floating(dtype) ? double(random() % 100) / 50 - 1 : double(random() % 2));
    return tensor;
  };
  NamedTensors feed;
  for (const ir::Node* node : graph->inputs()) {
    const auto& input = ir::as<ir::Input>(*node->op);
    feed.emplace(input.name, made_up(input.dtype, input.shape));
  }
  NamedTensors weights;
  for (const ir::Node& node : graph->nodes()) {
    if (node.kind() != ir::OpKind::kParam) continue;
    const auto& param = ir::as<ir::Param>(*node.op);
    weights.emplace(param.name, made_up(param.dtype, param.shape));
  }
  const NamedTensors outputs =
      interpret(*graph, feed, [&](const std::string& name) { return weights.at(name); });
  std::vector<double> out;
  for (int64_t i = 0; i < outputs.at("y").num_elements(); ++i) out.push_back(outputs.at("y").at(i));
  return out;
}

/// Recognition changes nothing but the last digits.
inline void expect_same_numbers(const std::string& nodes,
                                const std::map<std::string, int64_t>& sizes) {
  GraphPtr before = graph_of(nodes), after = graph_of(nodes);
  recognize(after);
  EXPECT_NE(ir::print(*before), ir::print(*after));
  specialize(before, sizes);
  specialize(after, sizes);
  const std::vector<double> a = numbers_of(before), b = numbers_of(after);
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-6) << i;
}

}  // namespace tranship::passes
