// A .pt2's program as ours: PyTorch's operators become ours, views and writes in place become
// values.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "formats/pt2/archive.h"
#include "formats/pt2/python_value.h"
#include "ir/program.h"

namespace tranship::pt2 {

/// Something that the program does and nobody has mapped.
struct Unmapped {
  std::string what;   // "aten.fft_fft.default", or an operator with what of it is not supported
  int64_t count = 1;  // how many nodes
  std::string where;  // the first of them: its module, and the line of the model's source
};

/// A leaf of what the module takes or gives that is not a tensor: it is the same in each call.
struct ConstantLeaf {
  int64_t index = 0;  // among the leaves
  std::string name;
  std::string json;  // "null", "3", "true"
};

struct ImportedProgram {
  /// One component, "model". Its inputs and outputs have the names that Transformers gives to
  /// leaves ("past_key_values.layers.0.keys"); what is on both sides, because the graph changes it,
  /// is a state: "input.X" and "output.X".
  ir::Program program;
  std::string module_class;  // "LlamaForCausalLM"; empty if the file does not say
  std::string in_spec;       // PyTorch's tree specs, as the file has them; empty if it has none
  std::string out_spec;
  /// Sizes of the sample that was captured, by symbol, as far as the file says.
  std::map<std::string, int64_t> example_sizes;
  std::vector<ConstantLeaf> input_constants;
  std::vector<ConstantLeaf> output_constants;
  /// All leaves in order, by the ports of the component; and the names of arguments.
  std::vector<Leaf> inputs, outputs;
  std::vector<std::string> argument_names;
  std::vector<std::string> sizes;  // ports of inputs that are ints in Python, given in each call
  std::string sample_inputs;       // as the file has them
  std::vector<Unmapped> unmapped;
};

/// `file` is the archive's name, for messages. What is not supported stands in the graph as Opaque
/// and in `unmapped`. Errors: corrupt for a program that contradicts itself or its weights.
ImportedProgram import_program(const Archive& archive, const std::string& file);

/// Errors: unsupported, naming all that is unmapped with its place.
void require_mapped(const ImportedProgram& program, const std::string& file);

/// The program of a file, all of it mapped. Errors: those of the three steps.
ImportedProgram import_mapped(const std::filesystem::path& file);

}  // namespace tranship::pt2
