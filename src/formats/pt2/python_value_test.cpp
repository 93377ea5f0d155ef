#include "formats/pt2/python_value.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tranship::pt2 {
namespace {

using ::testing::ElementsAre;
using ::testing::FieldsAre;

PythonValue cache() {
  return PythonValue::object(
      "module:Cache", {{"layers", PythonValue::list({PythonValue::object(
                                      "module:Layer", {{"keys", PythonValue::tensor("in.keys")},
                                                       {"length", PythonValue::of(int64_t{3})},
                                                       {"dtype", PythonValue::of(DType::kBF16)},
                                                       {"values", PythonValue::tensor("in.values")},
                                                       {"device", PythonValue::cpu()}})})},
                       {"offloading", PythonValue::of(false)},
                       {"nothing", PythonValue::none()}});
}

TEST(PythonValue, leaves_are_named_as_torch_export_names_them) {
  const PythonValue kwargs = PythonValue::dict(
      {{"ids", PythonValue::tensor("ids")},
       {"mask", PythonValue::dict({{"full", PythonValue::tensor("mask.full")}})},
       {"cache", cache()},
       {"encoded", PythonValue::output("module:Output", {{"state", PythonValue::tensor("e")}})}});
  EXPECT_THAT(leaves(kwargs), ElementsAre(FieldsAre("ids", "ids", "", false),
                                          FieldsAre("mask.full", "mask_full", "", false),
                                          FieldsAre("in.keys", "cache_0", "", false),
                                          FieldsAre("in.values", "cache_1", "", false),
                                          FieldsAre("e", "encoded_state", "", false)));
}

// What torch.utils._pytree.treespec_dumps gives.
TEST(PythonValue, a_spec_is_a_tree_with_json_in_json) {
  EXPECT_EQ(tree_spec(PythonValue::tuple({PythonValue::dict({{"a", PythonValue::tensor("a")}})})),
            R"([1, {"type": "builtins.tuple", "context": "null", "children_spec": [)"
            R"({"type": "builtins.dict", "context": "[\"a\"]", "children_spec": [)"
            R"({"type": null, "context": null, "children_spec": []}]}]}])");
  EXPECT_EQ(tree_spec(PythonValue::output("m.Output", {{"y", PythonValue::tensor("y")}})),
            R"([1, {"type": "m.Output", "context": "[\"y\"]", "children_spec": [)"
            R"({"type": null, "context": null, "children_spec": []}]}])");
}

TEST(PythonValue, an_object_keeps_its_attributes_in_the_context) {
  EXPECT_EQ(
      tree_spec(cache()),
      R"([1, {"type": "module:Cache", "context": "{\"_t\": \"obj\", \"p\": \"module:Cache\", )"
      R"(\"s\": {\"layers\": [{\"_t\": \"obj\", \"p\": \"module:Layer\", \"s\": {\"keys\": )"
      R"({\"_t\": \"tensor\", \"i\": 0}, \"length\": 3, \"dtype\": {\"_t\": \"dtype\", \"n\": )"
      R"(\"bfloat16\"}, \"values\": {\"_t\": \"tensor\", \"i\": 1}, \"device\": {\"_t\": )"
      R"(\"device\", \"s\": \"cpu\"}}}], \"offloading\": false, \"nothing\": null}}", )"
      R"("children_spec": [{"type": null, "context": null, "children_spec": []}, )"
      R"({"type": null, "context": null, "children_spec": []}]}])");
}

}  // namespace
}  // namespace tranship::pt2
