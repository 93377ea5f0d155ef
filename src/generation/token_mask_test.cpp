#include "generation/token_mask.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing.h"
#include "formats/onnx/ort_test_support.h"
#include "models/families.h"
#include "tranship/exporters.h"

namespace tranship::generation {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;

/// Values need a session to be made by.
class Masks : public onnx::NeedsOnnxRuntime {
 protected:
  void SetUp() override {
    NeedsOnnxRuntime::SetUp();
    if (IsSkipped()) return;
    OnnxExporter()
        .export_model(Checkpoint::synthetic(models::find_family("llama")->tiny_config),
                      OnnxConfig{.dynamic = true})
        .save_pretrained(folder_.path());
    session_.emplace(onnx::Session::open(folder_ / "model.onnx", {.intra_op_threads = 1}));
  }

  std::vector<int64_t> slots(TokenMask& mask, int64_t count, int64_t num_slots) const {
    const Tensor tensor = mask.of_slots(*session_, count, num_slots).to_tensor();
    EXPECT_THAT(tensor.shape(), ElementsAre(testing::_, 1, count, num_slots));
    std::vector<int64_t> out;
    for (int64_t i = 0; i < tensor.num_elements(); ++i)
      out.push_back(static_cast<int64_t>(tensor.at(i)));
    return out;
  }
  std::vector<int64_t> tokens(TokenMask& mask) const {
    const Tensor tensor = mask.of_tokens(*session_).to_tensor();
    return {tensor.i64().begin(), tensor.i64().end()};
  }

  TestFolder folder_;
  std::optional<onnx::Session> session_;
};

TEST_F(Masks, columns_go_to_the_end_of_each_row) {
  TokenMask mask;
  mask.clear(2);
  mask.append(std::vector<int64_t>{0, 1, 1, 1}, 2);
  mask.append(std::vector<int64_t>{1, 1}, 1);
  EXPECT_EQ(mask.length(), 3);
  EXPECT_THAT(tokens(mask), ElementsAre(0, 1, 1, 1, 1, 1));
}

TEST_F(Masks, queries_see_their_own_slot_and_those_before_but_no_padding) {
  TokenMask mask;
  mask.clear(2);
  mask.append(std::vector<int64_t>{0, 1, 1, 1, 1, 1}, 3);
  EXPECT_THAT(slots(mask, 2, 4), ElementsAreArray({0, 1, 0, 0, 0, 1, 1, 0,  // the first row
                                                   1, 1, 0, 0, 1, 1, 1, 0}));
  mask.append(std::vector<int64_t>{1, 1}, 1);
  EXPECT_THAT(slots(mask, 1, 4), ElementsAre(0, 1, 1, 1, 1, 1, 1, 1));
}

TEST_F(Masks, of_one_token_follow_the_tokens_whatever_was_asked_between) {
  TokenMask mask;
  mask.clear(1);
  mask.append(std::vector<int64_t>{1}, 1);
  EXPECT_THAT(slots(mask, 1, 4), ElementsAre(1, 0, 0, 0));
  mask.append(std::vector<int64_t>{1, 1}, 2);
  EXPECT_THAT(slots(mask, 2, 4), ElementsAre(1, 1, 0, 0, 1, 1, 1, 0));
  mask.append(std::vector<int64_t>{1}, 1);
  EXPECT_THAT(slots(mask, 1, 4), ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(slots(mask, 1, 6), ElementsAre(1, 1, 1, 1, 0, 0)) << "there are more slots now";
  mask.cut(2);
  mask.append(std::vector<int64_t>{1}, 1);
  EXPECT_THAT(slots(mask, 1, 6), ElementsAre(1, 1, 1, 0, 0, 0)) << "it went back";
  EXPECT_THAT(tokens(mask), ElementsAre(1, 1, 1));
}

}  // namespace
}  // namespace tranship::generation
