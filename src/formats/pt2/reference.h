// What a name of PyTorch's graph stands for: a tensor that may share its storage with others, or a
// number.
#pragma once

#include <functional>
#include <memory>
#include <variant>
#include <vector>

#include "ir/graph.h"

namespace tranship::pt2 {

/// A tensor of PyTorch: a view of a storage. The graph has only values; writing in place gives the
/// storage a new one, and each view of it is made again when it is next read. Copies share the
/// storage.
class Reference {
 public:
  /// How a view is read off what it views, and what becomes of that when the view is written.
  using Read = std::function<ir::Value(ir::Value base)>;
  using Write = std::function<ir::Value(ir::Value base, ir::Value view)>;

  Reference() = default;  // nothing: an output that nobody uses
  /// A tensor with a storage of its own.
  Reference(ir::Value value);  // implicit: most operators make new tensors
  /// A view of this one.
  Reference view(Read read, Write write) const;

  explicit operator bool() const { return storage_ != nullptr; }
  /// What it holds now.
  ir::Value value() const;
  /// Gives it another content, of the same type, and with it all that share the storage.
  void write(ir::Value value) const;
  /// Whether anything was written since the storage was made.
  bool was_written() const;
  bool shares_storage(const Reference& other) const { return storage_ == other.storage_; }

 private:
  struct Storage {
    ir::Value value;
    int64_t version = 0;
  };
  struct Step {
    Read read;
    Write write;
  };
  std::shared_ptr<Storage> storage_;
  std::vector<std::shared_ptr<const Step>> steps_;
  mutable ir::Value cached_;
  mutable int64_t cached_version_ = 0;
};

/// num / den, a float.
struct Quotient {
  ir::Dim numerator = 0;
  ir::Dim denominator = 1;
};
/// A comparison of two sizes.
struct Condition {
  ir::CompareKind fn = ir::CompareKind::kEqual;
  ir::Dim a = 0;
  ir::Dim b = 0;
};
/// A float or bool that the graph computes: a scalar of f64 or bool.
struct ComputedFloat {
  ir::Value value;
};
struct ComputedBool {
  ir::Value value;
};
/// A number of Python: an int is a Dim.
using Number =
    std::variant<ir::Dim, double, bool, Quotient, Condition, ComputedFloat, ComputedBool>;

enum class NumberKind { kBool, kInt, kFloat };
NumberKind kind_of(const Number& number);
/// A scalar of i64, f64 or bool.
ir::Value to_value(ir::Graph& graph, const Number& number);

}  // namespace tranship::pt2
