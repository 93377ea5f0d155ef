#include "formats/pt2/archive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "base/testing.h"
#include "formats/pt2/import.h"
#include "formats/pt2/zip_testing.h"

namespace tranship::pt2 {
namespace {

using testing::bytes_of;
using ::testing::HasSubstr;
using testing::TestArchive;
using testing::TestRecord;

// forward(x) = x + w, x f32[s0, 2].
constexpr std::string_view kModel = R"json({"graph_module":{"graph":{
"inputs":[{"as_tensor":{"name":"p_w"}},{"as_tensor":{"name":"x"}}],
"outputs":[{"as_tensor":{"name":"add"}}],
"nodes":[{"target":"torch.ops.aten.add.Tensor","inputs":[
 {"name":"self","arg":{"as_tensor":{"name":"x"}},"kind":1},
 {"name":"other","arg":{"as_tensor":{"name":"p_w"}},"kind":1}],
 "outputs":[{"as_tensor":{"name":"add"}}],"metadata":{}}],
"tensor_values":{
 "p_w":{"dtype":7,"sizes":[{"as_int":2}],"requires_grad":true,"device":{"type":"cpu"},
  "strides":[{"as_int":1}],"storage_offset":{"as_int":0},"layout":7},
 "x":{"dtype":7,"sizes":[{"as_expr":{"expr_str":"Symbol('s0', positive=True, integer=True)"}},{"as_int":2}],
  "requires_grad":false,"device":{"type":"cpu"},"strides":[{"as_int":2},{"as_int":1}],"storage_offset":{"as_int":0},"layout":7},
 "add":{"dtype":7,"sizes":[{"as_expr":{"expr_str":"Symbol('s0', positive=True, integer=True)"}},{"as_int":2}],
  "requires_grad":false,"device":{"type":"cpu"},"strides":[{"as_int":2},{"as_int":1}],"storage_offset":{"as_int":0},"layout":7}},
"sym_int_values":{},"sym_bool_values":{}},
"signature":{"input_specs":[{"parameter":{"arg":{"name":"p_w"},"parameter_name":"w"}},
 {"user_input":{"arg":{"as_tensor":{"name":"x"}}}}],
 "output_specs":[{"user_output":{"arg":{"as_tensor":{"name":"add"}}}}]},
"module_call_graph":[]},
"range_constraints":{"s0":{"min_val":0,"max_val":9}},"schema_version":{"major":8,"minor":20}})json";

constexpr std::string_view kWeights = R"({"config":{"w":{"path_name":"weight_0","is_param":true,
"use_pickle":false,"tensor_meta":{"dtype":7,"sizes":[{"as_int":2}],"requires_grad":true,
"device":{"type":"cpu","index":null},"strides":[{"as_int":1}],"storage_offset":{"as_int":0},"layout":7}}}})";

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string out(text);
  const size_t at = out.find(from);
  EXPECT_NE(at, out.npos) << from;
  return at == out.npos ? out : out.replace(at, from.size(), to);
}

TestArchive good() {
  return {
      .records = {
          {.name = "m/data/weights/weight_0", .content = std::string(8, '\0')},
          {.name = "m/data/weights/model_weights_config.json", .content = std::string(kWeights)},
          {.name = "m/data/constants/model_constants_config.json", .content = R"({"config":{}})"},
          {.name = "m/models/model.json", .content = std::string(kModel)},
          {.name = "m/archive_format", .content = "pt2"},
          {.name = "m/archive_version", .content = "0"}}};
}

TestRecord& record(TestArchive& archive, std::string_view name) {
  for (TestRecord& r : archive.records) {
    if (r.name == name) return r;
  }
  ADD_FAILURE() << name;
  return archive.records[0];
}

std::string content_of(std::string_view name) {
  TestArchive archive = good();
  return record(archive, name).content;
}

class ArchiveTest : public ::testing::Test {
 protected:
  ImportedProgram import(const TestArchive& archive) const {
    const auto path = folder_.write("a.pt2", bytes_of(archive));
    return import_program(open_archive(path), path.string());
  }
  TestFolder folder_;
};

TEST_F(ArchiveTest, a_program_by_hand_is_read) {
  const ImportedProgram program = import(good());
  const ir::Graph& graph = *program.program.components.at(0).graph;
  EXPECT_EQ(graph.outputs().size(), 1U);
  EXPECT_EQ(program.program.parameters.at("w")->shape(), std::vector<int64_t>{2});
  EXPECT_TRUE(program.program.parameters.at("w")->file_range().has_value());
  EXPECT_EQ(graph.symbols().at("s0"), (ir::Range{0, 9}));
}

TEST_F(ArchiveTest, sample_inputs_are_kept_unread) {
  TestArchive archive = good();
  EXPECT_EQ(import(archive).sample_inputs, "");
  archive.records.push_back({.name = "m/data/sample_inputs/model.pt", .content = "no pickle"});
  EXPECT_EQ(import(archive).sample_inputs, "no pickle");
}

TEST_F(ArchiveTest, every_truncation_is_an_error) {
  const std::string whole = bytes_of(good());
  for (size_t size = 0; size < whole.size(); ++size) {
    const auto path = folder_.write("cut.pt2", whole.substr(0, size));
    EXPECT_EQ(error_of([&] { open_archive(path); }).kind(), ErrorKind::kCorrupt) << size;
  }
}

TEST_F(ArchiveTest, every_truncation_of_its_json_is_corrupt) {
  for (const char* name : {"m/models/model.json", "m/data/weights/model_weights_config.json"}) {
    const std::string whole = content_of(name);
    for (size_t size = 0; size < whole.size(); size += 7) {
      TestArchive archive = good();
      record(archive, name).content.resize(size);
      EXPECT_EQ(error_of([&] { import(archive); }).kind(), ErrorKind::kCorrupt) << name << size;
    }
  }
}

struct BadArchive {
  std::string what;  // part of the message
  std::function<void(TestArchive&)> change;
  ErrorKind kind = ErrorKind::kCorrupt;
};

std::function<void(TestArchive&)> in(std::string name, std::string from, std::string to) {
  return [=](TestArchive& a) {
    record(a, name).content = replaced(record(a, name).content, from, to);
  };
}
std::function<void(TestArchive&)> in_model(std::string from, std::string to) {
  return in("m/models/model.json", std::move(from), std::move(to));
}
std::function<void(TestArchive&)> in_weights(std::string from, std::string to) {
  return in("m/data/weights/model_weights_config.json", std::move(from), std::move(to));
}
std::function<void(TestArchive&)> without(std::string name) {
  return [=](TestArchive& a) {
    std::erase_if(a.records, [&](const TestRecord& r) { return r.name == name; });
  };
}

TEST_F(ArchiveTest, what_is_wrong_with_a_program_is_said) {
  const std::vector<BadArchive> cases = {
      {"'m/data/weights/weight_0' is missing", without("m/data/weights/weight_0")},
      {"'m/data/weights/model_weights_config.json' is missing",
       without("m/data/weights/model_weights_config.json")},
      {"'m/models/model.json' is missing", without("m/models/model.json")},
      {"not a .pt2", without("m/archive_format")},
      {"is missing", without("m/archive_version")},
      {"expected 'pt2'", in("m/archive_format", "pt2", "pt3")},
      {"archive_version", in("m/archive_version", "0", "1"), ErrorKind::kUnsupported},
      {"records are in", [](TestArchive& a) { a.records[0].name = "n/data/weights/weight_0"; }},
      {"is in no folder", [](TestArchive& a) { a.records[0].name = "weight_0"; }},
      {"torch 2.7 or older",
       [](TestArchive& a) {
         a.records = {{.name = "serialized_exported_program.json", .content = "{}"}};
       },
       ErrorKind::kUnsupported},
      {"expected a program called 'model'",
       [](TestArchive& a) { record(a, "m/models/model.json").name = "m/models/other.json"; },
       ErrorKind::kUnsupported},
      // weights
      {"does not lie within the 8 bytes", in_weights("\"as_int\":2", "\"as_int\":3")},
      {"does not lie within the 8 bytes",
       in_weights("offset\":{\"as_int\":0", "offset\":{\"as_int\":1")},
      {"does not lie within the 8 bytes",
       in_weights("\"strides\":[{\"as_int\":1}", "\"strides\":[{\"as_int\":2}")},
      {"does not lie within the 8 bytes",
       in_weights("\"as_int\":2", "\"as_int\":9223372036854775807")},
      {"does not lie within the 8 bytes",
       in_weights("\"strides\":[{\"as_int\":1}", "\"strides\":[{\"as_int\":9223372036854775807}")},
      {"is not a number from 0 on",
       in_weights("\"strides\":[{\"as_int\":1}", "\"strides\":[{\"as_int\":-1}")},
      {"is not a number from 0 on",
       in_weights("offset\":{\"as_int\":0",
                  "offset\":{\"as_expr\":{\"expr_str\":\"Symbol('s0')\"}")},
      {"a size of -2", in_weights("\"as_int\":2", "\"as_int\":-2")},
      {"1 sizes and 0 strides", in_weights("\"strides\":[{\"as_int\":1}]", "\"strides\":[]")},
      {"repeats its 2 elements",
       [](TestArchive& a) {
         in_weights("\"as_int\":2", "\"as_int\":99999999999")(a);
         in_weights("\"strides\":[{\"as_int\":1}", "\"strides\":[{\"as_int\":0}")(a);
       },
       ErrorKind::kUnsupported},
      {"but the graph takes", in_weights("\"dtype\":7", "\"dtype\":4")},
      {"does not lie within", in_weights("\"dtype\":7", "\"dtype\":8")},
      {"complex64", in_weights("\"dtype\":7", "\"dtype\":10"), ErrorKind::kUnsupported},
      {"ScalarType 77", in_weights("\"dtype\":7", "\"dtype\":77"), ErrorKind::kUnsupported},
      {"sparse", in_weights("\"layout\":7", "\"layout\":1"), ErrorKind::kUnsupported},
      {"was pickled", in_weights("\"use_pickle\":false", "\"use_pickle\":true"),
       ErrorKind::kUnsupported},
      {"the weight 'w' is missing", in_weights("{\"w\":", "{\"v\":")},
      {"stands twice", in_weights("{\"w\":", "{\"w\":{},\"w\":")},
      {"m/data/weights/../x", in_weights("weight_0", "../x")},
      // the program
      {"schema version 9", in_model("\"major\":8", "\"major\":9"), ErrorKind::kUnsupported},
      {"the key 'graph' is missing", in_model("\"graph\":", "\"graph2\":")},
      {"the key 'target' is missing", in_model("\"target\":", "\"targets\":")},
      {"graph_module.graph.inputs[0]: a union has one key",
       in_model("{\"as_tensor\":{\"name\":\"p_w\"}}",
                "{\"as_tensor\":{\"name\":\"p_w\"},\"as_int\":1}")},
      {"expected a list", in_model("\"nodes\":[", "\"nodes\":{}, \"nodes2\":[")},
      {"expected an integer, found number", in_model("\"dtype\":7", "\"dtype\":7.5")},
      {"more than 63 bits", in_model("{\"as_int\":2}", "{\"as_int\":18446744073709551615}")},
      {"a size of -2", in_model("{\"as_int\":2}", "{\"as_int\":-2}")},
      {"the tensor 'y' is used before it is made",
       in_model("\"arg\":{\"as_tensor\":{\"name\":\"p_w\"}}",
                "\"arg\":{\"as_tensor\":{\"name\":\"y\"}}")},
      {"the tensor 'add' is used before it is made",
       in_model("\"arg\":{\"as_tensor\":{\"name\":\"p_w\"}}",
                "\"arg\":{\"as_tensor\":{\"name\":\"add\"}}")},
      {"the name 'x' is given twice",
       in_model("\"outputs\":[{\"as_tensor\":{\"name\":\"add\"}}],\"metadata\"",
                "\"outputs\":[{\"as_tensor\":{\"name\":\"x\"}}],\"metadata\"")},
      {"nothing is said of the input", in_model("\"x\":{\"dtype\"", "\"z\":{\"dtype\"")},
      {"nothing is said of its result", in_model("\"add\":{\"dtype\"", "\"z\":{\"dtype\"")},
      {"but the file says int64", in_model("\"add\":{\"dtype\":7", "\"add\":{\"dtype\":5")},
      {"is never made", in_model("\"outputs\":[{\"as_tensor\":{\"name\":\"add\"}}],\n\"nodes\"",
                                 "\"outputs\":[{\"as_tensor\":{\"name\":\"q\"}}],\n\"nodes\"")},
      {"the signature has 1 outputs, the graph 0",
       in_model("\"outputs\":[{\"as_tensor\":{\"name\":\"add\"}}],\n\"nodes\"",
                "\"outputs\":[],\n\"nodes\"")},
      {"the argument 'other' is missing", in_model("\"name\":\"other\"", "\"name\":\"others\"")},
      {"the argument 'self' is missing", in_model("\"name\":\"self\"", "\"name\":\"selves\"")},
      {"the positional argument 'max' stands where 'min' belongs",
       [](TestArchive& a) {
         in_model("add.Tensor", "clamp.Tensor")(a);
         in_model("\"name\":\"other\"", "\"name\":\"max\"")(a);
       }},
      {"column", in_model("Symbol('s0', positive", "Symbl('s0', positive")},
      {"expected a symbol's name", in_model("Symbol('s0'", "Symbol('s 0'")},
      {"the range of 's0' is empty", in_model("\"max_val\":9", "\"max_val\":-1")},
      {"no words here:\n  aten.nonsense.Tensor, first in node ''",
       in_model("aten.add.Tensor", "aten.nonsense.Tensor"), ErrorKind::kUnsupported},
      {"the argument 'surprise'",
       in_model("{\"name\":\"other\"",
                "{\"name\":\"surprise\",\"arg\":{\"as_int\":3}},{\"name\":\"other\""),
       ErrorKind::kUnsupported}};
  ASSERT_NO_THROW(require_mapped(import(good()), "a.pt2"));
  for (const BadArchive& bad : cases) {
    TestArchive archive = good();
    bad.change(archive);
    const Error e = error_of([&] { require_mapped(import(archive), "a.pt2"); });
    EXPECT_EQ(e.kind(), bad.kind) << e.what();
    EXPECT_THAT(e.what(), HasSubstr(bad.what));
  }
}

TEST_F(ArchiveTest, weights_may_be_compressed) {
  TestArchive archive = good();
  for (TestRecord& r : archive.records) r.deflated = true;
  const ImportedProgram program = import(archive);
  EXPECT_EQ(read_all(*program.program.parameters.at("w")).num_elements(), 2);
}

TEST_F(ArchiveTest, weights_stay_in_the_file_and_tied_ones_are_one) {
  const Archive archive =
      open_archive(std::filesystem::path(TRANSHIP_SOURCE_DIR) / "tests/cases/pt2/weights.pt2");
  EXPECT_TRUE(archive.weights.at("a").source->file_range().has_value());
  EXPECT_EQ(archive.weights.at("tied").first_name, "a");
  EXPECT_FALSE(archive.weights.at("turned").source->file_range().has_value());
}

}  // namespace
}  // namespace tranship::pt2
