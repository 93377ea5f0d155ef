#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <optional>

#include "formats/onnx/ort_test_support.h"
#include "formats/onnx/session.h"

namespace tranship::onnx {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<float> floats(const Value& value) {
  std::vector<float> values(value.bytes().size() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), value.bytes().data(), value.bytes().size());
  return values;
}

class BindingTest : public NeedsOnnxRuntime {};

TEST_F(BindingTest, ACacheGrowsFromStepToStepWithoutACopy) {
  const Session session = open("cache");
  Binding step(session);
  Tensor token(DType::kF32, {1, 1, 2});
  Value cache = session.allocate(DType::kF32, {1, 0, 2});
  const Value input = session.over(token);
  step.bind_input("new", input);
  step.bind_output("present", Place::kDevice);
  step.bind_output("total");
  std::vector<float> expected;
  for (int i = 1; i <= 20; ++i) {
    token.set(0, i);
    token.set(1, -i);
    expected.push_back(static_cast<float>(i));
    expected.push_back(static_cast<float>(-i));
    step.bind_input("past", cache);
    step.run();
    std::map<std::string, Value> out = step.outputs();
    const std::byte* made = out.at("present").bytes().data();
    cache = std::move(out.at("present"));
    EXPECT_EQ(cache.bytes().data(), made);
    EXPECT_THAT(cache.shape(), ElementsAre(1, i, 2));
    EXPECT_EQ(floats(cache), expected) << "step " << i;
    const float sum = static_cast<float>(i * (i + 1)) / 2;  // small integers: exact in f32
    EXPECT_THAT(floats(out.at("total")), ElementsAre(sum, -sum));
  }
  EXPECT_THAT(warnings_, testing::IsEmpty());
}

TEST_F(BindingTest, AnEarlierOutputKeepsItsNumbersAfterLaterRuns) {
  const Session session = open("cache");
  Binding step(session);
  Tensor token(DType::kF32, {1, 1, 2});
  step.bind_input("past", session.allocate(DType::kF32, {1, 0, 2}));
  step.bind_input("new", session.over(token));
  step.bind_output("present");
  token.set(0, 1);
  step.run();
  const Value first = step.output("present");
  token.set(0, 2);
  step.run();
  EXPECT_THAT(floats(first), ElementsAre(1, 0));
  EXPECT_THAT(floats(step.output("present")), ElementsAre(2, 0));
}

TEST_F(BindingTest, BindingOneOutputAnewKeepsTheOthersGrowing) {
  const Session session = open("cache");
  Binding step(session);
  step.bind_input("new", session.allocate(DType::kF32, {1, 1, 2}));
  step.bind_output("present");
  for (int64_t length = 1; length <= 3; ++length) {
    Value total = session.allocate(DType::kF32, {2});
    step.bind_input("past", session.allocate(DType::kF32, {1, length - 1, 2}));
    step.bind_output("total", total);
    step.run();
    EXPECT_THAT(step.output("present").shape(), ElementsAre(1, length, 2));
    EXPECT_EQ(step.output("total").bytes().data(), total.bytes().data());
  }
}

TEST_F(BindingTest, OutputsGoIntoTheCallersMemory) {
  const Session session = open("add");
  Tensor x = Tensor::of(std::vector<float>{1, 2, 3}, {1, 3});
  Tensor sum(DType::kF32, {1, 3});
  Value target = session.over(sum);
  Binding binding(session);
  binding.bind_input("x", session.over(x));
  binding.bind_input("y", session.over(x));
  binding.bind_output("sum", target);
  binding.run();
  EXPECT_THAT(sum.f32(), ElementsAre(2, 4, 6));
  x.set(0, 50);  // the next run reads the same memory, and writes to the same
  binding.run();
  EXPECT_THAT(sum.f32(), ElementsAre(100, 4, 6));
  EXPECT_EQ(binding.output("sum").bytes().data(), sum.bytes().data());
}

TEST_F(BindingTest, AnOutputMayBeTheInputsMemory) {
  const Session session = open("add");
  Value total = session.allocate(DType::kF32, {1, 3});
  std::memset(total.bytes().data(), 0, total.bytes().size());
  Tensor one = Tensor::of(std::vector<float>{1, 2, 3}, {1, 3});
  Binding binding(session);
  binding.bind_input("x", total);
  binding.bind_input("y", session.over(one));
  binding.bind_output("sum", total);
  for (int i = 0; i < 3; ++i) binding.run();
  EXPECT_THAT(floats(total), ElementsAre(3, 6, 9));
}

TEST_F(BindingTest, AValueOutlivesBindingAndSession) {
  std::optional<Value> kept;
  {
    const Session session = open("cache");
    Binding binding(session);
    Tensor token = Tensor::of(std::vector<float>{7, 8}, {1, 1, 2});
    binding.bind_input("past", session.allocate(DType::kF32, {1, 0, 2}));
    binding.bind_input("new", session.over(token));
    binding.bind_output("present");
    binding.run();
    kept = binding.output("present");
  }
  EXPECT_THAT(floats(*kept), ElementsAre(7, 8));
  EXPECT_THAT(kept->to_tensor().f32(), ElementsAre(7, 8));
}

TEST_F(BindingTest, InputsThatAreNotBoundAreAllNamed) {
  const Session session = open("cache");
  Binding binding(session);
  binding.bind_output("present");
  const Error error = error_of([&] { binding.run(); });
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("cache.onnx"), HasSubstr("'past', 'new'")));
}

TEST_F(BindingTest, ClearForgetsWhatWasBound) {
  const Session session = open("external");
  Binding binding(session);
  binding.bind_input("x", session.allocate(DType::kF32, {1, 4}));
  binding.bind_output("y");
  binding.run();
  binding.clear();
  EXPECT_THAT(error_of([&] { binding.run(); }).what(), HasSubstr("not bound: 'x'"));
}

TEST_F(BindingTest, ARunWithoutOutputsIsAnError) {
  const Session session = open("external");
  Binding binding(session);
  binding.bind_input("x", session.allocate(DType::kF32, {1, 4}));
  EXPECT_THAT(error_of([&] { binding.run(); }).what(), HasSubstr("no output is bound"));
}

TEST_F(BindingTest, WhatDoesNotFitIsRefusedWhenItIsBound) {
  const Session session = open("cache");
  Binding binding(session);
  Value wrong = session.allocate(DType::kF32, {2, 1, 2});
  EXPECT_THAT(error_of([&] { binding.bind_input("past", wrong); }).what(),
              HasSubstr("'past' is f32[2, 1, 2], expected f32[1, past, 2]"));
  EXPECT_THAT(error_of([&] { binding.bind_output("present", wrong); }).what(),
              HasSubstr("output 'present'"));
  EXPECT_THAT(error_of([&] { binding.bind_input("future", wrong); }).what(),
              AllOf(HasSubstr("no input 'future'"), HasSubstr("'past', 'new'")));
  EXPECT_THAT(error_of([&] { binding.bind_output("future"); }).what(),
              HasSubstr("no output 'future'"));
}

TEST_F(BindingTest, OutputsAreThereOnlyAfterARun) {
  const Session session = open("external");
  Binding binding(session);
  binding.bind_input("x", session.allocate(DType::kF32, {1, 4}));
  binding.bind_output("y");
  EXPECT_EQ(error_of([&] { binding.outputs(); }).kind(), ErrorKind::kInvalidArgument);
  binding.run();
  EXPECT_EQ(binding.outputs().size(), 1u);
  EXPECT_THAT(error_of([&] { binding.output("z"); }).what(), HasSubstr("'z' is not bound"));
}

TEST_F(BindingTest, AnOutputOfTheWrongSizeIsAnErrorOfTheRun) {
  const Session session = open("cache");
  Binding binding(session);
  Value small = session.allocate(DType::kF32, {1, 1, 2});
  binding.bind_input("past", session.allocate(DType::kF32, {1, 3, 2}));
  binding.bind_input("new", session.allocate(DType::kF32, {1, 1, 2}));
  binding.bind_output("present", small);
  EXPECT_THAT(error_of([&] { binding.run(); }).what(), HasSubstr("running the model"));
}

TEST_F(BindingTest, MemoryOfTheWrongSizeIsRefused) {
  const Session session = open("add");
  std::vector<std::byte> bytes(11);
  const Error error = error_of([&] { session.over(DType::kF32, {1, 3}, bytes); });
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("12 bytes"), HasSubstr("11 are given")));
  EXPECT_EQ(error_of([&] { session.allocate(DType::kF32, {-1}); }).kind(),
            ErrorKind::kInvalidArgument);
  EXPECT_EQ(error_of([&] {
              session.allocate(DType::kF32, {std::numeric_limits<int64_t>::max(), 4});
            }).kind(),
            ErrorKind::kInvalidArgument);
}

}  // namespace
}  // namespace tranship::onnx
