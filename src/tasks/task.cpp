#include "tasks/task.h"

#include <algorithm>

#include "base/error.h"
#include "tasks/caches.h"
#include "tasks/quantized.h"

namespace tranship::tasks {
namespace {

using ir::Dim;
using nn::ModelInputs;
using nn::ModelOutputs;

// What Transformers' EncoderDecoderCache calls its halves.
constexpr std::string_view kSelfCache = ".self_attention_cache";
constexpr std::string_view kCrossCache = ".cross_attention_cache";
constexpr std::string_view kEncoderOutputs = "encoder_outputs";
constexpr const char* kCacheLength = "cache_length";  // the axis of slots

/// A graph in the making: what it takes.
struct Call {
  explicit Call(std::string name) : graph(std::make_unique<ir::Graph>(std::move(name))) {}

  ir::Value input(std::string name, DType dtype, ir::Shape shape) {
    return add_input(*graph, std::move(name), dtype, std::move(shape));
  }
  /// An argument that is an input of its own.
  ir::Value argument(const std::string& name, ir::Shape shape, DType dtype = DType::kI64) {
    arguments.push_back(name);
    return input(name, dtype, std::move(shape));
  }

  std::unique_ptr<ir::Graph> graph;
  ModelInputs in = {};
  std::vector<std::string> arguments = {};  // of forward, in order
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
  bool is_encoder_decoder() const { return selected_.architecture->encoder != nullptr; }
  bool has_cache() const { return selected_.family->has_cache; }

  /// A graph without a cache coming in: all of the model.
  void add_model(const std::vector<std::string>& optional_inputs, bool gives_cache) {
    Call call("model");
    FreshCache cache;
    call.in.cache = &cache;
    add_inputs(call, optional_inputs, Dim::symbol("sequence"), 0);
    if (is_encoder_decoder())
      add_decoder_inputs(call, optional_inputs, Dim::symbol("decoder_sequence"), 0);
    const ModelOutputs out = forward(call, selected_.architecture->forward);
    finish(std::move(call), out, gives_cache ? cache : FreshCache(), false);
  }

  /// A decoder's first tokens, and nothing cached.
  void add_prefill(const std::vector<std::string>& optional_inputs) {
    Call call("prefill");
    FreshCache cache;
    call.in.cache = &cache;
    add_inputs(call, optional_inputs, Dim::symbol("sequence"), 0);
    const ModelOutputs out = generate(call);
    finish(std::move(call), out, cache, false);
  }

  /// A prompt, or tokens, with a cache of slots.
  void add_with_slots(const std::vector<std::string>& optional_inputs) {
    const int64_t slots = num_slots();
    const Dim length = Dim::symbol("sequence"), cache_length = Dim::symbol(kCacheLength);
    Call prefill("prefill");
    prefill.graph->set_range("sequence", {.min = 1, .max = slots});
    FreshSlotCache fresh(*prefill.graph, length, slots);
    prefill.in.cache = &fresh;
    add_inputs(prefill, optional_inputs, length, 0, slots);
    const ModelOutputs first = generate(prefill);
    finish(std::move(prefill), first, fresh, false);

    Call decode("decode");
    SlotCache cache(*decode.graph, cache_name(), "", cache_length);
    decode.in.cache = &cache;
    add_inputs(decode, optional_inputs, decode_length("sequence"), 0, cache_length);
    const ModelOutputs next = generate(decode);
    finish(std::move(decode), next, cache, true);
  }

  void add_decode(const std::vector<std::string>& optional_inputs) {
    Call call("decode");
    const bool grows = selected_.family->state_cache.empty();
    // A definition may narrow it.
    if (grows) call.graph->set_range("past", {.min = 0, .max = {}});
    GrowingCache cache(*call.graph, cache_name(), "");
    call.in.cache = &cache;
    std::vector<std::string> names = optional_inputs;
    if (!grows) std::erase(names, "attention_mask");  // the states have seen no padding
    add_inputs(call, names, decode_length("sequence"), Dim::symbol("past"));
    const ModelOutputs out = generate(call);
    finish(std::move(call), out, cache, true);
  }

  /// What a decoder takes of an encoder that ran before.
  struct EncoderOutputs {
    ir::Type last_hidden_state;
    std::string output_class;
  };

  EncoderOutputs add_encoder(const std::vector<std::string>& optional_inputs) {
    Call call("encoder");
    add_inputs(call, optional_inputs, Dim::symbol("sequence"), 0);
    const ModelOutputs out = forward(call, selected_.architecture->encoder);
    const EncoderOutputs made = {out.values.front().second.type(), std::string(out.output_class)};
    finish(std::move(call), out, FreshCache(), false);
    return made;
  }

  /// prefill: tokens for the decoder, and nothing cached.
  void add_decoder_prefill(const EncoderOutputs& encoder,
                           const std::vector<std::string>& optional_inputs) {
    Call call("prefill");
    FreshCache cache;
    call.in.cache = &cache;
    add_encoder_outputs(call, encoder, optional_inputs);
    add_decoder_inputs(call, optional_inputs, Dim::symbol("decoder_sequence"), 0);
    finish_decoder(std::move(call), encoder, cache, false);
  }

  /// prefill and decode of a decoder beside an encoder, whose own keys and values stand in slots.
  void add_decoder_with_slots(const EncoderOutputs& encoder,
                              const std::vector<std::string>& optional_inputs) {
    const int64_t slots = num_slots();
    const Dim length = Dim::symbol("decoder_sequence"), cache_length = Dim::symbol(kCacheLength);
    Call prefill("prefill");
    prefill.graph->set_range("decoder_sequence", {.min = 1, .max = slots});
    FreshSlotCache fresh(*prefill.graph, length, slots);
    prefill.in.cache = &fresh;
    add_encoder_outputs(prefill, encoder, optional_inputs);
    add_decoder_inputs(prefill, optional_inputs, length, 0, slots);
    finish_decoder(std::move(prefill), encoder, fresh, false);

    Call decode("decode");
    SlotCache cache(*decode.graph, cache_part(kSelfCache), cache_part(kCrossCache), cache_length);
    decode.in.cache = &cache;
    add_encoder_outputs(decode, encoder, optional_inputs);
    add_decoder_inputs(decode, optional_inputs, decode_length("decoder_sequence"), 0, cache_length);
    finish_decoder(std::move(decode), encoder, cache, true);
  }

  void add_decoder_decode(const EncoderOutputs& encoder,
                          const std::vector<std::string>& optional_inputs) {
    Call call("decode");
    call.graph->set_range("past", {.min = 0, .max = {}});  // a definition may narrow it
    GrowingCache cache(*call.graph, cache_part(kSelfCache), cache_part(kCrossCache));
    call.in.cache = &cache;
    add_encoder_outputs(call, encoder, optional_inputs);
    add_decoder_inputs(call, optional_inputs, decode_length("decoder_sequence"),
                       Dim::symbol("past"));
    finish_decoder(std::move(call), encoder, cache, true);
  }

  /// The optional inputs asked for, and `more`, in the model's order.
  std::vector<std::string> optional_inputs(const std::vector<std::string>& more) const {
    std::vector<std::string> names;
    for (const std::string_view name : selected_.optional_inputs()) {
      const auto in = [&](const std::vector<std::string>& list) {
        return std::find(list.begin(), list.end(), name) != list.end();
      };
      const bool asked =
          options_.graph_inputs ? in(*options_.graph_inputs) : name == "attention_mask";
      if (asked || in(more)) names.emplace_back(name);
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

  std::string_view main_input_name() const {
    const auto main_input = selected_.family->main_input;
    return main_input == nullptr ? "input_ids" : main_input(checkpoint_.config).name;
  }

  void check_graph_inputs() const {
    const std::vector<std::string_view> known = selected_.optional_inputs();
    for (const std::string& name : options_.graph_inputs.value_or(std::vector<std::string>())) {
      if (name == main_input_name() || (is_encoder_decoder() && name == "decoder_input_ids") ||
          std::find(known.begin(), known.end(), name) != known.end())
        continue;
      fail(ErrorKind::kInvalidArgument, "[task] {} has no input '{}'; its optional inputs are {}",
           selected_.architecture->name, name,
           known.empty() ? "none" : listed({known.begin(), known.end()}));
    }
  }

  std::string cache_name() const {
    const std::string_view own = selected_.family->state_cache;
    return own.empty() ? options_.cache_name : std::string(own);
  }
  std::string cache_part(std::string_view part) const { return cache_name() + std::string(part); }

  /// Of a static cache; that its axis has so many, unless somebody says otherwise, is noted.
  int64_t num_slots() {
    const int64_t slots = *options_.max_cache_len;
    if (!selected_.family->state_cache.empty()) {
      fail(ErrorKind::kUnsupported,
           "[task] {} keeps states of one size from call to call, which is no cache of slots: "
           "export it with the cache that it has (cache_implementation = dynamic)",
           selected_.architecture->name);
    }
    if (slots < 1) {
      fail(ErrorKind::kInvalidArgument, "[task] max_cache_len is {}, expected 1 or more", slots);
    }
    result_.sizes.emplace(kCacheLength, slots);
    return slots;
  }

  /// How many tokens decode takes; `symbol` is the axis if it stays open.
  Dim decode_length(std::string_view symbol) const {
    return options_.multi_token_decode ? Dim::symbol(symbol) : Dim(1);
  }

  /// What a model takes that has no encoder beside it, or what its encoder takes. slots: of a cache
  /// that has slots.
  void add_inputs(Call& call, const std::vector<std::string>& optional_inputs, const Dim& length,
                  const Dim& past, const std::optional<Dim>& slots = {}) const {
    const Dim batch = Dim::symbol("batch");
    ModelInputs& in = call.in;
    in.past = past;
    if (selected_.family->main_input != nullptr) {
      nn::MainInput main = selected_.family->main_input(checkpoint_.config);
      in.features = call.argument(std::string(main.name), std::move(main.shape), options_.dtype);
    } else {
      in.input_ids = call.argument("input_ids", {batch, length});
    }
    for (const std::string& name : optional_inputs) {
      if (name == "attention_mask") in.attention_mask = add_mask(call, name, length, past, slots);
      if (name == "token_type_ids") in.token_type_ids = call.argument(name, {batch, length});
      if (name == "position_ids") in.position_ids = call.argument(name, {batch, length});
    }
  }

  void add_decoder_inputs(Call& call, const std::vector<std::string>& optional_inputs,
                          const Dim& length, const Dim& past,
                          const std::optional<Dim>& slots = {}) const {
    const Dim batch = Dim::symbol("batch");
    call.in.past = past;
    call.in.decoder_input_ids = call.argument("decoder_input_ids", {batch, length});
    for (const std::string& name : optional_inputs) {
      if (name == "decoder_attention_mask")
        call.in.decoder_attention_mask = add_mask(call, name, length, past, slots);
    }
  }

  /// Of tokens, or bool of slots.
  static ir::Value add_mask(Call& call, const std::string& name, const Dim& length, const Dim& past,
                            const std::optional<Dim>& slots) {
    const Dim batch = Dim::symbol("batch");
    return slots ? call.argument(name, {batch, 1, length, *slots}, DType::kBool)
                 : call.argument(name, {batch, past + length});
  }

  /// The encoder's states, and which of them are padding.
  static void add_encoder_outputs(Call& call, const EncoderOutputs& encoder,
                                  const std::vector<std::string>& optional_inputs) {
    const ir::Type& states = encoder.last_hidden_state;
    for (const std::string& name : optional_inputs) {
      if (name == "attention_mask")
        call.in.attention_mask = call.argument(name, {states.shape[0], states.shape[1]});
    }
    call.in.encoder_hidden_states =
        call.input(std::string(kEncoderOutputs) + ".last_hidden_state", states.dtype, states.shape);
  }

  ModelOutputs forward(Call& call, nn::Forward function) {
    return function(nn::Scope(*call.graph, parameters_), call.in, checkpoint_.config);
  }

  /// Of a component that gives logits: prefill or decode.
  ModelOutputs generate(Call& call) {
    call.in.last_token_logits = options_.last_token_logits;
    ModelOutputs out = forward(call, selected_.architecture->forward);
    if (!options_.last_token_logits) return out;
    const auto logits =
        std::ranges::find(out.values, "logits", &decltype(out.values)::value_type::first);
    check(logits != out.values.end() && logits->second.shape()[1] == Dim(1),
          "a definition gives the logits of all tokens: it has no last_tokens()");
    return out;
  }

  void finish_decoder(Call call, const EncoderOutputs& encoder, const LayerCache& cache,
                      bool takes_cache) {
    const ModelOutputs out = generate(call);
    call.arguments.emplace_back(kEncoderOutputs);
    finish(std::move(call), out, cache, takes_cache);
    result_.signatures.back().encoder_output_class = encoder.output_class;
  }

  void finish(Call call, const ModelOutputs& out, const LayerCache& cache, bool takes_cache) {
    ir::Component component;
    component.name = call.graph->name();
    component.graph = std::move(call.graph);
    Signature signature;
    signature.last_token_logits = call.in.last_token_logits;
    signature.output_class = out.output_class;
    signature.arguments = std::move(call.arguments);
    for (const auto& [name, value] : out.values) {
      component.graph->add_output(name, value);
      signature.fields.push_back(name);
    }
    using Kind = ir::State::Kind;
    const bool has_cross = !cache.cross_layers().empty();
    const std::string name = cache_part(has_cross ? kSelfCache : "");
    const bool has_slots = !cache.counters().empty();
    if (has_slots) signature.max_cache_len = *options_.max_cache_len;
    add_layers(component, name, has_slots ? Kind::kSlots : Kind::kAppend, cache.layers(),
               cache.counters(), takes_cache);
    add_layers(component, cache_part(kCrossCache), Kind::kReadOnly, cache.cross_layers(),
               cache.cross_counters(), takes_cache);
    add_kept_states(component, cache.states(), takes_cache);
    signature.num_cache_layers = std::ssize(cache.layers());
    if (!cache.states().empty()) {
      signature.num_cache_layers = cache.states().back().layer + 1;
      signature.conv_kernel_size = cache.states().front().value.shape().back().value();
    }
    signature.num_cross_layers = std::ssize(cache.cross_layers());
    if (!component.states.empty()) {
      signature.cache = cache_name();
      signature.fields.push_back(cache_name());
      if (takes_cache) signature.arguments.push_back(cache_name());
    }
    for (const auto& [field, value] : out.after_cache) {
      component.graph->add_output(field, value);
      signature.fields.push_back(field);
    }
    result_.program.components.push_back(std::move(component));
    result_.signatures.push_back(std::move(signature));
  }

  /// An output that later calls take as an input.
  static void add_state(ir::Component& component, const std::string& name, ir::State::Kind kind,
                        ir::Value value, bool takes_cache) {
    component.states.push_back({.name = name,
                                .kind = kind,
                                .input = takes_cache ? "input." + name : "",
                                .output = takes_cache ? "output." + name : name});
    component.graph->add_output(component.states.back().output, value);
  }

  /// The states of a cache's layers: keys, values, and where there are slots how many are taken.
  static void add_layers(ir::Component& component, const std::string& name, ir::State::Kind kind,
                         const std::vector<nn::KeyValue>& layers,
                         const std::vector<ir::Value>& counters, bool takes_cache) {
    for (size_t i = 0; i < layers.size(); ++i) {
      const std::string layer = fmt::format("{}.layers.{}.", name, i);
      add_state(component, layer + "keys", kind, layers[i].keys, takes_cache);
      add_state(component, layer + "values", kind, layers[i].values, takes_cache);
      if (counters.empty()) continue;
      const bool is_fixed = kind == ir::State::Kind::kReadOnly;
      add_state(component, layer + std::string(kCounter),
                is_fixed ? kind : ir::State::Kind::kCounter, counters[i], takes_cache);
    }
  }

  void add_kept_states(ir::Component& component, const std::vector<KeptState>& states,
                       bool takes_cache) const {
    for (const KeptState& state : states) {
      add_state(component, fmt::format("{}.layers.{}.{}", cache_name(), state.layer, state.name),
                ir::State::Kind::kOverwrite, state.value, takes_cache);
    }
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
    report_unfit(missing, misshapen, codes);
    join_parameters();
  }

  /// Weights that the checkpoint has in parts.
  void join_parameters() {
    auto& parameters = result_.program.parameters;
    for (const auto& [name, weight] : parameters_.joined()) {
      std::vector<TensorSourcePtr> parts;
      for (const std::string& part : weight.parts) parts.push_back(parameters.at(part));
      for (const std::string& part : weight.parts) parameters.erase(part);
      parameters.emplace(name, concat_source(name, std::move(parts), weight.shape.sizes()));
    }
  }

  void report_unfit(const std::vector<std::string>& missing,
                    const std::vector<std::string>& misshapen,
                    const std::vector<std::string>& codes) const {
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
    const auto covers = [&](std::string_view pattern) {
      return pattern.back() == '.' ? name.starts_with(pattern) : name.ends_with(pattern);
    };
    return std::ranges::any_of(selected_.family->ignorable, covers) ||
           std::ranges::any_of(selected_.architecture->ignorable, covers);
  }

  const CheckpointData& checkpoint_;
  const TaskOptions& options_;
  Selected selected_;
  nn::TensorIndex index_;
  nn::Parameters parameters_;
  TaskProgram result_;
};

}  // namespace

std::vector<std::string_view> Selected::optional_inputs() const {
  std::vector<std::string_view> names = family->optional_inputs;
  if (architecture->encoder == nullptr)
    std::erase_if(names, [](std::string_view name) { return name.starts_with("decoder_"); });
  return names;
}

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
  builder.add_model(builder.optional_inputs({}), gives_cache);
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
  if (builder.is_encoder_decoder()) {
    const std::vector<std::string> optional_inputs = builder.optional_inputs({});
    const auto encoder = builder.add_encoder(optional_inputs);
    if (options.max_cache_len) {
      builder.add_decoder_with_slots(encoder, optional_inputs);
      return builder.finish_program(sink);
    }
    builder.add_decoder_prefill(encoder, optional_inputs);
    builder.add_decoder_decode(encoder, optional_inputs);
    return builder.finish_program(sink);
  }
  const std::vector<std::string> optional_inputs =
      builder.optional_inputs({"position_ids"});  // the decode loop derives them
  if (options.max_cache_len) {
    builder.add_with_slots(optional_inputs);
    return builder.finish_program(sink);
  }
  builder.add_prefill(optional_inputs);
  builder.add_decode(optional_inputs);
  return builder.finish_program(sink);
}

}  // namespace tranship::tasks
