#include "interpret/interpret.h"

#include "base/error.h"
#include "interpret/kernels.h"

namespace tranship {
namespace {

using ir::as;
using ir::Graph;
using ir::Node;
using ir::OpKind;
using ir::ValueId;

/// One run of one graph.
class Run {
 public:
  Run(const Graph& graph, const std::function<Tensor(const std::string&)>& parameter,
      Symbols symbols)
      : graph_(graph),
        parameter_(parameter),
        symbols_(std::move(symbols)),
        values_(graph.num_values()) {}

  /// inputs: in the order of the graph's Inputs.
  std::vector<Array> operator()(std::vector<Array> inputs) {
    bind(std::move(inputs));
    check_assumptions();
    const std::vector<const Node*> last_uses = find_last_uses();
    for (const Node& n : graph_.nodes()) {
      if (n.kind() != OpKind::kInput) run(n);
      for (const ValueId id : n.inputs) {
        if (id != ir::kAbsent && last_uses[static_cast<size_t>(id)] == &n) at(id) = Array();
      }
    }
    std::vector<Array> outputs;
    for (const ir::Output& o : graph_.outputs()) outputs.push_back(at(o.value));
    return outputs;
  }

 private:
  Array& at(ValueId id) { return values_[static_cast<size_t>(id)]; }

  /// By value: the node after which it may go, so that not all weights are held at once; null for
  /// an output.
  std::vector<const Node*> find_last_uses() const {
    std::vector<const Node*> last(graph_.num_values());
    for (const Node& n : graph_.nodes()) {
      for (const ValueId id : n.inputs) {
        if (id != ir::kAbsent) last[static_cast<size_t>(id)] = &n;
      }
    }
    for (const ir::Output& o : graph_.outputs()) last[static_cast<size_t>(o.value)] = nullptr;
    return last;
  }

  void bind(std::vector<Array> inputs) {
    const std::vector<const Node*> nodes = graph_.inputs();
    check(nodes.size() == inputs.size(), "interpret: the number of inputs");
    for (size_t i = 0; i < nodes.size(); ++i) {
      const auto& input = as<ir::Input>(*nodes[i]->op);
      if (inputs[i].dtype != input.dtype || inputs[i].rank() != input.shape.rank()) {
        fail(ErrorKind::kInvalidArgument, "[interpret] input '{}' is {} of rank {}, expected {}{}",
             input.name, name(inputs[i].dtype), inputs[i].rank(), name(input.dtype),
             input.shape.text());
      }
      for (int64_t axis = 0; axis < input.shape.rank(); ++axis) {
        if (const auto symbol = input.shape[axis].as_symbol())
          symbols_.try_emplace(*symbol, inputs[i].shape[static_cast<size_t>(axis)]);
      }
    }
    for (size_t i = 0; i < nodes.size(); ++i) {
      const auto& input = as<ir::Input>(*nodes[i]->op);
      for (int64_t axis = 0; axis < input.shape.rank(); ++axis) {
        const int64_t expected = input.shape[axis].evaluate(symbols_),
                      found = inputs[i].shape[static_cast<size_t>(axis)];
        if (expected != found) {
          fail(ErrorKind::kInvalidArgument,
               "[interpret] input '{}', axis {}: expected {} = {}, found {}", input.name, axis,
               input.shape[axis].text(), expected, found);
        }
      }
      at(nodes[i]->outputs[0]) = std::move(inputs[i]);
    }
  }

  /// Of the sizes that are known so far.
  void check_assumptions() const {
    const auto is_known = [&](const ir::Dim& dim) {
      for (const std::string& symbol : dim.symbols()) {
        if (!symbols_.contains(symbol)) return false;
      }
      return true;
    };
    for (const ir::Assumption& a : graph_.assumptions()) {
      if (!is_known(a.a) || !is_known(a.b)) continue;
      const int64_t left = a.a.evaluate(symbols_), right = a.b.evaluate(symbols_);
      if (left != right) {
        fail(ErrorKind::kInvalidArgument,
             "[interpret] graph '{}' needs {} == {}, but they are {} and {}", graph_.name(),
             a.a.text(), a.b.text(), left, right);
      }
    }
  }

  /// A size that is born from data.
  void name_size(const Node& n, const std::string& symbol) {
    const Array& result = at(n.outputs[0]);
    const int64_t size =
        n.kind() == OpKind::kItem ? static_cast<int64_t>(result[0]) : result.shape[0];
    const auto known = graph_.symbols().find(symbol);
    if (known != graph_.symbols().end() &&
        (size < known->second.min || (known->second.max && size > *known->second.max))) {
      fail(ErrorKind::kInvalidArgument, "[interpret] the size '{}' is {}, outside of its range",
           symbol, size);
    }
    symbols_.insert_or_assign(symbol, size);
    check_assumptions();
  }

  void run(const Node& n) {
    Operands in;
    for (const ValueId id : n.inputs) in.push_back(id == ir::kAbsent ? nullptr : &at(id));
    switch (n.kind()) {
      case OpKind::kParam:
        at(n.outputs[0]) = Array::of(parameter_(as<ir::Param>(*n.op).name));
        return;
      case OpKind::kIf:
        return branch(n, in);
      case OpKind::kLoop:
        return loop(n, in);
      case OpKind::kScan:
        return scan(n, in);
      case OpKind::kOpaque:
        fail(ErrorKind::kUnsupported, "[interpret] the operator '{}' is not known",
             as<ir::Opaque>(*n.op).target);
      default:
        break;
    }
    store(n, 0, run_kernels(*n.op, in, symbols_));
    if (const auto symbol = ir::born_symbol(*n.op)) name_size(n, *symbol);
  }

  std::vector<Array> call(const Graph& body, std::vector<Array> inputs) const {
    return Run(body, parameter_, symbols_)(std::move(inputs));
  }

  void store(const Node& n, size_t first, std::vector<Array> results) {
    for (size_t i = 0; i < results.size(); ++i) at(n.outputs[first + i]) = std::move(results[i]);
  }

  void branch(const Node& n, const Operands& in) {
    std::vector<Array> captured;
    for (size_t i = 1; i < in.size(); ++i) captured.push_back(*in[i]);
    store(n, 0, call(*n.graphs[(*in[0])[0] != 0 ? 0 : 1], std::move(captured)));
  }

  void loop(const Node& n, const Operands& in) {
    const auto carried = static_cast<size_t>(as<ir::Loop>(*n.op).num_carried);
    std::vector<Array> state;
    for (size_t i = 0; i < carried; ++i) state.push_back(*in[2 + i]);
    const auto trips = static_cast<int64_t>((*in[0])[0]);
    bool going = (*in[1])[0] != 0;
    for (int64_t trip = 0; going && trip < trips; ++trip) {
      Array number(DType::kI64, {});
      number[0] = static_cast<double>(trip);
      std::vector<Array> inputs = {std::move(number)};
      inputs.insert(inputs.end(), state.begin(), state.end());
      for (size_t i = 2 + carried; i < in.size(); ++i) inputs.push_back(*in[i]);
      std::vector<Array> results = call(*n.graphs[0], std::move(inputs));
      going = results[0][0] != 0;
      state.assign(results.begin() + 1, results.end());
    }
    store(n, 0, std::move(state));
  }

  void scan(const Node& n, const Operands& in) {
    const auto carried = static_cast<size_t>(as<ir::Scan>(*n.op).num_carried);
    const auto scanned = static_cast<size_t>(as<ir::Scan>(*n.op).num_scanned);
    const int64_t length = in[carried]->shape[0];
    std::vector<Array> state;
    for (size_t i = 0; i < carried; ++i) state.push_back(*in[i]);
    std::vector<Array> stacked;
    for (size_t i = carried; i < n.outputs.size(); ++i) {
      Sizes shape;
      for (const ir::Dim& d : graph_.type(n.outputs[i]).shape.dims)
        shape.push_back(d.evaluate(symbols_));
      stacked.emplace_back(graph_.type(n.outputs[i]).dtype, shape);
    }
    for (int64_t step = 0; step < length; ++step) {
      std::vector<Array> inputs = state;
      for (size_t i = carried; i < carried + scanned; ++i) {
        Array slice(in[i]->dtype, Sizes(in[i]->shape.begin() + 1, in[i]->shape.end()));
        std::copy_n(in[i]->data.begin() + step * slice.size(), slice.size(), slice.data.begin());
        inputs.push_back(std::move(slice));
      }
      for (size_t i = carried + scanned; i < in.size(); ++i) inputs.push_back(*in[i]);
      std::vector<Array> results = call(*n.graphs[0], std::move(inputs));
      for (size_t i = carried; i < results.size(); ++i) {
        std::copy(results[i].data.begin(), results[i].data.end(),
                  stacked[i - carried].data.begin() + step * results[i].size());
      }
      results.resize(carried);
      state = std::move(results);
    }
    store(n, 0, std::move(state));
    store(n, carried, std::move(stacked));
  }

  const Graph& graph_;
  const std::function<Tensor(const std::string&)>& parameter_;
  Symbols symbols_;
  std::vector<Array> values_;
};

}  // namespace

NamedTensors interpret(const Graph& graph, const NamedTensors& inputs,
                       const std::function<Tensor(const std::string&)>& parameter) {
  std::vector<Array> arrays;
  std::vector<std::string> missing;
  for (const Node* n : graph.inputs()) {
    const auto it = inputs.find(as<ir::Input>(*n->op).name);
    if (it == inputs.end()) {
      missing.push_back(as<ir::Input>(*n->op).name);
    } else {
      arrays.push_back(Array::of(it->second));
    }
  }
  if (!missing.empty())
    fail(ErrorKind::kInvalidArgument, "[interpret] graph '{}': missing inputs {}", graph.name(),
         listed(missing));
  std::vector<Array> results = Run(graph, parameter, {})(std::move(arrays));
  NamedTensors outputs;
  for (size_t i = 0; i < results.size(); ++i)
    outputs.emplace(graph.outputs()[i].name, results[i].to_tensor());
  return outputs;
}

NamedTensors interpret(const ir::Program& program, const std::string& component,
                       const NamedTensors& inputs) {
  for (const ir::Component& c : program.components) {
    if (c.name != component) continue;
    return interpret(*c.graph, inputs, [&](const std::string& parameter) {
      const auto it = program.parameters.find(parameter);
      check(it != program.parameters.end(), "interpret: no parameter '" + parameter + "'");
      return read_all(*it->second);
    });
  }
  fail(ErrorKind::kInvalidArgument, "[interpret] the program has no component '{}'", component);
}

std::vector<Tensor> evaluate(const ir::Op& op, const std::vector<const Tensor*>& operands) {
  std::vector<Array> arrays;
  arrays.reserve(operands.size());
  Operands in;
  for (const Tensor* t : operands) {
    arrays.push_back(t == nullptr ? Array() : Array::of(*t));
    in.push_back(t == nullptr ? nullptr : &arrays.back());
  }
  std::vector<Tensor> results;
  for (const Array& result : run_kernels(op, in, {})) results.push_back(result.to_tensor());
  return results;
}

}  // namespace tranship
