#include "formats/pt2/tree_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing.h"

namespace tranship::pt2 {
namespace {

using ::testing::ElementsAre;

constexpr std::string_view kLeaf = R"({"type":null,"context":null,"children_spec":[]})";

std::string node(std::string_view type, std::string_view context,
                 const std::vector<std::string>& children) {
  std::string out = R"({"type":")" + std::string(type) + R"(","context":)" + std::string(context) +
                    R"(,"children_spec":[)";
  for (size_t i = 0; i < children.size(); ++i) out += (i > 0 ? "," : "") + children[i];
  return out + "]}";
}
std::string spec(const std::string& root) { return "[1," + root + "]"; }

std::vector<std::string> texts(const std::vector<LeafPath>& leaves) {
  std::vector<std::string> out;
  for (const LeafPath& leaf : leaves) out.push_back(leaf.text("bare"));
  return out;
}

TEST(TreeSpec, leaves_are_called_by_keys_indices_and_attributes) {
  const std::string leaf(kLeaf);
  EXPECT_THAT(texts(leaves_of(spec(leaf))), ElementsAre("bare"));
  const std::string list = node("builtins.list", R"("null")", {leaf, leaf});
  const std::string dict = node("builtins.dict", R"("[\"a\", \"b\"]")", {leaf, list});
  EXPECT_THAT(texts(leaves_of(spec(dict))), ElementsAre("a", "b.0", "b.1"));
  const std::string cache = node(
      "transformers.cache_utils:DynamicCache",
      R"("{\"_t\":\"obj\",\"s\":{\"layers\":[{\"_t\":\"obj\",\"s\":{\"keys\":{\"_t\":\"tensor\",\"i\":0},\"seen\":3,\"conv\":{\"_t\":\"items\",\"v\":[[0,{\"_t\":\"tensor\",\"i\":1}]]}}}]}}")",
      {leaf, leaf});
  EXPECT_THAT(texts(leaves_of(spec(cache))), ElementsAre("layers.0.keys", "layers.0.conv.0"));
}

TEST(TreeSpec, positional_arguments_are_called_by_the_names_that_forward_has) {
  const std::string leaf(kLeaf);
  const std::string pair = node("builtins.tuple", R"("null")", {leaf, leaf});
  const std::string arguments = node("builtins.tuple", R"("null")", {leaf, pair, leaf});
  const std::string keywords = node("builtins.dict", R"("[\"k\"]")", {leaf});
  const std::string both = spec(node("builtins.tuple", R"("null")", {arguments, keywords}));
  EXPECT_THAT(texts(argument_leaves_of(both, {"x", "y"})),
              ElementsAre("x", "y.0", "y.1", "2", "k"));
}

TEST(TreeSpec, what_is_none_is_corrupt) {
  std::string deep(kLeaf);
  for (int i = 0; i < 70; ++i) deep = node("builtins.list", R"("null")", {deep});
  for (const std::string& bad :
       {std::string("{}"), std::string("[2,{}]"), std::string("[1]"), std::string("[1,{}]"),
        std::string(R"([1,{"type":"x","context":"{","children_spec":[]}])"),
        std::string(R"([1,{"type":"x","context":null,"children_spec":7}])"),
        spec(node("x", R"("{\"_t\":\"tensor\",\"i\":5}")", {std::string(kLeaf)})),
        spec(node("x", R"("{\"_t\":\"tensor\"}")", {std::string(kLeaf)})), spec(deep)}) {
    EXPECT_EQ(error_of([&] { leaves_of(bad); }).kind(), ErrorKind::kCorrupt) << bad;
  }
  EXPECT_EQ(error_of([&] { argument_leaves_of(spec(std::string(kLeaf)), {}); }).kind(),
            ErrorKind::kCorrupt);
}

}  // namespace
}  // namespace tranship::pt2
