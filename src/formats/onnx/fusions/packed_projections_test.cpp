// Projections of one value, packed: graphs as text before and after.
#include "formats/onnx/fusions/packed_projections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/text.h"
#include "ir/verify.h"
#include "passes/passes.h"

namespace tranship::onnx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::string_view kLayer = R"(graph a
  %x = Input {name="x", dtype=f32, shape=[s, 2]}
  %q = Param {name="l.q.weight", dtype=f32, shape=[3, 2]}
  %k = Param {name="l.k.weight", dtype=f32, shape=[1, 2]}
  %o = Param {name="m.o.weight", dtype=f32, shape=[2, 2]}
  %1 = Linear(%x, %q, _) @l.q
  %2 = Linear(%x, %k, _) @l.k
  %3 = Linear(%x, %o, _) @m.o
)";

class Packed : public ::testing::Test {
 protected:
  std::map<std::string, TensorSourcePtr> parameters_ = {
      {"l.q.weight", memory_source("l.q.weight", tensor({1, 2, 3, 4, 5, 6}, {3, 2}))},
      {"l.k.weight", memory_source("l.k.weight", tensor({7, 8}, {1, 2}))},
      {"m.o.weight", memory_source("m.o.weight", tensor({9, 9, 9, 9}, {2, 2}))}};

  static Tensor tensor(const std::vector<float>& values, std::vector<int64_t> shape) {
    return Tensor::of(values, std::move(shape));
  }

  std::map<std::string, TensorSourcePtr> pack(const std::vector<std::string>& texts,
                                              size_t least = 2) {
    for (const std::string& text : texts) graphs_.push_back(ir::parse(text));
    std::map<std::string, TensorSourcePtr> made = pack_projections(graphs_, parameters_, least);
    for (auto& graph : graphs_) {
      passes::eliminate_dead_code(graph);
      ir::verify(*graph);
    }
    return made;
  }

  std::vector<std::unique_ptr<ir::Graph>> graphs_;
};

const std::string kEnds = "  output q %1\n  output k %2\n  output o %3\nend\n";

TEST_F(Packed, ThoseOfAModuleStandOneBelowTheOther) {
  const auto made = pack({std::string(kLayer) + kEnds});
  ASSERT_EQ(made.size(), 1U);
  const TensorSourcePtr& weight = made.at("l.q_k.weight");
  EXPECT_THAT(weight->shape(), ElementsAre(4, 2));
  const Tensor read = read_all(*weight);
  EXPECT_THAT(std::vector<float>(read.f32().begin(), read.f32().end()),
              ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  const std::string text = ir::print(*graphs_[0]);
  EXPECT_THAT(text, HasSubstr("Slice(%3) {axis=-1, begin=0, end=3, step=1}"));
  EXPECT_THAT(text, HasSubstr("Slice(%3) {axis=-1, begin=3, end=4, step=1}"));
  EXPECT_THAT(text, Not(HasSubstr("l.k.weight")));
}

TEST_F(Packed, AWeightThatIsUsedElsewhereStaysByItself) {
  constexpr std::string_view kSquare = R"(graph a
  %x = Input {name="x", dtype=f32, shape=[s, 2]}
  %k = Param {name="l.k.weight", dtype=f32, shape=[1, 2]}
  %o = Param {name="l.o.weight", dtype=f32, shape=[2, 2]}
  %1 = Linear(%x, %k, _)
  %2 = Linear(%x, %o, _)
  %3 = Linear(%2, %o, _)
  output a %1
  output b %3
end
)";
  EXPECT_THAT(pack({std::string(kSquare)}), IsEmpty());
}

TEST_F(Packed, AGroupThatAnotherGraphHasOtherwiseStaysAsItIs) {
  const std::string alone = R"(graph b
  %x = Input {name="x", dtype=f32, shape=[s, 2]}
  %q = Param {name="l.q.weight", dtype=f32, shape=[3, 2]}
  %1 = Linear(%x, %q, _)
  output q %1
end
)";
  EXPECT_THAT(pack({std::string(kLayer) + kEnds, alone}), IsEmpty());
}

TEST_F(Packed, GraphsThatAgreeShareTheParameter) {
  const std::string both = std::string(kLayer) + kEnds;
  EXPECT_EQ(pack({both, both}).size(), 1U);
  for (const auto& graph : graphs_) EXPECT_THAT(ir::print(*graph), HasSubstr("l.q_k.weight"));
}

TEST_F(Packed, TooFewStayAsTheyAre) {
  EXPECT_THAT(pack({std::string(kLayer) + kEnds}, 3), IsEmpty());
}

TEST_F(Packed, ANameThatIsTakenIsLeft) {
  parameters_.emplace("l.q_k.weight", parameters_.at("l.q.weight"));
  EXPECT_THAT(pack({std::string(kLayer) + kEnds}), IsEmpty());
}

}  // namespace
}  // namespace tranship::onnx
