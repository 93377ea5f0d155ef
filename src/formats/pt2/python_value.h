// What a program is called with in Python, and what it gives: dicts, caches and outputs of
// Transformers, with tensors at their leaves. PyTorch keeps it as a tree spec, and pickles it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tranship/dtype.h"

namespace tranship::pt2 {

/// A Python value. Only the members of its kind count.
struct PythonValue {
  enum class Kind {
    kNone,
    kBool,
    kInt,
    kDType,   // torch.float32
    kDevice,  // torch.device("cpu")
    kTensor,  // a graph's input or output: a leaf
    kTuple,
    kList,
    kDict,
    kNumbered,  // a dict with keys 0, 1, ...; only inside of an object
    kObject,    // an instance that PyTorch takes apart by its attributes: a cache, a layer of it
    kOutput     // a ModelOutput: a dict that is a class
  };
  Kind kind = Kind::kNone;
  bool flag = false;
  int64_t number = 0;
  DType dtype = DType::kF32;
  std::string text;                // kTensor: the port's name. kObject, kOutput: "module:Class"
  std::vector<std::string> names;  // kDict, kObject, kOutput: a name for each of `items`
  std::vector<PythonValue> items;

  using Fields = std::vector<std::pair<std::string, PythonValue>>;
  static PythonValue none() { return {}; }
  static PythonValue of(bool value);
  static PythonValue of(int64_t value);
  static PythonValue of(DType value);
  static PythonValue cpu();
  static PythonValue tensor(std::string port);
  static PythonValue tuple(std::vector<PythonValue> items);
  static PythonValue list(std::vector<PythonValue> items);
  static PythonValue dict(Fields fields);
  static PythonValue numbered(std::vector<PythonValue> items);
  static PythonValue object(std::string type, Fields attributes);
  static PythonValue output(std::string type, Fields fields);
};

/// A tensor of a value, in the order in which PyTorch flattens it.
struct Leaf {
  std::string port;
  /// As torch.export names it: "input_ids", "past_key_values_3".
  std::string name;
  /// No tensor but the same in each call: an argument of model.json, {"as_none":true}.
  std::string constant = {};
};
std::vector<Leaf> leaves(const PythonValue& value);

/// As torch.utils._pytree.treespec_dumps writes it.
/// Source: torch/utils/_pytree.py (2.13), transformers/exporters/exporter_dynamo.py (5.23).
std::string tree_spec(const PythonValue& value);

}  // namespace tranship::pt2
