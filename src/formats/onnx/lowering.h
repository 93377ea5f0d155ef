// One graph, or sub-graph, on its way to ONNX. Internal to formats/onnx.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "formats/onnx/emitter.h"
#include "formats/onnx/lower.h"
#include "formats/onnx/op_lowering.h"
#include "ir/program.h"

namespace onnx {  // the generated classes
class AttributeProto;
class ValueInfoProto;
}  // namespace onnx

namespace tranship::onnx {

struct GroupedAttention;

/// [B, H, S, D] to [B, S, H, D], and back.
inline const std::vector<int64_t> kHeadsAndTokens = {0, 2, 1, 3};

/// Gemm wants matrices, and takes weights as [out, in]. So a value [..., d] may live in two forms:
/// `full`, as its shape says, and `flat`, as the matrix [rows, d] of its last axis. Linear makes
/// flat values, ops that work row by row keep them flat, and a form is made from the other where it
/// is needed, once. Where ops of ONNX Runtime's own are used, a value of heads [B, H, S, D] has a
/// third one, `merged`: [B, S, H D], as projections make it and as these ops take it.
class Lowering {
 public:
  /// output_names: of the graph's outputs, in order.
  Lowering(const ir::Graph& graph, std::vector<std::string> output_names, const Target& target,
           const std::map<std::string, DType>& stored, Emitter& emit, Unsupported& unsupported);

  /// inputs: names given to the graph's Inputs; a top-level graph has its own.
  void run(const std::vector<std::string>& inputs);
  const std::vector<std::string>& weights() const { return weights_; }

 private:
  struct Form {
    std::string full, flat, merged;
    ir::ValueId reshaped = ir::kAbsent;  // a reshape that has not been made: of this value
    const ir::Node* pending = nullptr;   // a sum, or heads and tokens changing places: not made yet
    bool is_made() const { return !full.empty() || !flat.empty() || !merged.empty(); }
  };

  Form& form(ir::ValueId id) { return forms_[static_cast<size_t>(id)]; }
  const ir::Shape& shape(ir::ValueId id) const { return graph_.type(id).shape; }
  DType dtype(ir::ValueId id) const { return graph_.type(id).dtype; }

  // forms.cpp
  /// The name that the graph's output gives to a value, or none.
  std::string wanted(ir::ValueId id) const;
  bool can_be_flat(ir::ValueId id) const;
  std::string full(ir::ValueId id);
  std::string flat(ir::ValueId id);
  /// Whichever form there is: for what does not look at the shape.
  std::string any(ir::ValueId id);
  /// Of a value [B, H, S, D]: [B, S, H D].
  std::string merged(ir::ValueId id);
  /// Of a value [B, H, S, D]: [B, S, H, D].
  std::string by_tokens(ir::ValueId id);
  /// The value [B, H, S, D] that this one is the merged form of; kAbsent if it is none.
  ir::ValueId heads_of(ir::ValueId id);
  void make_pending(ir::ValueId id);
  std::string reshape(ir::ValueId from, const ir::Shape& to, const std::string& name);
  std::string reshape_from(const std::string& value, const ir::Shape& from, const ir::Shape& to,
                           const std::string& name);
  /// An output's name goes to its full form: a matrix has but one.
  std::string flat_name(const ir::Node& n) const;
  bool goes_flat(const ir::Node& n);

  // lower.cpp
  /// The flat form, which is the full one of a matrix.
  void set_flat(ir::ValueId id, const std::string& name);
  /// The flat form or the full one.
  void set_rows(ir::ValueId id, const std::string& name, bool is_flat);
  void set(const ir::Node& n, std::string name) { form(n.outputs[0]).full = std::move(name); }
  OpLowering by_name(const ir::Node& n);
  void say(const ir::Node& n, std::string_view op_type, std::vector<std::string> inputs,
           const std::vector<Attribute>& attributes = {});
  /// A row-wise op: flat, if an operand is flat already and all others can be or are spread over
  /// rows; else full.
  void say_rows(const ir::Node& n, std::string_view op_type,
                const std::vector<Attribute>& attributes = {});
  void lower(const ir::Node& n);
  void lower_unary(const ir::Node& n);
  void lower_binary(const ir::Node& n);
  void lower_reduce(const ir::Node& n);
  void lower_slice(const ir::Node& n);
  void lower_transpose(const ir::Node& n);
  void lower_expand(const ir::Node& n, const std::string& value, const ir::Shape& to);
  void lower_linear(const ir::Node& n);
  /// All slices of the last axis at once, if nothing else is made of a value.
  void split_rows(const ir::Node& n);
  /// The only node that uses a value, which is no output; null if there is none or more.
  const ir::Node* only_user(ir::ValueId id) const;
  void lower_param(const ir::Node& n);
  void lower_iota(const ir::Node& n);
  void lower_activation(const ir::Node& n);

  // lower_control.cpp
  void lower_control(const ir::Node& n);
  void subgraph(const ir::Graph& body, const std::vector<std::string>& inputs, size_t num_formal,
                const std::vector<ir::Type>& formal_types, ::onnx::AttributeProto* attribute,
                std::string_view name);

  // lower_attention.cpp
  void lower_attention(const ir::Node& n);
  void lower_standard_attention(const ir::Node& n);
  std::string whole_mask(const ir::Node& attention);
  void lower_standard_rope(const ir::Node& n);
  void lower_slots(const ir::Node& scatter, ir::ValueId counter);
  void lower_where(const ir::Node& n);

  // fusions/lower_fused.cpp: ops of ONNX Runtime's own
  void lower_rms_norm(const ir::Node& n);
  /// Whether a Linear without a bias has an operator that takes its operand as it is.
  bool stays_full(const ir::Node& linear);
  std::string lower_product(const ir::Node& linear);
  void lower_rope(const ir::Node& n);
  void lower_layer_norm(const ir::Node& n);
  /// With the sum before the norm in one operator, if there is such a sum, still to be made.
  bool lower_skip_norm(const ir::Node& n, std::string_view op_type, double eps);
  void lower_fused_activation(const ir::Node& n, std::string_view op_type);
  void lower_moe(const ir::Node& n);
  void lower_grouped_attention(const ir::Node& n);
  void lower_multi_head_attention(const ir::Node& n);
  /// Keys or values, each head as often as queries share it: [B, H, T, D], or merged.
  std::string repeated_heads(ir::ValueId id, int64_t times);
  std::string repeated_merged(ir::ValueId id, int64_t times);
  std::string rows_that_see(const ir::Node& attention);
  /// How many keys there are, and how many of them an operator is given.
  struct Lengths {
    std::string taken;             // i64 [1]: all tokens until now, these too; they are given,
    bool gives_all_slots = false;  // or all slots of the cache, whose number is known
  };
  Lengths lengths(const ir::Node& attention, const GroupedAttention& found);
  std::string seen_slots(const ir::Node& attention, const Lengths& lengths);
  std::string zeros_where_nothing_is_seen(const ir::Node& attention, const std::string& seen,
                                          const std::string& value);
  std::string attention_bias(const ir::Node& attention, const Lengths& lengths);

  const ir::Graph& graph_;
  std::vector<std::string> output_names_;
  const Target& target_;
  const std::map<std::string, DType>& stored_;
  Emitter& emit_;
  Unsupported& unsupported_;
  std::vector<Form> forms_;
  std::map<ir::ValueId, std::string> wanted_;
  std::set<ir::ValueId> absorbed_;                   // made by the attention that uses them
  std::vector<std::vector<const ir::Node*>> users_;  // of each value
  std::map<ir::ValueId, ir::ValueId> biases_;        // of values that are without theirs yet
  std::vector<std::string> weights_;
};

void set_type(const ir::Type& type, const std::string& name, ::onnx::ValueInfoProto* info);

}  // namespace tranship::onnx
