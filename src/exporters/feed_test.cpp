#include "exporters/feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing.h"

namespace tranship::exporters {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<Port> kDecode = {
    {"input_ids", DType::kI64, {"batch", "1"}},
    {"attention_mask", DType::kI64, {"batch", "past + 1"}},
    {"position_ids", DType::kI64, {"batch", "1"}},
    {"input.past_key_values.layers.0.keys", DType::kF32, {"batch", "2", "past", "4"}}};

Tensor ids(std::vector<int64_t> shape) { return Tensor(DType::kI64, std::move(shape)); }

TEST(Feed, absent_optional_inputs_get_the_models_defaults) {
  const std::vector<Port> forward = {{"input_ids", DType::kI64, {"batch", "sequence"}},
                                     {"attention_mask", DType::kI64, {"batch", "sequence"}},
                                     {"token_type_ids", DType::kI64, {"batch", "sequence"}},
                                     {"position_ids", DType::kI64, {"batch", "sequence"}}};
  const Feed fed = feed("model", forward, {{"input_ids", ids({2, 3})}});
  EXPECT_THAT(fed.tensors.at("attention_mask").i64(), Each(1));
  EXPECT_THAT(fed.tensors.at("attention_mask").shape(), ElementsAre(2, 3));
  EXPECT_THAT(fed.tensors.at("token_type_ids").i64(), Each(0));
  EXPECT_THAT(fed.tensors.at("position_ids").i64(), ElementsAre(0, 1, 2, 0, 1, 2));
}

TEST(Feed, defaults_count_what_is_cached) {
  const Feed fed = feed("decode", kDecode,
                        {{"input_ids", ids({2, 1})},
                         {"past_key_values.layers.0.keys", Tensor(DType::kF32, {2, 2, 5, 4})}});
  EXPECT_THAT(fed.tensors.at("attention_mask").shape(), ElementsAre(2, 6));
  EXPECT_THAT(fed.tensors.at("position_ids").i64(), ElementsAre(5, 5));
  EXPECT_TRUE(fed.tensors.contains("input.past_key_values.layers.0.keys"));
}

const std::vector<Port> kDecoder = {
    {"attention_mask", DType::kI64, {"batch", "sequence"}},
    {"decoder_input_ids", DType::kI64, {"batch", "1"}},
    {"decoder_attention_mask", DType::kI64, {"batch", "past + 1"}},
    {"encoder_outputs.last_hidden_state", DType::kF32, {"batch", "sequence", "4"}},
    {"input.past_key_values.self_attention_cache.layers.0.keys",
     DType::kF32,
     {"batch", "2", "past", "4"}},
    {"input.past_key_values.cross_attention_cache.layers.0.keys",
     DType::kF32,
     {"batch", "2", "sequence", "4"}}};

TEST(Feed, beside_an_encoder_masks_count_what_they_are_for) {
  const Feed fed = feed(
      "decode", kDecoder,
      {{"decoder_input_ids", ids({2, 1})},
       {"encoder_outputs.last_hidden_state", Tensor(DType::kF32, {2, 7, 4})},
       {"past_key_values.self_attention_cache.layers.0.keys", Tensor(DType::kF32, {2, 2, 5, 4})},
       {"past_key_values.cross_attention_cache.layers.0.keys", Tensor(DType::kF32, {2, 2, 7, 4})}});
  EXPECT_THAT(fed.tensors.at("attention_mask").shape(), ElementsAre(2, 7));
  EXPECT_THAT(fed.tensors.at("attention_mask").i64(), Each(1));
  EXPECT_THAT(fed.tensors.at("decoder_attention_mask").shape(), ElementsAre(2, 6));
}

TEST(Feed, the_prefix_may_stand_or_not) {
  const Feed fed =
      feed("decode", kDecode,
           {{"input.input_ids", ids({1, 1})},
            {"input.past_key_values.layers.0.keys", Tensor(DType::kF32, {1, 2, 0, 4})}});
  EXPECT_EQ(fed.tensors.size(), 4);
  EXPECT_THAT(fed.dropped, testing::IsEmpty());
  const Error error = error_of([] {
    feed("decode", kDecode, {{"input.input_ids", ids({1, 1})}, {"input_ids", ids({1, 1})}});
  });
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(error.what(), HasSubstr("'input_ids' is given twice"));
}

TEST(Feed, unknown_inputs_are_dropped_and_named) {
  const Feed fed = feed("model", {{"input_ids", DType::kI64, {"batch", "sequence"}}},
                        {{"input_ids", ids({1, 1})}, {"labels", ids({1, 1})}, {"extra", ids({1})}});
  EXPECT_THAT(fed.dropped, ElementsAre("extra", "labels"));
  EXPECT_EQ(fed.tensors.size(), 1);
}

TEST(Feed, all_missing_inputs_are_named) {
  const Error error = error_of([] { feed("decode", kDecode, {{"attention_mask", ids({1, 4})}}); });
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(error.what(), HasSubstr("component 'decode' needs 'input_ids', 'position_ids', "
                                      "'input.past_key_values.layers.0.keys'"));
}

TEST(Feed, a_mask_of_another_kind_has_no_default) {
  const std::vector<Port> ports = {{"input_ids", DType::kI64, {"1", "1"}},
                                   {"attention_mask", DType::kF32, {"1", "1", "1", "16"}}};
  EXPECT_THAT(error_of([&] { feed("decode", ports, {{"input_ids", ids({1, 1})}}); }).what(),
              HasSubstr("needs 'attention_mask'"));
}

TEST(Feed, a_mask_of_slots_lets_tokens_see_what_is_before_them) {
  const std::vector<Port> ports = {
      {"input_ids", DType::kI64, {"batch", "sequence"}},
      {"attention_mask", DType::kBool, {"batch", "1", "sequence", "cache_length"}},
      {"position_ids", DType::kI64, {"batch", "sequence"}},
      {"input.past_key_values.layers.0.keys", DType::kF32, {"batch", "1", "cache_length", "2"}},
      {"input.past_key_values.layers.0.cumulative_length", DType::kI64, {}}};
  Tensor seen(DType::kI64, {});
  seen.set(0, 2);
  const NamedTensors fed =
      feed("decode", ports,
           {{"input_ids", ids({1, 2})},
            {"past_key_values.layers.0.keys", Tensor(DType::kF32, {1, 1, 5, 2})},
            {"past_key_values.layers.0.cumulative_length", seen}})
          .tensors;
  std::vector<double> mask;
  for (int64_t i = 0; i < 10; ++i) mask.push_back(fed.at("attention_mask").at(i));
  EXPECT_THAT(mask, ElementsAre(1, 1, 1, 0, 0, 1, 1, 1, 1, 0));
  EXPECT_EQ(fed.at("attention_mask").shape(), (std::vector<int64_t>{1, 1, 2, 5}));
  EXPECT_THAT(fed.at("position_ids").i64(), ElementsAre(2, 3));
}

TEST(Feed, an_input_with_another_number_of_axes_is_told_before_anything_that_follows_from_it) {
  const std::vector<Port> ports = {{"input_ids", DType::kI64, {"batch", "sequence"}},
                                   {"attention_mask", DType::kI64, {"batch", "sequence"}}};
  const std::string expected = "'input_ids' is [3]: 1 axes, expected 2: [batch, sequence]";
  EXPECT_THAT(error_of([&] { feed("model", ports, {{"input_ids", ids({3})}}); }).what(),
              HasSubstr(expected));
  const NamedTensors all = {{"input_ids", ids({3})}, {"attention_mask", ids({1, 3})}};
  EXPECT_THAT(error_of([&] { check_sizes(ports, {}, all); }).what(), HasSubstr(expected));
}

TEST(Feed, sizes_outside_of_their_range_are_refused) {
  const Ranges ranges = {{"batch", {1, {}}}, {"past", {0, 16}}};
  const auto inputs = [](int64_t past) -> NamedTensors {
    return {{"input_ids", ids({2, 1})},
            {"attention_mask", ids({2, past + 1})},
            {"position_ids", ids({2, 1})},
            {"input.past_key_values.layers.0.keys", Tensor(DType::kF32, {2, 2, past, 4})}};
  };
  EXPECT_NO_THROW(check_sizes(kDecode, ranges, inputs(0)));
  EXPECT_NO_THROW(check_sizes(kDecode, ranges, inputs(16)));
  const Error error = error_of([&] { check_sizes(kDecode, ranges, inputs(17)); });
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(error.what(),
              HasSubstr("'past' is 17, outside of the range that it was exported for, 0 to 16"));
}

TEST(Ranges, are_those_of_the_export_s_configuration_under_the_graph_s_names) {
  const std::vector<Port> ports = {{"input_ids", DType::kI64, {"batch", "sequence"}}};
  ExportMetadata metadata;
  metadata.export_config =
      OnnxConfig{.dynamic_shapes = {{"input_ids", {{1, {"seq", 2, 9}}}}, {"other", {{0, {"n"}}}}},
                 .dims = {{"batch", {"batch", 1, 4}}}}
          .to_json();
  const Ranges ranges = ranges_of(metadata, ports);
  EXPECT_EQ(ranges.size(), 2U);
  EXPECT_EQ(ranges.at("sequence"), (ir::Range{2, 9}));
  EXPECT_EQ(ranges.at("batch"), (ir::Range{1, 4}));
  metadata.export_config = R"({"of": "another program"})";
  EXPECT_TRUE(ranges_of(metadata, ports).empty());
}

}  // namespace
}  // namespace tranship::exporters
