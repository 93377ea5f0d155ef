// Adds nodes and initializers to one ONNX graph, each once: what is asked for twice is made once.
// Internal to formats/onnx.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/dim.h"
#include "tranship/tensor.h"

namespace onnx {  // the generated classes
class GraphProto;
class NodeProto;
}  // namespace onnx

namespace tranship::onnx {

/// ONNX's number for a dtype (TensorProto.DataType).
int32_t onnx_dtype(DType dtype);

/// The domain of ONNX Runtime's own operators.
inline constexpr std::string_view kContribDomain = "com.microsoft";

/// An attribute of a node.
struct Attribute {
  std::string name;
  std::vector<int64_t> ints;  // one, unless is_list
  std::vector<float> floats;
  std::string text;
  bool is_list = false;
  static Attribute of(std::string name, int64_t value) {
    return {std::move(name), {value}, {}, {}, false};
  }
  static Attribute of(std::string name, std::vector<int64_t> values) {
    return {std::move(name), std::move(values), {}, {}, true};
  }
  static Attribute of_float(std::string name, float value) {
    return {std::move(name), {}, {value}, {}, false};
  }
  static Attribute of_text(std::string name, std::string value) {
    return {std::move(name), {}, {}, std::move(value), false};
  }
};

/// Where a symbol can be read from: an axis of a value, or an i64 scalar itself.
struct SymbolOrigin {
  static constexpr int64_t kValue = -1;  // for `axis`: the value is the size
  std::string value;
  int64_t axis = 0;
};

/// Owns nothing: writes into a GraphProto that must outlive it. Names are unique in the whole
/// model.
class Emitter {
 public:
  /// outer: the emitter of the graph around a sub-graph, or null. A sub-graph makes sizes there,
  /// but those that are born in it.
  Emitter(::onnx::GraphProto& graph, Emitter* outer) : graph_(graph), outer_(outer) {}

  ::onnx::GraphProto& graph() { return graph_; }

  /// Adds a node with one result, or finds an equal one. `wanted` is the result's name, if free;
  /// `scope` names the node. An empty input is an absent one.
  std::string node(std::string_view op_type, std::vector<std::string> inputs,
                   const std::vector<Attribute>& attributes = {}, std::string_view scope = "",
                   const std::string& wanted = "");
  /// Adds a node with several results by their wanted names, "" for any, nothing for one that is
  /// not needed (its name comes back empty). Never merged.
  std::vector<std::string> nodes(std::string_view op_type, std::vector<std::string> inputs,
                                 const std::vector<Attribute>& attributes, std::string_view scope,
                                 const std::vector<std::optional<std::string>>& wanted,
                                 std::string_view domain = "");
  /// The same, of an operator of ONNX Runtime's own (domain com.microsoft).
  std::vector<std::string> contrib(std::string_view op_type, std::vector<std::string> inputs,
                                   const std::vector<Attribute>& attributes, std::string_view scope,
                                   const std::vector<std::optional<std::string>>& wanted);
  /// Adds a node as it is, never merged; the caller fills in the rest.
  ::onnx::NodeProto* raw_node(std::string_view op_type, std::string_view scope);
  /// Gives a value a second name.
  void identity(const std::string& from, const std::string& to);

  /// A small tensor as an initializer.
  std::string constant(const Tensor& value);
  std::string ints(const std::vector<int64_t>& values);  // i64 [n]
  std::string scalar(DType dtype, double value);

  void set_origin(const std::string& symbol, SymbolOrigin origin) {
    origins_.emplace(symbol, std::move(origin));
  }
  /// A size as i64 [1], and as an i64 scalar.
  std::string size(const ir::Dim& dim);
  std::string scalar_size(const ir::Dim& dim);
  /// A shape as i64 [rank].
  std::string shape(const std::vector<ir::Dim>& dims);

  /// A name that nobody has: `wanted`, or with a number behind it.
  std::string unique(const std::string& wanted);
  void reserve(const std::string& name) { root().names_.insert(name); }

 private:
  /// The emitter that makes a size: that of the innermost graph that one of its symbols is born in.
  Emitter& home(const ir::Dim& dim);
  int depth() const { return outer_ == nullptr ? 0 : outer_->depth() + 1; }
  Emitter& root() { return outer_ == nullptr ? *this : outer_->root(); }
  std::string product(const ir::Dim::Term& term);
  std::string factor(const ir::Dim::Factor& factor);

  ::onnx::GraphProto& graph_;
  Emitter* outer_;
  std::map<std::string, std::string> made_;       // node's text -> result
  std::map<std::string, std::string> constants_;  // tensor's bytes -> name
  std::map<std::string, SymbolOrigin> origins_;
  std::set<std::string> names_;  // the root's: of all values and nodes
};

}  // namespace tranship::onnx
