#include "exporters/exported_model.h"

#include <algorithm>
#include <system_error>

#include "base/error.h"
#include "exporters/feed.h"
#include "exporters/ports.h"

namespace tranship {

using exporters::Artifact;
using exporters::CallSinks;
using exporters::Manifest;

namespace {

std::vector<std::string> names_of(const Artifact& artifact) {
  std::vector<std::string> names;
  names.reserve(artifact.components.size());
  for (const auto& [name, component] : artifact.components) names.push_back(name);
  return names;
}

[[noreturn]] void fail_unknown(const Artifact& artifact, std::string_view name) {
  fail(ErrorKind::kInvalidArgument, "[export] there is no component '{}', only {}", name,
       listed(names_of(artifact)));
}

/// Errors: invalid_argument for an unknown component.
const std::string& file_of(const Artifact& artifact, std::string_view name) {
  for (const Manifest::Component& component : artifact.manifest.components) {
    if (component.name == name) return component.file;
  }
  fail_unknown(artifact, name);
}

/// Errors: invalid_argument if there are several.
const std::pair<std::string, ExportedComponent>& only_component(const Artifact& artifact) {
  if (artifact.components.size() == 1) return artifact.components.front();
  fail(ErrorKind::kInvalidArgument, "[run] this export has several components, {}: say which",
       listed(names_of(artifact)));
}

}  // namespace

// ---- what a call hears of the runtime

CallSinks::Call::Call(CallSinks& sinks, const Sink& sink) : sinks_(sinks), sink_(&sink) {
  const std::lock_guard lock(sinks_.mutex_);
  sinks_.sinks_.push_back(sink_);
}

CallSinks::Call::~Call() {
  const std::lock_guard lock(sinks_.mutex_);
  sinks_.sinks_.erase(std::ranges::find(sinks_.sinks_, sink_));
}

void CallSinks::warn(std::string_view message) {
  const std::lock_guard lock(mutex_);
  if (!sinks_.empty()) sinks_.back()->warn(message);
}

bool CallSinks::is_new(const std::string& message) {
  const std::lock_guard lock(mutex_);
  return given_.insert(message).second;
}

// ---- sessions

std::filesystem::path ExportedModel::Impl::program_directory(const Sink& sink) const {
  if (!artifact->save_programs) return artifact->directory;
  if (artifact->refers_to_checkpoint) {
    fail(ErrorKind::kUnsupported,
         "[run] this export points into its checkpoint's weights, so it can run only beside them: "
         "save it there, then open it "
         "with from_pretrained");
  }
  const std::lock_guard lock(scratch->mutex);
  if (!scratch->folder) {
    scratch->folder.emplace();
    try {
      artifact->save_programs(scratch->folder->path(), sink);
    } catch (...) {
      scratch->folder.reset();
      throw;
    }
  }
  return scratch->folder->path();
}

const onnx::Session& ExportedModel::Impl::session(std::string_view component,
                                                  const Sink& sink) const {
  const std::lock_guard lock(mutex);
  if (const auto open = sessions.find(component); open != sessions.end()) return open->second;
  if (artifact->manifest.export_format != OnnxExporter::kExportFormat) {
    fail(ErrorKind::kUnsupported,
         "[run] an export to '{}' is not run here: PyTorch runs it (ExportedModel.from_pretrained "
         "of Transformers, or torch.export.load). Export to onnx to run it with tranship",
         artifact->manifest.export_format);
  }
  const std::string& name = file_of(*artifact, component);
  const std::filesystem::path file = program_directory(sink) / name;
  const CallSinks::Call call(*sinks, sink);
  const Sink relay = {
      .warning = [relayed = sinks](std::string_view message) { relayed->warn(message); },
      .progress = {}};
  return sessions
      .emplace(component, onnx::Session::open(file, exporters::session_options(options), relay))
      .first->second;
}

// ---- what it is

const std::vector<std::pair<std::string, ExportedComponent>>& ExportedModel::components() const {
  return impl_->artifact->components;
}

const ExportedComponent& ExportedModel::component(std::string_view name) const {
  for (const auto& [component_name, component] : components()) {
    if (component_name == name) return component;
  }
  fail_unknown(*impl_->artifact, name);
}

const ExportedProgram& ExportedModel::program() const {
  return only_component(*impl_->artifact).second.program;
}
const ExportMetadata& ExportedModel::metadata() const {
  return only_component(*impl_->artifact).second.metadata;
}
std::string_view ExportedModel::export_format() const {
  return impl_->artifact->manifest.export_format;
}
const std::string& ExportedModel::config() const { return impl_->artifact->small_files.config; }
const std::string& ExportedModel::generation_config() const {
  return impl_->artifact->small_files.generation_config;
}
const std::filesystem::path& ExportedModel::directory() const { return impl_->artifact->directory; }

// ---- running

ExportedModel& ExportedModel::to(const std::string& device) {
  RunOptions options = impl_->options;
  options.device = device;
  return to(options);
}

ExportedModel& ExportedModel::to(const RunOptions& options) {
  auto moved = std::make_shared<Impl>();
  moved->artifact = impl_->artifact;
  moved->scratch = impl_->scratch;
  moved->options = options;
  impl_ = std::move(moved);  // copies of this model stay where they are
  return *this;
}

NamedTensors ExportedModel::operator()(const NamedTensors& inputs, const Sink& sink) const {
  return run(only_component(*impl_->artifact).first, inputs, sink);
}

NamedTensors ExportedModel::run(std::string_view name, const NamedTensors& inputs,
                                const Sink& sink) const {
  const std::vector<Port>& ports = component(name).program.inputs();
  const bool is_complete = exporters::is_complete(ports, inputs);
  const exporters::Feed fed =
      is_complete ? exporters::Feed() : exporters::feed(name, ports, inputs);
  if (!fed.dropped.empty()) {
    const std::string warning =
        fmt::format("[run] component '{}' does not take {}: dropped", name, listed(fed.dropped));
    if (impl_->sinks->is_new(warning)) sink.warn(warning);
  }
  const onnx::Session& session = impl_->session(name, sink);
  const CallSinks::Call call(*impl_->sinks, sink);
  const auto ranges = impl_->artifact->ranges.find(std::string(name));
  exporters::check_sizes(
      ports, ranges == impl_->artifact->ranges.end() ? exporters::Ranges() : ranges->second,
      is_complete ? inputs : fed.tensors);
  return session.run(is_complete ? inputs : fed.tensors);
}

}  // namespace tranship
