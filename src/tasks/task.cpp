#include "tasks/task.h"

#include <algorithm>

#include "base/error.h"
#include "tasks/quantized.h"

namespace tranship::tasks {
namespace {

using ir::Dim;
using nn::ModelInputs;
using nn::ModelOutputs;

/// Caches that begin empty: a layer's keys and values are what it has just made.
class FreshCache : public nn::Cache {
 public:
  nn::KeyValue update(int64_t, ir::Value keys, ir::Value values) override {
    layers.push_back({keys, values});
    return layers.back();
  }
  std::vector<nn::KeyValue> layers;
};

/// Caches that come in as inputs and grow along the tokens.
class GrowingCache : public nn::Cache {
 public:
  GrowingCache(ir::Graph& graph, std::string name) : graph_(graph), name_(std::move(name)) {}

  nn::KeyValue update(int64_t layer, ir::Value keys, ir::Value values) override {
    layers.push_back({grow(layer, "keys", keys), grow(layer, "values", values)});
    return layers.back();
  }
  std::vector<nn::KeyValue> layers;

 private:
  ir::Value grow(int64_t layer, std::string_view part, ir::Value added) {
    ir::Input input;
    input.name = fmt::format("input.{}.layers.{}.{}", name_, layer, part);
    input.dtype = added.dtype();
    input.shape = added.shape();
    input.shape[2] = Dim::symbol("past");
    const ir::Value past = graph_.add_one(ir::make(std::move(input)), {});
    return graph_.add_one(ir::make(ir::CacheAppend{}), {past, added});
  }

  ir::Graph& graph_;
  std::string name_;
};

/// Makes the graphs of one program.
class Builder {
 public:
  Builder(const CheckpointData& checkpoint, const TaskOptions& options)
      : checkpoint_(checkpoint),
        options_(options),
        selected_(select(checkpoint.config, options.architecture)),
        index_(index_of(checkpoint, options.dtype)),
        parameters_(options.dtype,
                    checkpoint.kind == CheckpointKind::kSynthetic ? nullptr : &index_) {
    refuse_quantized(checkpoint);
    check_cache_name();
    check_graph_inputs();
    result_.model_type = selected_.family->model_type;
    result_.architecture = selected_.architecture->name;
  }

  const Selected& selected() const { return selected_; }
  bool has_cache() const { return selected_.family->has_cache; }

  /// A graph without a cache coming in.
  void add_fresh(std::string name, const std::vector<std::string>& optional_inputs,
                 bool gives_cache) {
    auto graph = std::make_unique<ir::Graph>(name);
    FreshCache cache;
    ModelInputs in = inputs(*graph, optional_inputs, Dim::symbol("sequence"), 0);
    in.cache = &cache;
    const ModelOutputs out = forward(*graph, in);
    if (!gives_cache) cache.layers.clear();
    finish(std::move(graph), out, optional_inputs, cache.layers, false);
  }

  void add_decode(const std::vector<std::string>& optional_inputs) {
    auto graph = std::make_unique<ir::Graph>("decode");
    GrowingCache cache(*graph, options_.cache_name);
    ModelInputs in = inputs(*graph, optional_inputs, 1, Dim::symbol("past"));
    in.cache = &cache;
    const ModelOutputs out = forward(*graph, in);
    graph->set_range("past", {.min = 0, .max = {}});
    finish(std::move(graph), out, optional_inputs, cache.layers, true);
  }

  /// The optional inputs asked for, and `more`, in the model's order.
  std::vector<std::string> optional_inputs(const std::vector<std::string>& more) const {
    std::vector<std::string> names;
    for (const std::string_view name : selected_.family->optional_inputs) {
      const auto in = [&](const std::vector<std::string>& list) {
        return std::find(list.begin(), list.end(), name) != list.end();
      };
      if (in(options_.graph_inputs) || in(more)) names.emplace_back(name);
    }
    return names;
  }

  TaskProgram finish_program(const Sink& sink) {
    for (const std::string& warning : parameters_.warnings()) sink.warn(warning);
    check_config();
    bind_parameters();
    check_leftovers();
    warn_of_narrow_range(sink);
    return std::move(result_);
  }

 private:
  static nn::TensorIndex index_of(const CheckpointData& checkpoint, DType dtype) {
    nn::TensorIndex index;
    for (const auto& [name, source] : checkpoint.tensors) index.names.push_back(name);
    index.equal = [&checkpoint, dtype](const std::string& a, const std::string& b) {
      return equal(*cast_source(checkpoint.tensors.at(a), dtype),
                   *cast_source(checkpoint.tensors.at(b), dtype));
    };
    return index;
  }

  /// Whether two tensors hold the same numbers, in the dtype that both will have: as Transformers
  /// compares them once they are loaded. Read block by block.
  static bool equal(const TensorSource& a, const TensorSource& b) {
    if (a.shape() != b.shape()) return false;
    constexpr int64_t kBlock = 1 << 18;
    std::vector<std::byte> left, right;
    for (int64_t first = 0; first < a.num_elements(); first += kBlock) {
      const int64_t count = std::min(kBlock, a.num_elements() - first);
      left.resize(static_cast<size_t>(count) * size_bytes(a.dtype()));
      right.resize(left.size());
      a.read(first, count, left);
      b.read(first, count, right);
      if (left != right) return false;
    }
    return true;
  }

  void check_cache_name() const {
    const std::string& name = options_.cache_name;
    const bool is_identifier = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    });
    if (is_identifier) return;
    fail(ErrorKind::kInvalidArgument,
         "[task] the cache's name is '{}'; expected letters, digits and _, as in past_key_values",
         name);
  }

  void check_graph_inputs() const {
    const auto& known = selected_.family->optional_inputs;
    for (const std::string& name : options_.graph_inputs) {
      if (name == "input_ids" || std::find(known.begin(), known.end(), name) != known.end())
        continue;
      fail(ErrorKind::kInvalidArgument, "[task] {} has no input '{}'; its optional inputs are {}",
           selected_.architecture->name, name, listed({known.begin(), known.end()}));
    }
  }

  ModelInputs inputs(ir::Graph& graph, const std::vector<std::string>& optional_inputs,
                     const Dim& length, const Dim& past) const {
    const Dim batch = Dim::symbol("batch");
    const auto input = [&](const std::string& name, const Dim& size) {
      ir::Input op;
      op.name = name;
      op.dtype = DType::kI64;
      op.shape = {batch, size};
      return graph.add_one(ir::make(std::move(op)), {});
    };
    ModelInputs in;
    in.past = past;
    in.input_ids = input("input_ids", length);
    for (const std::string& name : optional_inputs) {
      if (name == "attention_mask") in.attention_mask = input(name, past + length);
      if (name == "token_type_ids") in.token_type_ids = input(name, length);
      if (name == "position_ids") in.position_ids = input(name, length);
    }
    return in;
  }

  ModelOutputs forward(ir::Graph& graph, const ModelInputs& in) {
    return selected_.architecture->forward(nn::Scope(graph, parameters_), in, checkpoint_.config);
  }

  void finish(std::unique_ptr<ir::Graph> graph, const ModelOutputs& out,
              const std::vector<std::string>& optional_inputs,
              const std::vector<nn::KeyValue>& layers, bool takes_cache) {
    ir::Component component;
    Signature signature;
    signature.output_class = out.output_class;
    signature.arguments = {"input_ids"};
    signature.arguments.insert(signature.arguments.end(), optional_inputs.begin(),
                               optional_inputs.end());
    for (const auto& [name, value] : out.values) {
      graph->add_output(name, value);
      signature.fields.push_back(name);
    }
    const std::string prefix = takes_cache ? "output." : "";
    for (size_t i = 0; i < layers.size(); ++i) {
      const std::string layer = fmt::format("{}.layers.{}.", options_.cache_name, i);
      for (const auto& [part, value] :
           {std::pair("keys", layers[i].keys), std::pair("values", layers[i].values)}) {
        graph->add_output(prefix + layer + part, value);
        component.states.push_back({.name = layer + part,
                                    .input = takes_cache ? "input." + layer + part : "",
                                    .output = prefix + layer + part});
      }
    }
    if (!layers.empty()) signature.fields.push_back(options_.cache_name);
    signature.num_cache_layers = static_cast<int64_t>(layers.size());
    signature.takes_cache = takes_cache;
    if (takes_cache) signature.arguments.push_back(options_.cache_name);
    component.name = graph->name();
    component.graph = std::move(graph);
    result_.program.components.push_back(std::move(component));
    result_.signatures.push_back(std::move(signature));
  }

  void check_config() const {
    std::vector<std::string> unknown;
    for (const std::string& key : checkpoint_.config.unread()) {
      const auto& ignored = options_.ignored_config_keys;
      if (std::find(ignored.begin(), ignored.end(), key) == ignored.end()) unknown.push_back(key);
    }
    if (unknown.empty()) return;
    fail(ErrorKind::kUnsupported,
         "[config] {}: {} does not know {}: what they change would be lost. If they do not change "
         "what the model computes, pass "
         "--ignore-config KEY for each (ignored_config_keys in the API)",
         checkpoint_.config.where(), selected_.architecture->name, listed(unknown));
  }

  void bind_parameters() {
    std::vector<std::string> missing, misshapen, codes;
    for (const auto& [name, shape] : parameters_.asked()) {
      TensorSourcePtr source = checkpoint_.find_tensor(name, shape.sizes());
      if (source == nullptr) {
        missing.push_back(name);
      } else if (source->shape() != shape.sizes()) {
        misshapen.push_back(fmt::format("{} is {}, expected {}", name,
                                        ir::Shape::of(source->shape()).text(), shape.text()));
      } else if (!holds_numbers(source->dtype())) {
        codes.push_back(fmt::format("{} ({})", name, tranship::name(source->dtype())));
      } else {
        result_.program.parameters.emplace(name, cast_source(std::move(source), options_.dtype));
      }
    }
    const std::string where = checkpoint_.path.string();
    if (!missing.empty()) {
      fail(ErrorKind::kCorrupt,
           "[checkpoint] '{}': {} needs tensors that are not there: {}. Is it a checkpoint of {}, "
           "and is it complete?",
           where, selected_.architecture->name, listed(missing), selected_.architecture->name);
    }
    if (!misshapen.empty()) {
      fail(ErrorKind::kCorrupt,
           "[checkpoint] '{}': tensors have other shapes than config.json says: {}", where,
           listed(misshapen));
    }
    if (!codes.empty()) {
      fail(ErrorKind::kUnsupported,
           "[checkpoint] '{}': tensors hold codes that mean nothing without their scales: {}. The "
           "checkpoint is quantized in a way that tranship cannot read yet: export the original "
           "one, or one saved after dequantizing",
           where, listed(codes));
    }
  }

  /// Numbers past 65504, which bf16 and f32 have, are infinite in f16: weights are looked at when
  /// they are written, activations are not.
  void warn_of_narrow_range(const Sink& sink) const {
    if (options_.dtype != DType::kF16) return;
    for (const auto& [name, source] : result_.program.parameters) {
      const TensorSourcePtr stored = source->uncast();
      if (stored == nullptr) continue;
      sink.warn(fmt::format(
          "[export] the weights are {} and become f16, which has no numbers over 65504: "
          "activations that were larger become infinite. Compare the outputs, or take f32 or bf16",
          tranship::name(stored->dtype())));
      return;
    }
  }

  void check_leftovers() const {
    std::vector<std::string> leftover;
    for (const auto& [name, source] : checkpoint_.tensors) {
      if (!parameters_.asked().contains(name) &&
          !parameters_.asked().contains(parameters_.resolve(name)) && !is_ignorable(name)) {
        leftover.push_back(name);
      }
    }
    if (leftover.empty()) return;
    fail(ErrorKind::kInvalidArgument,
         "[checkpoint] '{}': {} does not use {}: what they hold would be lost. Is the architecture "
         "right (--architecture)?",
         checkpoint_.path.string(), selected_.architecture->name, listed(leftover));
  }

  bool is_ignorable(const std::string& name) const {
    for (const std::string_view pattern : selected_.family->ignorable) {
      if (pattern.back() == '.' ? name.starts_with(pattern) : name.ends_with(pattern)) return true;
    }
    return false;
  }

  const CheckpointData& checkpoint_;
  const TaskOptions& options_;
  Selected selected_;
  nn::TensorIndex index_;
  nn::Parameters parameters_;
  TaskProgram result_;
};

}  // namespace

Selected select(const Config& config, const std::string& architecture) {
  const std::string model_type = config.text("model_type", "");
  const nn::Family* family = models::find_family(model_type);
  if (family == nullptr) {
    std::vector<std::string> known;
    for (const nn::Family* f : models::families()) known.emplace_back(f->model_type);
    fail(ErrorKind::kUnsupported,
         "[config] {}: model_type '{}' has no definition; known are {}. See docs/extending.md for "
         "how to add one",
         config.where(), model_type, listed(known));
  }
  std::string wanted = architecture;
  if (wanted.empty()) {
    const std::vector<std::string> named = config.texts("architectures");
    wanted = named.empty() ? std::string(family->architectures.front().name) : named.front();
  }
  if (const nn::Architecture* found = models::find_architecture(*family, wanted))
    return {family, found};
  std::vector<std::string> known;
  for (const nn::Architecture& a : family->architectures) known.emplace_back(a.name);
  fail(ErrorKind::kUnsupported,
       "[config] {}: '{}' has no definition; of {} there are {} (--architecture chooses)",
       config.where(), wanted, model_type, listed(known));
}

TaskProgram forward(const CheckpointData& checkpoint, const TaskOptions& options,
                    const Sink& sink) {
  Builder builder(checkpoint, options);
  const bool gives_cache = builder.has_cache() && checkpoint.config.boolean("use_cache", true);
  builder.add_fresh("model", builder.optional_inputs({}), gives_cache);
  return builder.finish_program(sink);
}

TaskProgram generation(const CheckpointData& checkpoint, const TaskOptions& options,
                       const Sink& sink) {
  Builder builder(checkpoint, options);
  if (!builder.selected().architecture->generates) {
    fail(ErrorKind::kUnsupported,
         "[task] {} does not generate text: export it with --task forward, or choose another "
         "architecture",
         builder.selected().architecture->name);
  }
  const std::vector<std::string> optional_inputs =
      builder.optional_inputs({"position_ids"});  // the decode loop derives them
  builder.add_fresh("prefill", optional_inputs, true);
  builder.add_decode(optional_inputs);
  return builder.finish_program(sink);
}

}  // namespace tranship::tasks
