#include "formats/pt2/import.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "formats/pt2/expression.h"
#include "formats/pt2/importer.h"
#include "formats/pt2/tree_spec.h"
#include "ir/build.h"
#include "ir/verify.h"

namespace tranship::pt2 {
namespace {

using ir::Dim;
using ir::Shape;
using ir::Value;
using Names = std::set<std::string>;

constexpr std::string_view kComponent = "model";
constexpr std::string_view kBareOutput = "output";
constexpr int64_t kMaxConstantElements = 1024;  // buffers up to here are written into the graph

/// The names of what the module takes and gives, in the order of the signature.
struct LeafNames {
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  Names on_both_sides;
};

/// One run over the program. What turns out to be written is only known at the end: then the next
/// run makes states of it.
class Run {
 public:
  Run(const Archive& archive, const std::string& file, const Names& written)
      : archive_(archive),
        program_(archive.program),
        file_(file),
        written_(written),
        importer_(file),
        graph_(std::make_unique<ir::Graph>(std::string(kComponent))) {
    scope_.graph = graph_.get();
  }

  /// -> what is written but was not expected to be.
  Names operator()() {
    set_bounds();
    names_ = leaf_names();
    bind_inputs();
    importer_.run(program_.graph, scope_);
    add_outputs();
    return newly_written();
  }

  ImportedProgram result() {
    ImportedProgram out;
    set_ranges();
    ir::verify(*graph_);
    ir::Component component;
    component.name = kComponent;
    component.graph = std::move(graph_);
    component.states = std::move(states_);
    out.program.components.push_back(std::move(component));
    out.program.parameters = std::move(parameters_);
    out.module_class = program_.module_class;
    out.in_spec = program_.in_spec;
    out.out_spec = program_.out_spec;
    out.example_sizes = std::move(example_sizes_);
    out.input_constants = std::move(input_constants_);
    out.output_constants = std::move(output_constants_);
    out.inputs = std::move(inputs_);
    out.outputs = std::move(outputs_);
    out.argument_names = program_.argument_names;
    out.sizes = std::move(sizes_);
    out.sample_inputs = archive_.sample_inputs;
    out.unmapped = importer_.unmapped();
    return out;
  }

 private:
  template <class... Args>
  [[noreturn]] void corrupt(fmt::format_string<Args...> format, const Args&... args) const {
    fail(ErrorKind::kCorrupt, "[pt2] '{}': {}", file_,
         fmt::vformat(fmt::string_view(format), fmt::make_format_args(args...)));
  }

  void set_bounds();
  void set_ranges();
  LeafNames leaf_names() const;
  void bind_inputs();
  void bind_user_input(size_t i, size_t leaf);
  void note_examples(const TensorMeta& meta);
  void bind_size(const std::string& leaf, const std::string& name);
  void bind_stored(size_t i, const InputSpec& spec);
  const StoredTensor& stored(const InputSpec& spec) const;
  std::string parameter_name(const std::string& name) const;
  Value add_input(const std::string& name, DType dtype, Shape shape);
  const TensorMeta& meta_of(const std::string& name) const;
  DType dtype_of(const TensorMeta& meta, const std::string& name) const;
  Shape shape_of(const TensorMeta& meta, const std::string& name) const;
  Shape input_shape(const std::string& name) const;
  void solve_open_symbols();
  void add_outputs();
  void add_mutation(const OutputSpec& spec, size_t i);
  void add_written_outputs();
  void add_output(const std::string& leaf, Value value);
  Names newly_written() const;
  Reference reference_of(const Argument& argument, const std::string& what) const;

  const Archive& archive_;
  const ExportedProgram& program_;
  const std::string& file_;
  const Names& written_;  // leaves of inputs, and buffers, that are known to be written
  Importer importer_;
  std::unique_ptr<ir::Graph> graph_;
  Scope scope_;
  LeafNames names_;
  std::map<std::string, Reference> originals_;  // inputs and buffers, by leaf or buffer name
  std::map<std::string, TensorSourcePtr> parameters_;
  std::map<std::string, Value> parameter_values_;
  std::vector<ir::State> states_;
  Names output_leaves_;
  std::map<std::string, int64_t> example_sizes_;
  std::vector<ConstantLeaf> input_constants_;
  std::vector<ConstantLeaf> output_constants_;
  std::vector<Leaf> inputs_, outputs_;
  std::vector<std::string> sizes_;
};

bool is_identifier(const std::string& text) {
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) == 0 &&
         std::ranges::all_of(text,
                             [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

void Run::set_bounds() {
  for (const auto& [symbol, range] : program_.ranges) {
    if (!is_identifier(symbol)) continue;  // derived expressions follow from their symbols
    // PyTorch takes sizes to be 2 or more when it traces, but does not insist.
    const std::optional<int64_t> min = range.min && *range.min == 2 ? 1 : range.min;
    importer_.symbols().bounds.set(symbol, {min, range.max});
  }
}

/// Of the symbols that inputs bind, for those who run the graph.
void Run::set_ranges() {
  for (const auto& [symbol, range] : program_.ranges) {
    if (!is_identifier(symbol) || !importer_.symbols().bound.contains(symbol)) continue;
    const int64_t min = range.min && *range.min != 2 ? std::max<int64_t>(*range.min, 0) : 1;
    if (range.max && *range.max < min) corrupt("the range of '{}' is empty", symbol);
    graph_->set_range(symbol, {min, range.max});
  }
}

LeafNames Run::leaf_names() const {
  LeafNames out;
  std::vector<LeafPath> inputs, outputs;
  if (!program_.in_spec.empty())
    inputs = argument_leaves_of(program_.in_spec, program_.argument_names);
  if (!program_.out_spec.empty()) outputs = leaves_of(program_.out_spec);
  const auto count = [](const auto& specs, auto&& is_leaf) {
    return static_cast<size_t>(std::ranges::count_if(specs, is_leaf));
  };
  const size_t num_inputs = count(program_.inputs, [](const InputSpec& s) {
    return s.kind == InputSpec::Kind::kUser || s.kind == InputSpec::Kind::kConstant;
  });
  const size_t num_outputs = count(
      program_.outputs, [](const OutputSpec& s) { return s.kind == OutputSpec::Kind::kUser; });
  if (!inputs.empty() && inputs.size() != num_inputs)
    corrupt("the module takes {} leaves, but the graph {}", inputs.size(), num_inputs);
  if (!outputs.empty() && outputs.size() != num_outputs)
    corrupt("the module gives {} leaves, but the graph {}", outputs.size(), num_outputs);
  for (size_t i = 0; i < num_inputs; ++i)
    out.inputs.push_back(inputs.empty() ? "" : inputs[i].text("input"));
  for (size_t i = 0; i < num_outputs; ++i)
    out.outputs.push_back(outputs.empty() ? "output" + std::to_string(i)
                                          : outputs[i].text(kBareOutput));
  for (const std::string& name : out.outputs) {
    if (std::ranges::find(out.inputs, name) != out.inputs.end()) out.on_both_sides.insert(name);
  }
  return out;
}

const TensorMeta& Run::meta_of(const std::string& name) const {
  const auto it = program_.graph.tensors.find(name);
  if (it == program_.graph.tensors.end()) corrupt("nothing is said of the input '{}'", name);
  return it->second;
}

DType Run::dtype_of(const TensorMeta& meta, const std::string& name) const {
  const std::optional<DType> dtype = find_dtype(meta.type);
  if (!dtype || !meta.is_strided) {
    fail(ErrorKind::kUnsupported, "[pt2] '{}': the input '{}' is {}{}, which is not supported",
         file_, name, meta.is_strided ? "" : "sparse ", torch_name(meta.type));
  }
  return *dtype;
}

Shape Run::shape_of(const TensorMeta& meta, const std::string& name) const {
  Shape shape;
  for (const Size& size : meta.sizes) {
    const auto* expression = std::get_if<Expression>(&size);
    const std::optional<Dim> dim =
        expression == nullptr ? Dim(std::get<int64_t>(size)) : read_expression(expression->text);
    if (!dim) {
      fail(ErrorKind::kUnsupported, "[pt2] '{}': the input '{}' has the size {}", file_, name,
           expression->text);
    }
    shape.dims.push_back(*dim);
  }
  return shape;
}

Value Run::add_input(const std::string& name, DType dtype, Shape shape) {
  ir::Input input;
  input.name = name;
  input.dtype = dtype;
  input.shape = std::move(shape);
  return graph_->add_one(ir::make(std::move(input)), {});
}

void Run::bind_inputs() {
  if (program_.inputs.size() != program_.graph.inputs.size()) {
    corrupt("the signature has {} inputs, the graph {}", program_.inputs.size(),
            program_.graph.inputs.size());
  }
  size_t leaf = 0;
  for (size_t i = 0; i < program_.inputs.size(); ++i) {
    const InputSpec& spec = program_.inputs[i];
    switch (spec.kind) {
      case InputSpec::Kind::kUser:
      case InputSpec::Kind::kConstant:
        bind_user_input(i, leaf++);
        break;
      case InputSpec::Kind::kParameter:
      case InputSpec::Kind::kBuffer:
      case InputSpec::Kind::kTensorConstant:
        bind_stored(i, spec);
        break;
      case InputSpec::Kind::kOther:
        fail(ErrorKind::kUnsupported, "[pt2] '{}': an input of the kind '{}'", file_, spec.target);
    }
  }
  solve_open_symbols();
}

std::string json_of(const Argument& argument) {
  if (const auto* i = std::get_if<IntArgument>(&argument)) {
    if (const auto* n = std::get_if<int64_t>(&i->value)) return std::to_string(*n);
  }
  if (const auto* f = std::get_if<FloatArgument>(&argument)) {
    if (const auto* x = std::get_if<double>(&f->value)) return fmt::format("{}", *x);
  }
  if (const auto* b = std::get_if<BoolArgument>(&argument)) {
    if (const auto* x = std::get_if<bool>(&b->value)) return *x ? "true" : "false";
  }
  if (const auto* s = std::get_if<StringArgument>(&argument)) return Json(s->text).dump();
  return "null";
}

/// A constant as model.json has it.
std::string argument_json(const Argument& argument) {
  const std::string json = json_of(argument);
  if (json == "null") return R"({"as_none":true})";
  return fmt::format("{{\"{}\":{}}}", tag_of(argument), json);
}

void Run::bind_user_input(size_t i, size_t leaf) {
  const Argument& argument = program_.graph.inputs[i];
  std::string name = names_.inputs[leaf];
  if (const auto* tensor = std::get_if<TensorArgument>(&argument)) {
    if (name.empty()) name = tensor->name;
    const bool both = names_.on_both_sides.contains(name) || written_.contains(name);
    const TensorMeta& meta = meta_of(tensor->name);
    note_examples(meta);
    const Reference reference = add_input(both ? "input." + name : name, dtype_of(meta, name),
                                          shape_of(meta, tensor->name));
    scope_.tensors[tensor->name] = reference;
    originals_[name] = reference;
    inputs_.push_back({both ? "input." + name : name, tensor->name});
    return;
  }
  const auto* integer = std::get_if<IntArgument>(&argument);
  const auto* symbol = integer == nullptr ? nullptr : std::get_if<Name>(&integer->value);
  if (symbol != nullptr) return bind_size(name.empty() ? symbol->text : name, symbol->text);
  if (name.empty()) name = program_.inputs[i].target;
  input_constants_.push_back({static_cast<int64_t>(leaf), name, json_of(argument)});
  inputs_.push_back({"", name, argument_json(argument)});
}

void Run::note_examples(const TensorMeta& meta) {
  for (const Size& size : meta.sizes) {
    const auto* expression = std::get_if<Expression>(&size);
    const auto dim = expression == nullptr ? std::nullopt : read_expression(expression->text);
    const auto symbol = dim ? dim->as_symbol() : std::nullopt;
    if (symbol && expression->hint) example_sizes_.emplace(*symbol, *expression->hint);
  }
}

/// An int that is given in each call: an input of its own, whose value is a size.
void Run::bind_size(const std::string& leaf, const std::string& name) {
  const auto said = program_.graph.ints.find(name);
  const auto* expression =
      said == program_.graph.ints.end() ? nullptr : std::get_if<Expression>(&said->second);
  const std::optional<Dim> wanted =
      expression == nullptr ? std::nullopt : read_expression(expression->text);
  ir::Item item;
  item.value = importer_.symbols().birth(wanted);
  const Dim made = item.value;
  graph_->add_one(ir::make(std::move(item)), {add_input(leaf, DType::kI64, {})});
  inputs_.push_back({leaf, name});
  sizes_.push_back(leaf);
  if (wanted && !(*wanted == made)) graph_->assume(made, *wanted);
  scope_.numbers[name] = wanted.value_or(made);
}

const StoredTensor& Run::stored(const InputSpec& spec) const {
  const bool is_constant = spec.kind == InputSpec::Kind::kTensorConstant ||
                           (spec.kind == InputSpec::Kind::kBuffer && !spec.persistent);
  const auto& tensors = is_constant ? archive_.constants : archive_.weights;
  const auto it = tensors.find(spec.target);
  if (it == tensors.end())
    corrupt("the {} '{}' is missing", is_constant ? "constant" : "weight", spec.target);
  return it->second;
}

/// A weight may be called as an input or output is: then it is another name that gives way.
std::string Run::parameter_name(const std::string& name) const {
  const auto is_leaf = [&](const std::string& n) {
    return std::ranges::find(names_.inputs, n) != names_.inputs.end() ||
           std::ranges::find(names_.outputs, n) != names_.outputs.end();
  };
  std::string out = name;
  while (is_leaf(out)) out = "weights." + out;
  return out;
}

void Run::bind_stored(size_t i, const InputSpec& spec) {
  const auto* argument = std::get_if<TensorArgument>(&program_.graph.inputs[i]);
  const auto* named = std::get_if<TensorArgument>(&spec.argument);
  if (argument == nullptr || named == nullptr || argument->name != named->name)
    corrupt("input {} of the graph is not the '{}' of the signature", i, spec.target);
  const StoredTensor& tensor = stored(spec);
  const TensorMeta& meta = meta_of(argument->name);
  const DType dtype = dtype_of(meta, spec.target);
  const Shape shape = Shape::of(tensor.source->shape());
  const bool is_parameter = spec.kind == InputSpec::Kind::kParameter;
  if (dtype != tensor.source->dtype() || !(shape_of(meta, argument->name) == shape)) {
    corrupt("the weight '{}' is {}{}, but the graph takes {}{}", spec.target,
            name(tensor.source->dtype()), shape.text(), name(dtype),
            shape_of(meta, argument->name).text());
  }
  if (written_.contains(spec.target)) {
    const Reference reference = add_input("input." + spec.target, dtype, shape);
    scope_.tensors[argument->name] = reference;
    originals_[spec.target] = reference;
    return;
  }
  auto& value = parameter_values_[tensor.first_name];
  const int64_t elements = tensor.source->num_elements();
  if (!value && (elements == 0 || (!is_parameter && elements <= kMaxConstantElements))) {
    value = constant(*graph_, read_all(*tensor.source));
  }
  if (!value) {
    ir::Param param;
    param.name = parameter_name(tensor.first_name);
    param.dtype = dtype;
    param.shape = shape;
    value = graph_->add_one(ir::make(std::move(param)), {});
    parameters_[ir::as<ir::Param>(*graph_->producer(value.id()).op).name] = tensor.source;
  }
  const Reference reference = value;
  scope_.tensors[argument->name] = reference;
  originals_[spec.target] = reference;
}

/// Symbols are bound by axes of inputs that are nothing but them.
void Run::solve_open_symbols() {
  Names& bound = importer_.symbols().bound;
  Names all;
  for (const ir::Node* node : graph_->inputs()) {
    for (const Dim& dim : graph_->type(node->outputs[0]).shape.dims) {
      if (const auto symbol = dim.as_symbol()) bound.insert(*symbol);
      all.merge(dim.symbols());
    }
  }
  for (const std::string& symbol : all) {
    if (bound.contains(symbol)) continue;
    fail(ErrorKind::kUnsupported,
         "[pt2] '{}': the size '{}' stands in inputs only within expressions: capture the model "
         "with an input that has the size itself",
         file_, symbol);
  }
}

Reference Run::reference_of(const Argument& argument, const std::string& what) const {
  const auto* tensor = std::get_if<TensorArgument>(&argument);
  const auto it = tensor == nullptr ? scope_.tensors.end() : scope_.tensors.find(tensor->name);
  if (it == scope_.tensors.end() || !it->second) corrupt("{} is never made", what);
  return it->second;
}

Shape Run::input_shape(const std::string& name) const {
  for (const ir::Node* node : graph_->inputs()) {
    if (ir::as<ir::Input>(*node->op).name == name) return graph_->type(node->outputs[0]).shape;
  }
  corrupt("there is no input '{}'", name);
}

/// The only axis that differs: a cache grows along it.
std::optional<int64_t> grown_axis(const Shape& from, const Shape& to) {
  std::optional<int64_t> found;
  if (from.rank() != to.rank()) return found;
  for (int64_t axis = 0; axis < to.rank(); ++axis) {
    if (from[axis] == to[axis]) continue;
    if (found) return std::nullopt;
    found = axis;
  }
  return found;
}

void Run::add_output(const std::string& leaf, Value value) {
  if (!output_leaves_.insert(leaf).second) corrupt("two outputs are called '{}'", leaf);
  const bool both = names_.on_both_sides.contains(leaf) || written_.contains(leaf);
  graph_->add_output(both ? "output." + leaf : leaf, value);
  if (!both || !originals_.contains(leaf)) return;
  const Shape before = input_shape("input." + leaf);
  const std::optional<int64_t> grown = grown_axis(before, value.shape());
  if (!grown && !(written_.contains(leaf) && before == value.shape())) return;
  ir::State state;
  state.kind = grown ? ir::State::Kind::kAppend : ir::State::Kind::kOverwrite;
  state.growth_axis = grown.value_or(state.growth_axis);
  state.name = leaf;
  state.input = "input." + leaf;
  state.output = "output." + leaf;
  states_.push_back(std::move(state));
}

void Run::add_outputs() {
  const auto& outputs = program_.graph.outputs;
  if (outputs.size() != program_.outputs.size()) {
    corrupt("the signature has {} outputs, the graph {}", program_.outputs.size(), outputs.size());
  }
  size_t leaf = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const OutputSpec& spec = program_.outputs[i];
    if (spec.kind == OutputSpec::Kind::kOther)
      fail(ErrorKind::kUnsupported, "[pt2] '{}': an output of the kind '{}'", file_, spec.target);
    if (spec.kind != OutputSpec::Kind::kUser) {
      add_mutation(spec, i);
      continue;
    }
    const std::string name = names_.outputs[leaf];
    const auto index = static_cast<int64_t>(leaf++);
    if (std::holds_alternative<TensorArgument>(outputs[i])) {
      add_output(name, reference_of(outputs[i], "the output '" + name + "'").value());
      outputs_.push_back({graph_->outputs().back().name, name});
      continue;
    }
    const std::string json = json_of(outputs[i]);
    const bool is_number = std::holds_alternative<IntArgument>(outputs[i]) ||
                           std::holds_alternative<FloatArgument>(outputs[i]) ||
                           std::holds_alternative<BoolArgument>(outputs[i]);
    if (is_number && json == "null") {  // a size
      const std::vector<Actual> actual = actuals_of(outputs[i], scope_);
      add_output(name, to_value(*graph_, std::get<Number>(actual.at(0))));
      outputs_.push_back({.port = graph_->outputs().back().name, .name = name, .is_size = true});
    } else {
      output_constants_.push_back({index, name, json});
      outputs_.push_back({"", name, argument_json(outputs[i])});
    }
  }
  add_written_outputs();
}

/// An output that stands for what becomes of an input or buffer.
void Run::add_mutation(const OutputSpec& spec, size_t i) {
  if (spec.kind == OutputSpec::Kind::kParameterMutation)
    fail(ErrorKind::kUnsupported, "[pt2] '{}' trains: it changes the parameter '{}'", file_,
         spec.target);
  const Reference made =
      reference_of(program_.graph.outputs[i], "what becomes of '" + spec.target + "'");
  Reference target;
  if (spec.kind == OutputSpec::Kind::kInputMutation) {
    const auto it = scope_.tensors.find(spec.target);
    if (it == scope_.tensors.end()) corrupt("there is no input '{}' to change", spec.target);
    target = it->second;
  } else {
    const auto it = originals_.find(spec.target);
    if (it == originals_.end()) corrupt("there is no buffer '{}' to change", spec.target);
    target = it->second;
  }
  if (!target.shares_storage(made)) {
    if (!(target.value().type() == made.value().type())) {
      corrupt("'{}' is {} and becomes {}", spec.target, target.value().type().text(),
              made.value().type().text());
    }
    target.write(made.value());
  }
}

/// What was written in place and is no output yet.
void Run::add_written_outputs() {
  for (const auto& [leaf, reference] : originals_) {
    if (reference.was_written() && written_.contains(leaf) && !output_leaves_.contains(leaf))
      add_output(leaf, reference.value());
  }
}

Names Run::newly_written() const {
  Names out;
  for (const auto& [leaf, reference] : originals_) {
    if (reference.was_written() && !written_.contains(leaf)) out.insert(leaf);
  }
  return out;
}

}  // namespace

ImportedProgram import_program(const Archive& archive, const std::string& file) {
  Names written;
  for (;;) {
    Run run(archive, file, written);
    const Names more = run();
    if (more.empty()) return run.result();
    written.insert(more.begin(), more.end());
  }
}

void require_mapped(const ImportedProgram& program, const std::string& file) {
  if (program.unmapped.empty()) return;
  std::string list;
  for (const Unmapped& u : program.unmapped) {
    list += fmt::format("\n  {}{}, first in {}", u.what,
                        u.count > 1 ? fmt::format(" ({} times)", u.count) : std::string(), u.where);
  }
  fail(ErrorKind::kUnsupported, "[pt2] '{}': {} operators have no words here:{}", file,
       program.unmapped.size(), list);
}

ImportedProgram import_mapped(const std::filesystem::path& file) {
  ImportedProgram imported = import_program(open_archive(file), file.string());
  require_mapped(imported, file.string());
  return imported;
}

}  // namespace tranship::pt2
