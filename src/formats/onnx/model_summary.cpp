#include "formats/onnx/model_summary.h"

#include <charconv>
#include <limits>

#include "base/error.h"
#include "base/mapped_file.h"
#include "formats/onnx/read_model.h"
#include "onnx-ml.pb.h"

namespace tranship::onnx {
namespace {

using ::onnx::GraphProto;
using ::onnx::ModelProto;
using ::onnx::TensorProto;
using ::onnx::ValueInfoProto;

ValueInfo read_value(const std::string& file, const ValueInfoProto& value) {
  const auto& tensor = value.type().tensor_type();
  const std::optional<DType> dtype = find_ort_dtype(tensor.elem_type());
  if (!value.type().has_tensor_type() || !dtype) {
    fail(ErrorKind::kUnsupported,
         "[onnx] '{}': '{}' is not a tensor of a known dtype (element type {})", file, value.name(),
         tensor.elem_type());
  }
  ValueInfo info{value.name(), *dtype, {}, {}};
  for (const auto& dim : tensor.shape().dim()) {
    info.shape.push_back(dim.has_dim_value() ? dim.dim_value() : -1);
    info.dim_names.push_back(dim.dim_param());
  }
  return info;
}

void add_data_file(const TensorProto& tensor, ModelSummary& summary) {
  if (tensor.data_location() != TensorProto::EXTERNAL) return;
  for (const auto& entry : tensor.external_data()) {
    if (entry.key() == "location") summary.data_files.insert(entry.value());
  }
}

/// What an external tensor's entries say; 0 for what is not a number.
void read_external(const TensorProto& tensor, WeightInfo& info) {
  for (const auto& entry : tensor.external_data()) {
    const std::string& value = entry.value();
    const auto read = [&](uint64_t& number) {
      std::from_chars(value.data(), value.data() + value.size(), number);
    };
    if (entry.key() == "location") info.data_file = value;
    if (entry.key() == "length") read(info.size_bytes);
    if (entry.key() == "offset") read(info.offset);
  }
}

/// Bytes of the elements that are in the file, in whichever field.
uint64_t inline_bytes(const TensorProto& tensor, size_t element_bytes) {
  if (!tensor.raw_data().empty()) return tensor.raw_data().size();
  const auto count = [](int size) { return static_cast<uint64_t>(size); };
  return 4 * count(tensor.float_data_size()) + 8 * count(tensor.double_data_size()) +
         8 * count(tensor.int64_data_size()) +
         element_bytes * (count(tensor.int32_data_size()) + count(tensor.uint64_data_size()));
}

WeightInfo read_weight(const TensorProto& tensor) {
  const std::optional<DType> dtype = find_ort_dtype(tensor.data_type());
  WeightInfo info{.name = tensor.name(),
                  .dtype = dtype ? std::string(name(*dtype))
                                 : fmt::format("element type {}", tensor.data_type()),
                  .shape = {tensor.dims().begin(), tensor.dims().end()},
                  .size_bytes = 0,
                  .data_file = ""};
  if (tensor.data_location() == TensorProto::EXTERNAL) {
    read_external(tensor, info);
  } else {
    info.size_bytes = inline_bytes(tensor, dtype ? size_bytes(*dtype) : 1);
  }
  return info;
}

void count_nodes(const GraphProto& graph, ModelSummary& summary) {
  for (const auto& node : graph.node()) {
    ++summary
          .operators[node.domain().empty() ? node.op_type() : node.domain() + "." + node.op_type()];
    for (const auto& attribute : node.attribute()) {
      add_data_file(attribute.t(), summary);
      if (attribute.has_g()) count_nodes(attribute.g(), summary);
      for (const GraphProto& part : attribute.graphs()) count_nodes(part, summary);
    }
  }
  summary.num_weights += static_cast<size_t>(graph.initializer_size());
  for (const TensorProto& tensor : graph.initializer()) {
    add_data_file(tensor, summary);
    summary.weights.push_back(read_weight(tensor));
  }
}

/// Inputs by how many nodes and sub-graphs may read them.
std::map<std::string, size_t> count_reads(const GraphProto& graph) {
  std::map<std::string, size_t> reads;
  for (const auto& node : graph.node()) {
    for (const std::string& input : node.input()) ++reads[input];
    for (const auto& attribute : node.attribute()) {
      std::vector<const GraphProto*> inner;
      if (attribute.has_g()) inner.push_back(&attribute.g());
      for (const GraphProto& part : attribute.graphs()) inner.push_back(&part);
      for (const GraphProto* part : inner) {
        for (const auto& [name, count] : count_reads(*part)) reads[name] += count;
      }
    }
  }
  return reads;
}

std::set<std::string> names_of(const google::protobuf::RepeatedPtrField<ValueInfoProto>& values) {
  std::set<std::string> names;
  for (const ValueInfoProto& value : values) names.insert(value.name());
  return names;
}

ModelProto parse(const MappedFile& file) {
  const size_t size = file.bytes().size();
  ModelProto model;
  const bool small = size <= static_cast<size_t>(std::numeric_limits<int>::max());
  if (!small || !model.ParseFromArray(file.bytes().data(), static_cast<int>(size)) ||
      !model.has_graph()) {
    fail(ErrorKind::kCorrupt, "[onnx] '{}' ({} bytes) is not an ONNX model, or not a whole one",
         file.path().string(), size);
  }
  return model;
}

}  // namespace

std::map<std::string, std::string> find_in_place(const GraphProto& graph) {
  constexpr int kPastKey = 3, kPresentKey = 1;
  const std::set<std::string> inputs = names_of(graph.input()), outputs = names_of(graph.output());
  const std::map<std::string, size_t> reads = count_reads(graph);
  std::map<std::string, std::string> found;
  for (const auto& node : graph.node()) {
    if (node.op_type() != "GroupQueryAttention") continue;
    for (int i = 0; i < 2; ++i) {
      if (node.input_size() <= kPastKey + i || node.output_size() <= kPresentKey + i) continue;
      const std::string &from = node.input(kPastKey + i), &to = node.output(kPresentKey + i);
      if (inputs.contains(from) && outputs.contains(to) && reads.at(from) == 1)
        found.emplace(from, to);
    }
  }
  return found;
}

::onnx::ModelProto read_model(const std::filesystem::path& path) {
  return parse(*MappedFile::open(path));
}

ModelSummary read_summary(const std::filesystem::path& path) {
  return read_summary(*MappedFile::open(path));
}

ModelSummary read_summary(const MappedFile& file) {
  const ModelProto model = parse(file);
  const std::string path = file.path().string();
  const GraphProto& graph = model.graph();
  ModelSummary summary;
  summary.ir_version = model.ir_version();
  summary.producer = model.producer_name();
  if (!model.producer_version().empty()) summary.producer += " " + model.producer_version();
  for (const auto& opset : model.opset_import()) summary.opsets[opset.domain()] = opset.version();
  std::set<std::string> weights;
  for (const TensorProto& tensor : graph.initializer()) weights.insert(tensor.name());
  for (const ValueInfoProto& value : graph.input()) {
    if (!weights.contains(value.name())) summary.inputs.push_back(read_value(path, value));
  }
  for (const ValueInfoProto& value : graph.output())
    summary.outputs.push_back(read_value(path, value));
  summary.num_nodes = static_cast<size_t>(graph.node_size());
  count_nodes(graph, summary);
  summary.in_place = find_in_place(graph);
  return summary;
}

}  // namespace tranship::onnx
