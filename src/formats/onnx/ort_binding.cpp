// Binding: see session.h.
#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "base/error.h"
#include "formats/onnx/ort_library.h"
#include "formats/onnx/ort_session.h"
#include "formats/onnx/session.h"

namespace tranship::onnx {
namespace {

constexpr std::string_view kBinding = "binding inputs and outputs";

OrtMemoryInfoPtr memory_of(const SessionState& session, Place place) {
  const OrtApi& api = session.library.api();
  OrtMemoryInfo* raw = nullptr;
  if (place == Place::kDevice && session.device.cuda) {
    session.succeed(api.CreateMemoryInfo("Cuda", kOrtArenaAllocator, session.device.index,
                                         kOrtMemTypeDefault, &raw),
                    kBinding);
  } else {
    session.succeed(api.CreateCpuMemoryInfo(kOrtArenaAllocator, kOrtMemTypeDefault, &raw),
                    kBinding);
  }
  return {raw, {&api}};
}

/// A bound output: into a value of the caller's, or into new memory.
struct BoundOutput {
  std::string name;
  std::optional<Place> place;  // none: the caller's
};

}  // namespace

struct Binding::State {
  const SessionState& session;
  OrtIoBindingPtr binding;
  std::set<std::string> inputs;
  std::vector<BoundOutput> outputs;  // in ONNX Runtime's order: that of first binding
  bool ran = false;

  /// Remembers an output; one that was bound before keeps its position.
  void note_output(const std::string& name, std::optional<Place> place) {
    ran = false;
    const auto same = [&](const BoundOutput& output) { return output.name == name; };
    const auto found = std::find_if(outputs.begin(), outputs.end(), same);
    if (found == outputs.end()) {
      outputs.push_back({name, place});
    } else {
      found->place = place;
    }
  }

  void bind_to_new_memory(const BoundOutput& output) const {
    const OrtMemoryInfoPtr memory = memory_of(session, *output.place);
    session.succeed(
        session.library.api().BindOutputToDevice(binding.get(), output.name.c_str(), memory.get()),
        kBinding);
  }
};

Binding::Binding(const Session& session) : state_(new State{session.state(), {}, {}, {}, false}) {
  const OrtApi& api = state_->session.library.api();
  OrtIoBinding* raw = nullptr;
  state_->session.succeed(api.CreateIoBinding(state_->session.session.get(), &raw), kBinding);
  state_->binding = OrtIoBindingPtr(raw, {&api});
}
Binding::~Binding() = default;
Binding::Binding(Binding&&) noexcept = default;
Binding& Binding::operator=(Binding&&) noexcept = default;

void Binding::bind_input(const std::string& name, const Value& value) {
  const SessionState& session = state_->session;
  const std::string why =
      misfit(at_info(session, session.inputs, name, "input"), value.dtype(), value.shape());
  if (!why.empty())
    fail(ErrorKind::kInvalidArgument, "[onnxruntime] '{}': input {}", session.path, why);
  session.succeed(
      session.library.api().BindInput(state_->binding.get(), name.c_str(), value.handle()),
      kBinding);
  state_->inputs.insert(name);
}

void Binding::bind_output(const std::string& name, Value& value) {
  const SessionState& session = state_->session;
  const std::string why =
      misfit(at_info(session, session.outputs, name, "output"), value.dtype(), value.shape());
  if (!why.empty())
    fail(ErrorKind::kInvalidArgument, "[onnxruntime] '{}': output {}", session.path, why);
  session.succeed(
      session.library.api().BindOutput(state_->binding.get(), name.c_str(), value.handle()),
      kBinding);
  state_->note_output(name, std::nullopt);
}

void Binding::bind_output(const std::string& name, Place place) {
  at_info(state_->session, state_->session.outputs, name, "output");
  state_->bind_to_new_memory({name, place});
  state_->note_output(name, place);
}

void Binding::clear() {
  const OrtApi& api = state_->session.library.api();
  api.ClearBoundInputs(state_->binding.get());
  api.ClearBoundOutputs(state_->binding.get());
  state_->inputs.clear();
  state_->outputs.clear();
  state_->ran = false;
}

void Binding::run() {
  const SessionState& session = state_->session;
  std::vector<std::string> missing;
  for (const ValueInfo& info : session.inputs) {
    if (!state_->inputs.contains(info.name)) missing.push_back(info.name);
  }
  if (!missing.empty()) {
    fail(ErrorKind::kInvalidArgument, "[onnxruntime] '{}': inputs are not bound: {}", session.path,
         listed(missing));
  }
  if (state_->outputs.empty()) {
    fail(ErrorKind::kInvalidArgument,
         "[onnxruntime] '{}': no output is bound, so there is nothing to compute", session.path);
  }
  // After a run the binding holds what was made; it would be written over, or be of the wrong size,
  // in the next one.
  state_->ran = false;
  for (const BoundOutput& output : state_->outputs) {
    if (output.place) state_->bind_to_new_memory(output);
  }
  session.succeed(
      session.library.api().RunWithBinding(session.session.get(), nullptr, state_->binding.get()),
      kRunning, ErrorKind::kInvalidArgument);
  state_->ran = true;
}

std::map<std::string, Value> Binding::outputs() const {
  const SessionState& session = state_->session;
  if (!state_->ran) {
    fail(ErrorKind::kInvalidArgument,
         "[onnxruntime] '{}': outputs are there after a run, and it has not run", session.path);
  }
  const OrtApi& api = session.library.api();
  OrtAllocator* allocator = nullptr;
  session.succeed(api.GetAllocatorWithDefaultOptions(&allocator), "reading the outputs");
  OrtValue** list = nullptr;
  size_t count = 0;
  session.succeed(api.GetBoundOutputValues(state_->binding.get(), allocator, &list, &count),
                  "reading the outputs");
  std::vector<OrtValuePtr> owners;
  owners.reserve(count);
  for (size_t i = 0; i < count; ++i) owners.emplace_back(list[i], OrtValuePtr::deleter_type{&api});
  if (list != nullptr)
    session.succeed(api.AllocatorFree(allocator, static_cast<void*>(list)), "reading the outputs");
  check(count == state_->outputs.size(), "the number of bound outputs");
  std::map<std::string, Value> values;
  for (size_t i = 0; i < count; ++i) {
    values.emplace(state_->outputs[i].name, Value(session.library, owners[i].release()));
  }
  return values;
}

Value Binding::output(const std::string& name) const {
  std::map<std::string, Value> all = outputs();
  const auto found = all.find(name);
  if (found == all.end()) {
    fail(ErrorKind::kInvalidArgument, "[onnxruntime] '{}': output '{}' is not bound",
         state_->session.path, name);
  }
  return std::move(found->second);
}

}  // namespace tranship::onnx
