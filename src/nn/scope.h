// Where a definition is in the checkpoint's tree of names, and what it has asked for so far.
#pragma once

#include <concepts>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ir/build.h"
#include "ir/graph.h"

namespace tranship::nn {

/// A tensor of the graph that is being built. (The public tranship::Tensor holds numbers; this one
/// is a handle.)
using Tensor = ir::Value;
using ir::Dim;
using ir::Shape;

/// What a definition may know of a checkpoint.
struct TensorIndex {
  std::vector<std::string> names;
  std::function<bool(const std::string&, const std::string&)>
      equal;  // whether two tensors hold the same numbers
};

/// A tensor of the checkpoint that is a part of a weight: its name below a module.
struct Part {
  std::string name;
  Shape shape;
};

/// A weight that the checkpoint has in parts.
struct JoinedWeight {
  Shape shape;
  std::vector<std::string> parts;
};

/// The weights that a definition has asked for, shared by all graphs of a program.
class Parameters {
 public:
  /// dtype: that of every weight in the graphs. index: null without a checkpoint, when the
  /// families' defaults decide what exists; it must outlive the object.
  Parameters(DType dtype, const TensorIndex* index);

  DType dtype() const { return dtype_; }
  bool has_checkpoint() const { return index_ != nullptr; }
  /// Whether the checkpoint has a tensor of that name, or any below `prefix` with a dot. False
  /// without a checkpoint.
  bool contains(std::string_view name) const { return names_.contains(name); }
  bool contains_below(std::string_view prefix) const;

  /// From now on the two names are one weight, under the name that the checkpoint has, `source` by
  /// preference. If it has both, with other numbers, they stay two, with a warning: as in
  /// Transformers. Source: modeling_utils.py tie_weights (5.23).
  void tie(const std::string& target, const std::string& source);
  /// The name that a weight has in the checkpoint.
  std::string resolve(const std::string& name) const;

  /// Errors: invalid_argument if it was asked before with another shape.
  void ask(const std::string& name, const Shape& shape);
  const std::map<std::string, Shape>& asked() const { return asked_; }
  /// A weight that is made of others, which are asked for.
  void ask_joined(const std::string& name, JoinedWeight weight);
  const std::map<std::string, JoinedWeight>& joined() const { return joined_; }
  const std::set<std::string>& warnings() const { return warnings_; }

 private:
  DType dtype_;
  const TensorIndex* index_;
  std::set<std::string, std::less<>> names_;
  std::map<std::string, std::string> tied_;
  std::map<std::string, Shape> asked_;
  std::map<std::string, JoinedWeight> joined_;
  std::set<std::string> warnings_;
};

/// One step down is `m / "self_attn"` or `m / 3`. Cheap to copy; borrows the graph and the
/// parameters.
class Scope {
 public:
  Scope(ir::Graph& graph, Parameters& parameters, std::string path = "");

  Scope operator/(std::string_view name) const;
  template <std::same_as<int64_t> Index>  // an int64_t and nothing that merely converts to one
  Scope operator/(Index index) const {
    return *this / std::string_view(std::to_string(index));
  }

  /// The weight `name` of this module. Asked for twice, it is one value: that is how weights are
  /// tied.
  Tensor param(std::string_view name, const Shape& shape) const;
  /// The weight `name` whose elements are those of `parts`, one after another. No tensor of the
  /// checkpoint has that name.
  Tensor joined(std::string_view name, const Shape& shape, const std::vector<Part>& parts) const;
  /// Whether the checkpoint has it; without a checkpoint: `otherwise`.
  bool has(std::string_view name, bool otherwise) const;
  /// This module if it holds the checkpoint's weights under `prefix.`, i.e. *this / prefix, else
  /// *this itself: a base model may have been saved alone or inside a model with a head. Without a
  /// checkpoint: inside, if `otherwise`.
  Scope base(std::string_view prefix, bool otherwise) const;

  /// Ties the weights `name` of this module and of `source`, wherever they are asked for from now
  /// on.
  void tie(std::string_view name, Scope source, std::string_view source_name) const;

  const std::string& path() const { return path_; }
  ir::Graph& graph() const { return *graph_; }
  const Parameters& parameters() const { return *parameters_; }
  DType dtype() const { return parameters_->dtype(); }

 private:
  Tensor param_node(std::string name, const Shape& shape) const;

  ir::Graph* graph_;
  Parameters* parameters_;
  std::string path_;
};

}  // namespace tranship::nn
