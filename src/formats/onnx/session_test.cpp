#include "formats/onnx/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <thread>

#include "base/atomic_file.h"
#include "base/mapped_file.h"
#include "formats/onnx/ort_session.h"
#include "formats/onnx/ort_test_support.h"
#include "onnx-ml.pb.h"

namespace tranship::onnx {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Tensor f32(std::vector<float> values, std::vector<int64_t> shape) {
  return Tensor::of(values, std::move(shape));
}
Tensor i64(std::vector<int64_t> values, std::vector<int64_t> shape) {
  return Tensor::of(values, std::move(shape));
}

std::vector<double> numbers(const Tensor& tensor) {
  std::vector<double> values;
  values.reserve(static_cast<size_t>(tensor.num_elements()));
  for (int64_t i = 0; i < tensor.num_elements(); ++i) values.push_back(tensor.at(i));
  return values;
}

/// The text of a file, for tests that change it.
std::string file_text(const fs::path& path) {
  return std::string(as_text(MappedFile::open(path)->bytes()));
}

class SessionTest : public NeedsOnnxRuntime {
 protected:
  void TearDown() override { fs::remove_all(folder_); }

  /// A folder for this test alone.
  const fs::path& folder() {
    folder_ =
        fs::path(testing::TempDir()) /
        ("session_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::create_directories(folder_);
    return folder_;
  }

 private:
  fs::path folder_;
};

TEST_F(SessionTest, DescribesInputsAndOutputsWithSymbolicDimensions) {
  const Session session = open("add");
  ASSERT_EQ(session.inputs().size(), 2u);
  EXPECT_EQ(session.inputs()[0].name, "x");
  EXPECT_EQ(session.inputs()[0].dtype, DType::kF32);
  EXPECT_THAT(session.inputs()[0].shape, ElementsAre(-1, 3));
  EXPECT_THAT(session.inputs()[0].dim_names, ElementsAre("batch", ""));
  EXPECT_THAT(session.inputs()[1].shape, ElementsAre(-1, 3));
  EXPECT_THAT(session.inputs()[1].dim_names, ElementsAre("", ""));
  ASSERT_EQ(session.outputs().size(), 1u);
  EXPECT_EQ(session.outputs()[0].name, "sum");
  EXPECT_EQ(session.runtime_version(), library_->version());
}

TEST_F(SessionTest, RunsAtSeveralShapesWithoutAWarning) {
  const Session session = open("add");
  NamedTensors out = session.run({{"x", f32({1, 2, 3}, {1, 3})}, {"y", f32({10, 20, 30}, {1, 3})}});
  EXPECT_THAT(out.at("sum").shape(), ElementsAre(1, 3));
  EXPECT_THAT(numbers(out.at("sum")), ElementsAre(11, 22, 33));
  out = session.run({{"x", f32({1, 2, 3, 4, 5, 6}, {2, 3})}, {"y", f32({1, 1, 1}, {1, 3})}});
  EXPECT_THAT(numbers(out.at("sum")), ElementsAre(2, 3, 4, 5, 6, 7));
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(SessionTest, RunsWithoutElements) {
  const NamedTensors out =
      open("add").run({{"x", Tensor(DType::kF32, {0, 3})}, {"y", Tensor(DType::kF32, {0, 3})}});
  EXPECT_THAT(out.at("sum").shape(), ElementsAre(0, 3));
}

TEST_F(SessionTest, ReadsExternalDataBesideTheModel) {
  const NamedTensors out = open("external").run({{"x", f32({1, 0, 0, 1}, {1, 4})}});
  EXPECT_THAT(numbers(out.at("y")), ElementsAre(30, 32));
}

TEST_F(SessionTest, TakesIntegersAndScalarsAndReturnsBools) {
  const Session session = open("greater");
  EXPECT_EQ(session.outputs()[0].dtype, DType::kBool);
  const NamedTensors out = session.run({{"x", i64({1, 2, 3}, {3})}, {"limit", i64({1}, {})}});
  EXPECT_EQ(out.at("y").dtype(), DType::kBool);
  EXPECT_THAT(numbers(out.at("y")), ElementsAre(0, 1, 1));
}

TEST_F(SessionTest, Takes16BitFloatsOfBothKinds) {
  const Session session = open("half");
  Tensor x(DType::kF16, {2});
  x.set(0, 1.5);
  x.set(1, -2);
  const NamedTensors out = session.run({{"x", x}});
  EXPECT_EQ(out.at("twice").dtype(), DType::kF16);
  EXPECT_THAT(numbers(out.at("twice")), ElementsAre(1.5, -2, 1.5, -2));
  EXPECT_EQ(out.at("brain").dtype(), DType::kBF16);
  EXPECT_THAT(numbers(out.at("brain")), ElementsAre(1.5, -2));
}

TEST_F(SessionTest, MissingInputsAreAllNamed) {
  const Session session = open("add");
  const Error error = error_of([&] { session.run({}); });
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("add.onnx"), HasSubstr("'x', 'y'")));
}

TEST_F(SessionTest, UnknownInputsAreNamedWithThoseThereAre) {
  const Session session = open("external");
  const Error error =
      error_of([&] { session.run({{"x", Tensor(DType::kF32, {1, 4})}, {"z", Tensor()}}); });
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("no inputs 'z'"), HasSubstr("it has 'x'")));
}

TEST_F(SessionTest, EveryWrongDtypeRankAndDimensionIsNamed) {
  const Session session = open("add");
  const Error error = error_of(
      [&] { session.run({{"x", i64({1, 2, 3}, {1, 3})}, {"y", Tensor(DType::kF32, {1, 4})}}); });
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("'x' is i64[1, 3], expected f32[batch, 3]"),
                                  HasSubstr("'y' is f32[1, 4], expected f32[?, 3]")));
  EXPECT_THAT(error_of([&] {
                session.run({{"x", Tensor(DType::kF32, {3})}, {"y", Tensor(DType::kF32, {1, 3})}});
              }).what(),
              HasSubstr("'x' is f32[3]"));
}

TEST_F(SessionTest, AFailureInsideTheRunNamesTheModelAndLogsNothingTwice) {
  const Session session = open("add");
  const Error error = error_of([&] {
    session.run({{"x", Tensor(DType::kF32, {2, 3})}, {"y", Tensor(DType::kF32, {5, 3})}});
  });
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(error.what(),
              AllOf(HasSubstr("add.onnx"), HasSubstr("running the model"), HasSubstr("Add")));
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(SessionTest, WarningsReachTheSink) {
  open("unused");
  EXPECT_THAT(warnings_, ElementsAre(AllOf(HasSubstr("unused.onnx"), HasSubstr("needless"))));
}

TEST_F(SessionTest, WarningsBelowTheLevelDoNot) {
  open("unused", {.log_level = LogLevel::kError});
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(SessionTest, WarningsGoToTheSessionTheyAreAbout) {
  std::vector<std::string> others;
  const Session other = Session::open(
      case_path("add"), {},
      {.warning = [&](std::string_view m) { others.emplace_back(m); }, .progress = {}});
  open("unused");
  EXPECT_EQ(warnings_.size(), 1u);
  EXPECT_THAT(others, IsEmpty());
}

TEST_F(SessionTest, AMissingFileIsAnIoError) {
  const Error error = error_of([&] { open("no_such_model"); });
  EXPECT_EQ(error.kind(), ErrorKind::kIo);
  EXPECT_THAT(error.what(), HasSubstr("no_such_model.onnx"));
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(SessionTest, AFileOfSomethingElseIsCorrupt) {
  const fs::path path = folder() / "text.onnx";
  write_text(path, "this is no model");
  const Error error = error_of([&] { Session::open(path, {}, sink()); });
  EXPECT_EQ(error.kind(), ErrorKind::kCorrupt);
  EXPECT_THAT(error.what(), AllOf(HasSubstr(path.string()), HasSubstr("loading the model")));
}

TEST_F(SessionTest, AModelCutAnywhereIsAnErrorAndNeverRunsAsAnother) {
  const std::string whole = file_text(case_path("cache"));
  const fs::path path = folder() / "cut.onnx";
  for (size_t size = 0; size < whole.size(); size += 7) {
    write_text(path, std::string_view(whole).substr(0, size));
    try {
      const Session session = Session::open(path);
      ADD_FAILURE() << "cut at " << size << " it opens with " << session.outputs().size()
                    << " outputs";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("cut.onnx")) << size;
      EXPECT_EQ(error.kind(), ErrorKind::kCorrupt) << size << ": " << error.what();
    }
  }
}

TEST_F(SessionTest, ShortExternalDataIsCorrupt) {
  const fs::path path = folder() / "external.onnx";
  fs::copy_file(case_path("external"), path);
  write_text(folder() / "external.onnx.data", std::string(80, '\0'));
  const Error error = error_of([&] { Session::open(path); });
  EXPECT_EQ(error.kind(), ErrorKind::kCorrupt) << error.what();
  EXPECT_THAT(error.what(), AllOf(HasSubstr("external.onnx"), Not(testing::EndsWith("\n"))));
}

TEST_F(SessionTest, MissingExternalDataIsCorrupt) {
  const fs::path path = folder() / "external.onnx";
  fs::copy_file(case_path("external"), path);
  const Error error = error_of([&] { Session::open(path); });
  EXPECT_EQ(error.kind(), ErrorKind::kCorrupt) << error.what();
  EXPECT_THAT(error.what(), HasSubstr("external.onnx.data"));
}

/// One node y = op(x) over f32[n], by the generated protobuf classes.
::onnx::ModelProto model_of(const std::string& op) {
  ::onnx::ModelProto model;
  model.set_ir_version(9);
  model.add_opset_import()->set_version(20);
  ::onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name("graph");
  ::onnx::NodeProto& node = *graph.add_node();
  node.set_op_type(op);
  node.add_input("x");
  node.add_output("y");
  for (::onnx::ValueInfoProto* value : {graph.add_input(), graph.add_output()}) {
    value->set_name(value == &graph.input(0) ? "x" : "y");
    auto* type = value->mutable_type()->mutable_tensor_type();
    type->set_elem_type(::onnx::TensorProto::FLOAT);
    type->mutable_shape()->add_dim()->set_dim_param("n");
  }
  return model;
}

TEST_F(SessionTest, RunsAModelMadeWithTheGeneratedClasses) {
  const fs::path path = folder() / "negate.onnx";
  write_text(path, model_of("Neg").SerializeAsString());
  const NamedTensors out = Session::open(path, {}, sink()).run({{"x", f32({1, -2}, {2})}});
  EXPECT_THAT(numbers(out.at("y")), ElementsAre(-1, 2));
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(SessionTest, AnUnknownOperatorIsNamed) {
  const fs::path path = folder() / "unknown.onnx";
  write_text(path, model_of("NoSuchOperator").SerializeAsString());
  const Error error = error_of([&] { Session::open(path); });
  EXPECT_EQ(error.kind(), ErrorKind::kCorrupt);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("unknown.onnx"), HasSubstr("NoSuchOperator")));
}

TEST_F(SessionTest, InputsThatAreNotNumbersAreRefusedByName) {
  const Error error = error_of([&] { open("text"); });
  EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("text.onnx"), HasSubstr("'x'")));
}

TEST_F(SessionTest, ADeviceThatTheBuildLacksIsAnErrorWithThoseItHas) {
  const std::vector<std::string> providers = library_->providers();
  if (std::find(providers.begin(), providers.end(), "CUDAExecutionProvider") != providers.end()) {
    GTEST_SKIP() << "this build of ONNX Runtime has CUDA";
  }
  const Error error = error_of([&] { open("add", {.device = "cuda:0"}); });
  EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
  EXPECT_THAT(error.what(), HasSubstr("CPUExecutionProvider"));
}

TEST(SessionDevice, IsCpuOrCudaWithANumber) {
  EXPECT_FALSE(parse_device("cpu").cuda);
  EXPECT_EQ(parse_device("cuda").index, 0);
  EXPECT_EQ(parse_device("cuda:3").index, 3);
  for (const char* text : {"", "gpu", "cuda:", "cuda:-1", "cuda:1x", "CPU"}) {
    EXPECT_EQ(error_of([&] { parse_device(text); }).kind(), ErrorKind::kInvalidArgument) << text;
  }
}

TEST_F(SessionTest, OptionsAreHeeded) {
  const Session session = open("add", {.intra_op_threads = 1,
                                       .optimization = GraphOptimization::kNone,
                                       .config = {{"session.disable_prepacking", "1"}}});
  EXPECT_EQ(
      session.run({{"x", Tensor(DType::kF32, {1, 3})}, {"y", Tensor(DType::kF32, {1, 3})}}).size(),
      1u);
  EXPECT_EQ(error_of([&] { open("add", {.intra_op_threads = -1}); }).kind(),
            ErrorKind::kInvalidArgument);
  EXPECT_EQ(error_of([&] { open("add", {.inter_op_threads = 0}); }).kind(),
            ErrorKind::kInvalidArgument);
  EXPECT_THAT(error_of([&] { open("add", {.config = {{"", "1"}}}); }).what(),
              HasSubstr("setting ''"));
}

TEST_F(SessionTest, RunsFromSeveralThreadsAtOnce) {
  const Session session = open("add");
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&session, &right, t] {
      for (int i = 0; i < 50; ++i) {
        const auto value = static_cast<float>(t * 100 + i);
        const NamedTensors out =
            session.run({{"x", f32({value, value, value}, {1, 3})}, {"y", f32({1, 2, 3}, {1, 3})}});
        right +=
            numbers(out.at("sum")) == std::vector<double>{value + 1, value + 2, value + 3} ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 200);
}

}  // namespace
}  // namespace tranship::onnx
