#include "exporters/compare_inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace tranship::exporters {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::Ge;
using testing::Lt;

const std::string kComponent = "decode";
const std::string kConfig = R"({"vocab_size": 7, "type_vocab_size": 3})";

ExportedProgram decode() {
  return {{{"input_ids", DType::kI64, {"batch", "4"}},
           {"attention_mask", DType::kI64, {"batch", "past + 4"}},
           {"token_type_ids", DType::kI64, {"batch", "4"}},
           {"position_ids", DType::kI64, {"batch", "4"}},
           {"input.past_key_values.layers.0.keys", DType::kF32, {"batch", "2", "past", "8"}}},
          {},
          0};
}

NamedTensors made(const InputSizes& sizes, const std::set<std::string>& defaults = {},
                  const std::map<std::string, int64_t>& fixed = {}) {
  const ExportedProgram program = decode();
  return make_inputs({.component = kComponent,
                      .program = program,
                      .config = kConfig,
                      .fixed_sizes = fixed,
                      .defaults = defaults},
                     sizes);
}

TEST(CompareInputs, fit_each_other_and_what_the_model_has) {
  const NamedTensors all = made({.past = 3});
  EXPECT_THAT(all.at("input_ids").shape(), ElementsAre(2, 4));
  EXPECT_THAT(all.at("input_ids").i64(), Each(Lt(7)));
  EXPECT_THAT(all.at("token_type_ids").i64(), Each(Lt(3)));
  EXPECT_GT(std::ranges::max(all.at("token_type_ids").i64()), 0);
  EXPECT_THAT(all.at("position_ids").i64(), ElementsAre(3, 4, 5, 6, 3, 4, 5, 6));
  EXPECT_THAT(all.at("attention_mask").i64(),
              ElementsAre(1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1));
  const Tensor& keys = all.at("input.past_key_values.layers.0.keys");
  EXPECT_THAT(keys.shape(), ElementsAre(2, 2, 3, 8));
  EXPECT_THAT(keys.f32(), Each(testing::AllOf(Ge(-1), Lt(1))));
}

TEST(CompareInputs, depend_on_the_seed_and_on_nothing_else) {
  const auto ids = [](uint64_t seed) {
    const NamedTensors all = made({.seed = seed});
    const auto numbers = all.at("input_ids").i64();
    return std::vector<int64_t>(numbers.begin(), numbers.end());
  };
  EXPECT_EQ(ids(1), ids(1));
  EXPECT_NE(ids(1), ids(2));
}

TEST(CompareInputs, sizes_that_a_model_needs_hold_where_nobody_asked_for_others) {
  EXPECT_EQ(made({}, {}, {{"batch", 1}}).at("input_ids").shape()[0], 1);
  EXPECT_EQ(made({.batch = 5}, {}, {{"batch", 1}}).at("input_ids").shape()[0], 5);
  EXPECT_THAT(made({}, {}, {{"batch", 1}}).at("attention_mask").i64(),
              ElementsAre(1, 0, 1, 1, 1, 1, 1));
}

TEST(CompareInputs, of_a_model_that_nobody_knows_have_the_sizes_that_its_axes_say) {
  const ExportedProgram program = {{{"pixels", DType::kF32, {"s0", "3", "2*s0 + 1"}},
                                    {"boxes", DType::kI64, {"s0", "floor_div(s0, 2)"}},
                                    {"seen", DType::kBool, {"a name!", "s1"}}},
                                   {},
                                   0};
  const NamedTensors all =
      make_inputs({.component = kComponent, .program = program, .config = ""}, {.sequence = 4});
  EXPECT_THAT(all.at("pixels").shape(), ElementsAre(4, 3, 9));
  EXPECT_THAT(all.at("boxes").shape(), ElementsAre(4, 2));
  EXPECT_THAT(all.at("boxes").i64(), Each(1));
  EXPECT_THAT(all.at("seen").shape(), ElementsAre(4, 4));
  EXPECT_EQ(all.at("seen").at(0), 1);
}

TEST(CompareInputs, optional_ones_can_keep_their_defaults) {
  const NamedTensors all = made({}, {"attention_mask", "token_type_ids"});
  EXPECT_THAT(all.at("attention_mask").i64(), Each(1));
  EXPECT_THAT(all.at("token_type_ids").i64(), Each(0));
}

}  // namespace
}  // namespace tranship::exporters
