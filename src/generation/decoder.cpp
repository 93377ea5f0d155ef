#include "generation/decoder.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/error.h"
#include "exporters/exported_model.h"
#include "exporters/ports.h"
#include "formats/onnx/weight_pool.h"
#include "generation/cache_buffers.h"

namespace tranship::generation {
namespace {

constexpr const char* kPrefill = "prefill";
constexpr const char* kDecode = "decode";
constexpr const char* kLogits = "logits";
/// A mask of a model whose layers have types: of its layers without a window.
constexpr std::string_view kOfFullAttention = ".full_attention";
constexpr size_t kTokenAxis = 1, kCacheAxis = 2, kSlotAxis = 3;  // of ids, caches, masks of slots

bool is_slot_mask(const onnx::ValueInfo& port) {
  return port.dtype == DType::kBool && port.shape.size() == 4;
}

/// Whether a port is the mask of tokens or of slots.
bool is_mask(const onnx::ValueInfo& port, const DecoderPorts& ports) {
  if (port.name == ports.mask) return is_token_port(port) || is_slot_mask(port);
  return port.name == std::string(ports.mask) + std::string(kOfFullAttention) && is_slot_mask(port);
}

/// Errors: unsupported, for what the loop has no value for.
void check_inputs(const onnx::Session& session, const std::string& component,
                  const DecoderOptions& options) {
  Ports refused;
  const DecoderPorts& ports = options.ports;
  for (const onnx::ValueInfo& input : session.inputs()) {
    const bool is_ours = input.name == ports.ids || input.name == ports.positions;
    const bool is_cache = component == kDecode && input.name.starts_with(kCacheIn);
    const bool is_other = std::ranges::count(options.other_inputs, input.name) > 0;
    const bool is_known = (is_ours && is_token_port(input)) || is_mask(input, ports) ||
                          is_counter(input) || is_cache || is_other;
    if (!is_known) refused.push_back(input);
  }
  std::string given = fmt::format(
      "{}, {} and {}, i64 with 2 axes (with a static cache the mask is "
      "bool with 4), and a cache",
      ports.ids, ports.mask, ports.positions);
  for (const std::string& input : options.other_inputs) given += ", " + input;
  refuse_inputs(component, refused, given);
}

/// Errors: unsupported, for a graph that takes one length only: prompts and caches have any.
[[noreturn]] void fail_with_one_length(std::string_view component, int64_t size,
                                       const std::string& input, bool is_cache) {
  const char* axis = is_cache ? "past" : "sequence";
  fail(ErrorKind::kUnsupported,
       "[generate] {} takes exactly {} {} ('{}'), and a text may have any number: export it again "
       "without fixing {} (--static {}=...; --dim gives a range)",
       component, size, is_cache ? "cached tokens" : "tokens", input, axis, axis);
}

/// A part of a cache that gets longer, unless it is in slots.
bool grows(const CachePart& part) { return part.shape.size() == 4 && part.shape[kCacheAxis] < 0; }

/// Whether decode can write all of its cache where it is, and does not care how much room there is.
bool writes_in_place(const ExportedModel& exported, const CacheParts& parts, bool has_mask) {
  if (!has_mask) return false;
  const auto& in_place = exported.impl().artifact->in_place.at(kDecode);
  return std::ranges::all_of(parts.kept, [&](const CachePart& part) {
    const auto found = in_place.find(part.decode_input);
    return found != in_place.end() && found->second == part.decode_output;
  });
}

/// Whether decode reads a prompt too: it takes several tokens, and its cache may be empty.
/// Transformers' own graphs were captured with something in it, and are not asked to do without.
bool reads_prompts(const ExportedModel& exported, const onnx::Session& decode,
                   const DecoderPorts& ports) {
  if (find_port(decode.inputs(), ports.ids)->shape[kTokenAxis] >= 0) return false;
  const CacheParts parts = find_cache(nullptr, decode);
  const auto can_be_empty = [](const CachePart& part) {
    return part.shape.size() == 4 && part.shape[1] >= 0 && part.shape[3] >= 0;
  };
  if (!parts.read_only.empty() || !std::ranges::all_of(parts.kept, can_be_empty)) return false;
  return exported.component(kDecode).metadata.packages.contains("tranship") ||
         !has_component(exported, kPrefill);
}

/// Whether prefill will be loaded beside decode, as far as the artifact's list of ports says it.
bool loads_twice(const ExportedModel& exported, const DecoderOptions& options) {
  if (!has_component(exported, kPrefill)) return false;
  if (!options.other_inputs.empty()) return true;
  const std::vector<Port>& inputs = exported.component(kDecode).program.inputs();
  const auto ids = std::ranges::find(inputs, options.ports.ids, &Port::name);
  return ids != inputs.end() && ids->shape.size() == 2 && exporters::fixed_size(ids->shape[1]);
}

BufferSize buffer_size(const ExportedModel& exported, const CacheParts& parts) {
  BufferSize size;
  if (parts.counters.empty()) return size;
  const CachePart& part = parts.kept.front();
  if (part.shape[kCacheAxis] >= 0) size.fixed = part.shape[kCacheAxis];
  const ExportedComponent& component = exported.component(kDecode);
  const exporters::Ranges ranges =
      exporters::ranges_of(component.metadata, component.program.inputs());
  if (const auto found = ranges.find("cache_length"); found != ranges.end())
    size.most = found->second.max;
  return size;
}

std::vector<int64_t> columns_of(const std::vector<int64_t>& rows, int64_t num_rows, int64_t first,
                                int64_t count) {
  const int64_t width = num_rows > 0 ? std::ssize(rows) / num_rows : 0;
  std::vector<int64_t> out;
  out.reserve(static_cast<size_t>(num_rows * count));
  for (int64_t row = 0; row < num_rows; ++row) {
    const auto from = rows.begin() + row * width + first;
    out.insert(out.end(), from, from + count);
  }
  return out;
}

}  // namespace

struct Decoder::State {
  State(std::optional<onnx::Session> the_prefill, onnx::Session the_decode,
        DecoderOptions the_options)
      : options(std::move(the_options)),
        prefill(std::move(the_prefill)),
        decode(std::move(the_decode)),
        parts(find_cache(prefill ? &*prefill : nullptr, decode)),
        decode_binding(decode) {
    if (prefill) prefill_binding.emplace(*prefill);
  }

  void choose_cache(const ExportedModel& exported, const RunOptions& run);
  Logits run_next(const PromptBatch& batch, int64_t first, int64_t count);
  void run_prefill();
  void run_decode();
  void bind_inputs(onnx::Binding& binding, const onnx::Session& session);
  void run(onnx::Binding& binding);
  void place_logits();
  int64_t next_count(int64_t rest) const;
  int64_t slots_of_prefill() const;
  bool tells_padding() const;

  DecoderOptions options;
  std::optional<onnx::Session> prefill;
  onnx::Session decode;
  CacheParts parts;
  std::optional<onnx::Binding> prefill_binding;
  onnx::Binding decode_binding;
  std::unique_ptr<KeptCache> cache;
  bool takes_several = false;  // decode, at once
  int64_t chunk_size = 0;      // 0: no limit
  int64_t num_rows = 0;
  TokenMask mask;
  std::vector<int64_t> last_positions;  // of each row
  // The memory under what is bound for the current call.
  int64_t count = 0;  // of its columns
  std::vector<int64_t> ids, positions;
  int64_t no_slots = 0;
  std::vector<onnx::Value> read_only;
  std::optional<onnx::Value> logits;
  bool logits_are_bound = false;  // to decode
  std::vector<float> converted;
  double run_seconds = 0;
};

/// How many of the tokens that are left are read at once.
int64_t Decoder::State::next_count(int64_t rest) const {
  const bool is_first = mask.length() == 0 && prefill;
  const int64_t fixed =
      is_first ? find_port(prefill->inputs(), options.ports.ids)->shape[kTokenAxis] : -1;
  if (fixed > 0 && takes_several) return std::min(rest, fixed);
  if (!takes_several) return is_first ? rest : 1;
  if (chunk_size > 0) rest = std::min(rest, chunk_size);
  const int64_t most = is_first && !parts.counters.empty() ? slots_of_prefill() : -1;
  return most > 0 ? std::min(rest, most) : rest;
}

/// Whether each graph that looks at earlier tokens takes a mask of them.
bool Decoder::State::tells_padding() const {
  const auto takes_mask = [&](const onnx::Session& session) {
    return std::ranges::any_of(session.inputs(), [&](const onnx::ValueInfo& input) {
      return is_mask(input, options.ports);
    });
  };
  if (prefill && !takes_mask(*prefill)) return false;
  const bool sees_tokens = !parts.counters.empty() || std::ranges::any_of(parts.kept, grows);
  return !sees_tokens || takes_mask(decode);
}

int64_t Decoder::State::slots_of_prefill() const {
  for (const onnx::ValueInfo& input : prefill->inputs()) {
    if (is_slot_mask(input) && input.shape[kSlotAxis] >= 0) return input.shape[kSlotAxis];
  }
  if (parts.kept.empty()) return -1;
  const onnx::ValueInfo* made = find_port(prefill->outputs(), parts.kept.front().prefill_output);
  return made->shape.size() == 4 ? made->shape[kCacheAxis] : -1;
}

/// Binds ids and positions [rows, count], and the mask of all tokens.
void Decoder::State::bind_inputs(onnx::Binding& binding, const onnx::Session& session) {
  const auto bind = [&](const char* name, std::vector<int64_t>& values) {
    if (find_port(session.inputs(), name) == nullptr) return;
    const auto bytes = std::as_writable_bytes(std::span(values));
    binding.bind_input(name, session.over(DType::kI64, {num_rows, count}, bytes));
  };
  bind(options.ports.ids, ids);
  bind(options.ports.positions, positions);
  const bool is_prefill = prefill && &session == &*prefill;
  const int64_t num_slots = is_prefill ? slots_of_prefill() : cache->num_slots();
  for (const onnx::ValueInfo& input : session.inputs()) {
    if (!is_mask(input, options.ports)) continue;
    binding.bind_input(input.name, is_slot_mask(input) ? mask.of_slots(session, count, num_slots)
                                                       : mask.of_tokens(session));
  }
  if (options.bind_more) options.bind_more(binding, session);
}

void Decoder::State::run(onnx::Binding& binding) {
  const auto start = std::chrono::steady_clock::now();
  binding.run();
  run_seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void Decoder::State::run_prefill() {
  onnx::Binding& binding = *prefill_binding;
  bind_inputs(binding, *prefill);
  for (const onnx::ValueInfo& input : prefill->inputs()) {
    if (!input.name.ends_with(exporters::kCounter)) continue;
    const auto bytes = std::as_writable_bytes(std::span(&no_slots, 1));
    binding.bind_input(input.name, prefill->over(DType::kI64, {}, bytes));
  }
  binding.bind_output(kLogits, onnx::Place::kHost);
  for (const auto* some : {&parts.kept, &parts.read_only}) {
    for (const CachePart& part : *some)
      binding.bind_output(part.prefill_output, onnx::Place::kDevice);
  }
  run(binding);
  Outputs made = binding.outputs();
  binding.clear();  // what it made is large: let go of what is not kept
  logits = std::move(made.at(kLogits));
  cache->take(made, mask.length());
  // What never changes is written over itself, so that the graph need not copy it.
  read_only.clear();
  for (const CachePart& part : parts.read_only) {
    onnx::Value& value = read_only.emplace_back(std::move(made.at(part.prefill_output)));
    decode_binding.bind_input(part.decode_input, value);
    decode_binding.bind_output(part.decode_output, value);
  }
}

/// Those of one token have a place of their own, from step to step.
void Decoder::State::place_logits() {
  const onnx::ValueInfo& port = *find_port(decode.outputs(), kLogits);
  const std::vector<int64_t> shape = {num_rows, 1, port.shape[2]};
  if (count > 1 || port.shape[2] < 0) {
    logits.reset();
    logits_are_bound = false;
    return decode_binding.bind_output(kLogits, onnx::Place::kHost);
  }
  if (logits_are_bound) return;
  logits = decode.allocate(port.dtype, shape);
  decode_binding.bind_output(kLogits, *logits);
  logits_are_bound = true;
}

void Decoder::State::run_decode() {
  cache->prepare(mask.length() - count, count);
  bind_inputs(decode_binding, decode);
  place_logits();
  run(decode_binding);
  if (!logits_are_bound) logits = decode_binding.output(kLogits);
  cache->settle();
}

Logits Decoder::State::run_next(const PromptBatch& batch, int64_t first, int64_t num_columns) {
  count = num_columns;
  const bool is_first = mask.length() == 0 && prefill;
  ids = columns_of(batch.input_ids, num_rows, first, count);
  positions = columns_of(batch.position_ids, num_rows, first, count);
  mask.append(columns_of(batch.attention_mask, num_rows, first, count), count);
  if (is_first) {
    run_prefill();
  } else {
    run_decode();
  }
  last_positions.clear();
  for (int64_t row = 1; row <= num_rows; ++row)
    last_positions.push_back(positions[static_cast<size_t>(row * count - 1)]);
  return last_logits(*logits, converted);
}

/// Errors: unsupported for a cache that has one length, or slots on another device.
void Decoder::State::choose_cache(const ExportedModel& exported, const RunOptions& run) {
  const bool has_slots = !parts.counters.empty(), on_cpu = run.device == "cpu";
  const bool has_mask = find_port(decode.inputs(), options.ports.mask) != nullptr;
  for (const CachePart& part : parts.kept) {
    if (has_slots || part.shape.size() != 4 || grows(part)) continue;
    fail_with_one_length(kDecode, part.shape[kCacheAxis], part.decode_input, true);
  }
  if (has_slots && !on_cpu) {
    fail(ErrorKind::kUnsupported,
         "[generate] a static cache runs on the cpu only, not on '{}': export it with a cache that "
         "grows",
         run.device);
  }
  if (has_slots || (on_cpu && writes_in_place(exported, parts, has_mask))) {
    cache =
        std::make_unique<CacheBuffers>(decode, decode_binding, parts, buffer_size(exported, parts));
  } else {
    cache = std::make_unique<PassedCache>(decode, decode_binding, parts.kept);
  }
}

Decoder::Decoder(std::unique_ptr<State> state) : state_(std::move(state)) {}
Decoder::~Decoder() = default;
Decoder::Decoder(Decoder&&) noexcept = default;
Decoder& Decoder::operator=(Decoder&&) noexcept = default;

Decoder Decoder::open(const ExportedModel& exported, const RunOptions& run, DecoderOptions options,
                      const Sink& sink) {
  const DecoderPorts& ports = options.ports;
  const std::shared_ptr<onnx::WeightPool> weights =
      loads_twice(exported, options) ? std::make_shared<onnx::WeightPool>(run.library, sink)
                                     : nullptr;
  const auto opened = [&](const char* component) {
    onnx::Session session = open_component(exported.directory(), component, run, weights, sink);
    if (weights) weights->forget_pages();
    check_inputs(session, component, options);
    return session;
  };
  const auto tokens_of = [&](const onnx::Session& session) {
    return find_port(session.inputs(), ports.ids)->shape[kTokenAxis];
  };
  onnx::Session decode = opened(kDecode);
  const bool is_alone = reads_prompts(exported, decode, ports);
  const bool takes_several = tokens_of(decode) < 0;
  std::optional<onnx::Session> prefill;
  if (!is_alone) prefill.emplace(opened(kPrefill));
  if (prefill && !takes_several && options.other_inputs.empty() && tokens_of(*prefill) >= 0)
    fail_with_one_length(kPrefill, tokens_of(*prefill), ports.ids, false);
  auto state = std::make_unique<State>(std::move(prefill), std::move(decode), std::move(options));
  state->takes_several = takes_several;
  state->choose_cache(exported, run);
  return Decoder(std::move(state));
}

void Decoder::begin(int64_t num_rows) {
  State& s = *state_;
  const onnx::Session& first = s.prefill ? *s.prefill : s.decode;
  const int64_t rows = find_port(first.inputs(), s.options.ports.ids)->shape[0];
  if (rows >= 0 && rows != num_rows) {
    fail(ErrorKind::kInvalidArgument,
         "[generate] the model was exported for exactly {} prompts at a time (--static batch={}), "
         "and there are {}",
         rows, rows, num_rows);
  }
  s.decode_binding.clear();
  s.logits.reset();
  s.logits_are_bound = false;
  s.num_rows = num_rows;
  s.mask.clear(num_rows);
  s.last_positions.assign(static_cast<size_t>(num_rows), -1);
  if (!s.prefill) s.cache->begin(num_rows);
}

Logits Decoder::read(const PromptBatch& batch) {
  State& s = *state_;
  if (batch.is_padded() && !s.tells_padding()) {
    fail(ErrorKind::kUnsupported,
         "[generate] the prompts differ in length, but the model takes no {} to tell padding from "
         "text: run them one by one, or export it with {}",
         s.options.ports.mask, s.options.ports.mask);
  }
  const Room most = room();
  if (s.mask.length() == 0 && most.prompt && batch.num_columns > *most.prompt) {
    fail(ErrorKind::kInvalidArgument,
         "[generate] the prompt has {} tokens, and the export has {} slots for it: export it with "
         "more (--max-cache-len N)",
         batch.num_columns, *most.prompt);
  }
  const bool is_prefill = s.prefill && s.mask.length() == 0;
  if (!is_prefill) s.cache->prepare(s.mask.length(), batch.num_columns);  // once for all pieces
  Logits out;
  for (int64_t first = 0; first < batch.num_columns;) {
    const int64_t count = s.next_count(batch.num_columns - first);
    out = s.run_next(batch, first, count);
    first += count;
  }
  return out;
}

Logits Decoder::read_on(std::span<const int64_t> ids, int64_t count) {
  State& s = *state_;
  PromptBatch batch;
  batch.num_rows = s.num_rows;
  batch.num_columns = count;
  batch.input_ids.assign(ids.begin(), ids.end());
  batch.attention_mask.assign(ids.size(), 1);
  for (const int64_t last : s.last_positions) {
    for (int64_t i = 1; i <= count; ++i) batch.position_ids.push_back(last + i);
  }
  return read(batch);
}

bool Decoder::rewind(int64_t length) {
  State& s = *state_;
  if (length > s.mask.length() || length < 1) return false;
  if (length < s.mask.length() && !s.cache->rewind(length)) return false;
  s.mask.cut(length);
  s.last_positions = {length - 1};
  return true;
}

void Decoder::set_chunk_size(int64_t num_tokens) { state_->chunk_size = num_tokens; }

void Decoder::reserve(int64_t num_tokens) { state_->cache->reserve(num_tokens); }

Room Decoder::room() const {
  Room room = state_->cache->room();
  const bool has_slots = !state_->parts.counters.empty();
  if (!has_slots || !state_->prefill) return room;
  const int64_t slots = state_->slots_of_prefill();
  if (slots >= 0 && !state_->takes_several)
    room.prompt = std::min(slots, room.prompt.value_or(slots));
  return room;
}

Use Decoder::use() const {
  Use use = {state_->run_seconds, state_->cache->bytes()};
  for (const onnx::Value& value : state_->read_only)
    use.cache_bytes += static_cast<int64_t>(value.size_bytes());
  return use;
}

bool Decoder::has_prefill() const { return state_->prefill.has_value(); }
const onnx::Session& Decoder::session() const { return state_->decode; }
const onnx::Binding& Decoder::binding() const { return state_->decode_binding; }
const KeptCache& Decoder::cache() const { return *state_->cache; }

bool Decoder::takes(std::string_view input) const {
  const bool by_prefill =
      !state_->prefill || find_port(state_->prefill->inputs(), input) != nullptr;
  return by_prefill && find_port(state_->decode.inputs(), input) != nullptr;
}

}  // namespace tranship::generation
