// A program of torch.export as its model.json has it (schema 8), as plain structs. Only what an
// import needs is kept; everything that is kept was checked.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tranship/dtype.h"

namespace tranship::pt2 {

/// The name of a value that the graph computes: of a tensor, or of a size, float or bool.
struct Name {
  std::string text;
};

/// An expression in sympy's srepr: "Mul(Integer(2), Symbol('s0', integer=True))".
struct Expression {
  std::string text;
  std::optional<int64_t> hint = {};  // its value in the sample that was captured
};

using Size = std::variant<int64_t, Expression>;

/// A number of PyTorch's ScalarType in model.json.
struct ScalarType {
  int64_t number = 0;
  friend bool operator==(const ScalarType&, const ScalarType&) = default;
};

/// Nothing for a dtype that no tensor of ours can have (complex).
std::optional<DType> find_dtype(ScalarType type);
/// The parts' dtype of complex numbers.
std::optional<DType> find_complex_part(ScalarType type);
/// "float32", "complex64", or "ScalarType 77".
std::string torch_name(ScalarType type);

struct TensorMeta {
  ScalarType type;
  std::vector<Size> sizes;
  std::vector<Size> strides;
  Size storage_offset = int64_t{0};
  bool is_strided = true;  // layout: not sparse
};

using IntItem = std::variant<int64_t, Name>;
using FloatItem = std::variant<double, Name>;
using BoolItem = std::variant<bool, Name>;

struct Graph;

// What an operator is called with. Ints are whole numbers or sizes, alone or in lists.
struct NoneArgument {};
struct TensorArgument {
  std::string name;
};
struct TensorsArgument {
  std::vector<std::optional<std::string>> names;  // nothing for a None in the list
};
struct IntArgument {
  IntItem value;
};
struct IntsArgument {
  std::vector<IntItem> values;
};
struct FloatArgument {
  FloatItem value;
};
struct FloatsArgument {
  std::vector<FloatItem> values;
};
struct BoolArgument {
  BoolItem value;
};
struct BoolsArgument {
  std::vector<BoolItem> values;
};
struct StringArgument {
  std::string text;
};
struct MemoryFormatArgument {
  int64_t number = 0;
};
struct LayoutArgument {
  int64_t number = 0;
};
struct DeviceArgument {
  std::string type;  // "cpu", "cuda"
};
struct GraphArgument {
  std::string name;
  std::shared_ptr<const Graph> graph;
};
/// A tag that no mapped operator takes: as_complex, as_custom_obj ...
struct OtherArgument {
  std::string tag;
};

using Argument = std::variant<NoneArgument, TensorArgument, TensorsArgument, IntArgument,
                              IntsArgument, FloatArgument, FloatsArgument, BoolArgument,
                              BoolsArgument, StringArgument, ScalarType, MemoryFormatArgument,
                              LayoutArgument, DeviceArgument, GraphArgument, OtherArgument>;

/// "as_tensor", "as_ints" ...: the kind of an argument, for messages.
std::string tag_of(const Argument& argument);

struct NamedArgument {
  std::string name;  // as the operator's schema has it; empty for a higher-order operator
  Argument value;
  bool positional = false;
};

struct Node {
  std::string target;  // "torch.ops.aten.add.Tensor"
  std::vector<NamedArgument> inputs;
  std::vector<Argument> outputs;
  std::string name;
  std::string module_path;  // "model.layers.0.mlp", from nn_module_stack; may be empty
  std::string root_class;   // of the outermost module
  std::string source_line;  // the last place of the stack trace; may be empty
};

struct Graph {
  std::vector<Argument> inputs;
  std::vector<Argument> outputs;
  std::vector<Node> nodes;
  std::map<std::string, TensorMeta, std::less<>> tensors;
  std::map<std::string, Size, std::less<>> ints;
  std::map<std::string, std::variant<double, Expression>, std::less<>> floats;
  std::map<std::string, std::variant<bool, Expression>, std::less<>> bools;
};

struct InputSpec {
  enum class Kind { kUser, kParameter, kBuffer, kTensorConstant, kConstant, kOther };
  Kind kind = Kind::kUser;
  Argument argument;       // its name in the graph
  std::string target;      // the parameter, buffer or constant; kOther: the tag
  bool persistent = true;  // kBuffer: whether it is in the state dict
};

struct OutputSpec {
  enum class Kind { kUser, kBufferMutation, kInputMutation, kParameterMutation, kOther };
  Kind kind = Kind::kUser;
  Argument argument;
  std::string target;  // what is mutated; kOther: the tag
};

struct Range {
  std::optional<int64_t> min;
  std::optional<int64_t> max;
};

struct ExportedProgram {
  Graph graph;
  std::vector<InputSpec> inputs;
  std::vector<OutputSpec> outputs;
  /// PyTorch's tree specs of what the module takes and returns, and the names of its arguments;
  /// empty if the file does not say.
  std::string in_spec;
  std::string out_spec;
  std::vector<std::string> argument_names;
  std::map<std::string, Range> ranges;  // by symbol: "s0"; derived expressions as well
  std::string torch_version;
  std::string
      module_class;  // "LlamaForCausalLM", from the outermost of an nn_module_stack; or empty
};

/// A tensor of the archive: a part of a record's storage.
struct Payload {
  std::string record;  // "weight_0"
  bool pickled = false;
  TensorMeta meta;  // sizes, strides and offset in elements, all of them numbers
};

/// Errors (of both): corrupt, with the path of the key, for bad JSON, missing keys, wrong types,
/// two keys in a union; unsupported for another schema than 8. `where` is the file's name in
/// messages.
ExportedProgram read_program(std::string_view where, std::string_view json);
/// model_weights_config.json, by name.
std::map<std::string, Payload> read_payloads(std::string_view where, std::string_view json);

}  // namespace tranship::pt2
