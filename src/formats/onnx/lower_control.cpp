// Branches and loops: sub-graphs as attributes.
#include "formats/onnx/lowering.h"
#include "onnx-ml.pb.h"

namespace tranship::onnx {

using ir::as;
using ir::Dim;
using ir::Graph;
using ir::Node;
using ir::OpKind;
using ir::ValueId;

void set_type(const ir::Type& type, const std::string& name, ::onnx::ValueInfoProto* info) {
  info->set_name(name);
  ::onnx::TypeProto::Tensor* tensor = info->mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(onnx_dtype(type.dtype));
  ::onnx::TensorShapeProto* shape = tensor->mutable_shape();
  for (const Dim& d : type.shape.dims) {
    ::onnx::TensorShapeProto::Dimension* dimension = shape->add_dim();
    if (d.is_static()) {
      dimension->set_dim_value(d.value());
    } else {
      dimension->set_dim_param(d.text());
    }
  }
}

/// A sub-graph as an attribute. Its first `num_formal` inputs are its own, the others are values of
/// the graph around it.
void Lowering::subgraph(const Graph& body, const std::vector<std::string>& inputs,
                        size_t num_formal, const std::vector<ir::Type>& formal_types,
                        ::onnx::AttributeProto* attribute, std::string_view name) {
  attribute->set_name(std::string(name));
  attribute->set_type(::onnx::AttributeProto::GRAPH);
  ::onnx::GraphProto* graph = attribute->mutable_g();
  graph->set_name(body.name());
  Emitter emit(*graph, &emit_);
  for (size_t i = 0; i < num_formal; ++i) set_type(formal_types[i], inputs[i], graph->add_input());
  std::vector<std::string> output_names;  // names are unique in the whole model
  for (const ir::Output& o : body.outputs())
    output_names.push_back(emit_.unique(body.name() + "/" + o.name));
  Lowering inner(body, output_names, target_, stored_, emit, unsupported_);
  std::vector<std::string> values;
  const std::vector<const Node*> nodes = body.inputs();
  // Loop has an input more than its body in ours: ONNX passes the condition in.
  size_t from = 0;
  for (size_t i = 0; i < nodes.size(); ++i, ++from) {
    if (name == "body" && i == 1 && inputs.size() > nodes.size()) ++from;
    values.push_back(inputs[from]);
  }
  inner.run(values);
  for (size_t i = 0; i < output_names.size(); ++i)
    set_type(body.type(body.outputs()[i].value), output_names[i], graph->add_output());
  weights_.insert(weights_.end(), inner.weights_.begin(), inner.weights_.end());
}

void Lowering::lower_control(const Node& n) {
  std::vector<std::string> inputs;
  for (const ValueId id : n.inputs) inputs.push_back(full(id));
  const auto formal_name = [&](size_t i) {
    return emit_.unique((n.name.empty() ? std::string(name(n.kind())) : n.name) + "/in_" +
                        std::to_string(i));
  };
  std::vector<ir::Type> types;
  for (const ValueId id : n.inputs) types.push_back(graph_.type(id));
  // Sub-graphs first: the sizes that they make stand before the node.
  ::onnx::NodeProto made;
  std::vector<std::string> actual;
  if (n.kind() == OpKind::kIf) {
    actual = {inputs[0]};
    const std::vector<std::string> captured(inputs.begin() + 1, inputs.end());
    subgraph(*n.graphs[0], captured, 0, {}, made.add_attribute(), "then_branch");
    subgraph(*n.graphs[1], captured, 0, {}, made.add_attribute(), "else_branch");
  } else if (n.kind() == OpKind::kLoop) {
    const auto carried = static_cast<size_t>(as<ir::Loop>(*n.op).num_carried);
    actual.assign(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(2 + carried));
    std::vector<std::string> formal = inputs;
    for (size_t i = 0; i < 2 + carried; ++i) formal[i] = formal_name(i);
    subgraph(*n.graphs[0], formal, 2 + carried, types, made.add_attribute(), "body");
  } else {
    const auto& scan = as<ir::Scan>(*n.op);
    const auto formals = static_cast<size_t>(scan.num_carried + scan.num_scanned);
    actual.assign(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(formals));
    std::vector<std::string> formal = inputs;
    for (size_t i = 0; i < formals; ++i) formal[i] = formal_name(i);
    for (size_t i = static_cast<size_t>(scan.num_carried); i < formals; ++i)
      types[i].shape.dims.erase(types[i].shape.dims.begin());
    subgraph(*n.graphs[0], formal, formals, types, made.add_attribute(), "body");
    ::onnx::AttributeProto* count = made.add_attribute();
    count->set_name("num_scan_inputs");
    count->set_type(::onnx::AttributeProto::INT);
    count->set_i(scan.num_scanned);
  }
  ::onnx::NodeProto* node = emit_.raw_node(name(n.kind()), n.name);
  made.set_name(node->name());
  made.set_op_type(node->op_type());
  for (const std::string& input : actual) made.add_input(input);
  for (const ValueId id : n.outputs) {
    form(id).full = wanted(id).empty() ? emit_.unique(node->name() + "_output") : wanted(id);
    made.add_output(form(id).full);
  }
  node->Swap(&made);
}

}  // namespace tranship::onnx
