// ops_to_pt2 OPS.json FOLDER: writes each case of tests/golden/ops.json as <case>.pt2, for
// test_pt2_ops.py to run in PyTorch. Prints what cannot be said, as JSON: {case: reason}.
#include <fmt/core.h>

#include <cstdio>
#include <exception>
#include <filesystem>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/json.h"
#include "formats/pt2/pt2_program.h"
#include "ir/text.h"

namespace {

using namespace tranship;

/// A case's graph as a program that takes a dict of its inputs and gives one of its outputs.
void write(const Json& one, const std::filesystem::path& folder) {
  std::string text;
  for (const Json& line : one.at("graph")) text += line.get<std::string>() + "\n";
  ir::Program program;
  program.components.push_back({one.at("name"), ir::parse(text), {}});
  const ir::Graph& graph = *program.components[0].graph;
  pt2::PythonValue::Fields inputs, outputs;
  std::map<std::string, int64_t> examples;
  for (const ir::Node* node : graph.inputs()) {
    const auto& input = ir::as<ir::Input>(*node->op);
    inputs.emplace_back(input.name, pt2::PythonValue::tensor(input.name));
    const Json& sizes = one.at("inputs").at(input.name).at("shape");
    for (int64_t axis = 0; axis < input.shape.rank(); ++axis) {
      if (const auto symbol = input.shape[axis].as_symbol())
        examples.emplace(*symbol, sizes.at(static_cast<size_t>(axis)));
    }
  }
  for (const ir::Output& output : graph.outputs())
    outputs.emplace_back(output.name, pt2::PythonValue::tensor(output.name));
  const pt2::PythonCall call = {pt2::PythonValue::dict(inputs), pt2::PythonValue::dict(outputs)};
  pt2::Pt2Program::lower(program, {call}, examples).save(folder);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    const Json ops = parse_json("ops", argv[1], read_text(argv[1]));
    Json unsupported = Json::object();
    for (const Json& one : ops.at("cases")) {
      try {
        write(one, argv[2]);
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::kUnsupported) throw;
        unsupported[one.at("name").get<std::string>()] = error.what();
      }
    }
    fmt::print("{}\n", unsupported.dump());
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
