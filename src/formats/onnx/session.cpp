#include "formats/onnx/session.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "base/error.h"
#include "formats/onnx/model_summary.h"
#include "formats/onnx/ort_cpus.h"
#include "formats/onnx/ort_library.h"
#include "formats/onnx/ort_session.h"
#include "formats/onnx/weight_pool.h"

namespace tranship::onnx {
namespace {

constexpr std::string_view kCudaProvider = "CUDAExecutionProvider";

int ort_level(GraphOptimization optimization) {
  switch (optimization) {
    case GraphOptimization::kNone:
      return 0;
    case GraphOptimization::kBasic:
      return 1;
    case GraphOptimization::kExtended:
      return 2;
    case GraphOptimization::kAll:
      return 99;
  }
  return 99;
}

OrtLogLevel ort_level(LogLevel level) {
  switch (level) {
    case LogLevel::kVerbose:
      return OrtLogLevel::kVerbose;
    case LogLevel::kInfo:
      return OrtLogLevel::kInfo;
    case LogLevel::kWarning:
      return OrtLogLevel::kWarning;
    case LogLevel::kError:
      return OrtLogLevel::kError;
  }
  return OrtLogLevel::kWarning;
}

/// Adds NVIDIA's provider for one GPU. Not run yet: see SessionOptions::device.
void append_cuda(const SessionState& state, OrtSessionOptions* options) {
  const OrtLibrary& library = state.library;
  const std::vector<std::string> providers = library.providers();
  if (std::find(providers.begin(), providers.end(), kCudaProvider) == providers.end()) {
    fail(ErrorKind::kUnsupported,
         "[onnxruntime] '{}' cannot run on cuda: '{}' (version {}) has the providers {}; point at "
         "a build with {}",
         state.path, library.path().string(), library.version(), listed(providers), kCudaProvider);
  }
  const OrtApi& api = library.api();
  OrtCudaOptions* raw = nullptr;
  state.succeed(api.CreateCUDAProviderOptions(&raw), "setting up CUDA");
  const OrtCudaOptionsPtr cuda(raw, {&api});
  const std::string index = std::to_string(state.device.index);
  const char* const key = "device_id";
  const char* const value = index.c_str();
  state.succeed(api.UpdateCUDAProviderOptions(cuda.get(), &key, &value, 1), "setting up CUDA");
  state.succeed(api.SessionOptionsAppendExecutionProvider_CUDA_V2(options, cuda.get()),
                "setting up CUDA");
}

OrtSessionOptionsPtr make_options(const SessionState& state, const SessionOptions& options) {
  if (options.intra_op_threads < 0 || options.intra_op_threads > kMostThreads ||
      options.inter_op_threads < 1 || options.inter_op_threads > kMostThreads) {
    fail(ErrorKind::kInvalidArgument,
         "[onnxruntime] {} threads within and {} across operators: expected 0 to {}, and 1 to {}",
         options.intra_op_threads, options.inter_op_threads, kMostThreads, kMostThreads);
  }
  constexpr std::string_view doing = "setting the session's options";
  const OrtApi& api = state.library.api();
  OrtSessionOptions* raw = nullptr;
  state.succeed(api.CreateSessionOptions(&raw), doing);
  OrtSessionOptionsPtr made(raw, {&api});
  const int threads = options.intra_op_threads > 0 ? options.intra_op_threads : available_cpus();
  state.succeed(api.SetIntraOpNumThreads(raw, threads), doing);
  state.succeed(api.SetInterOpNumThreads(raw, options.inter_op_threads), doing);
  state.succeed(api.SetSessionGraphOptimizationLevel(raw, ort_level(options.optimization)), doing);
  state.succeed(api.SetSessionLogSeverityLevel(raw, ort_level(options.log_level)), doing);
  state.succeed(api.SetUserLoggingFunction(raw, &OrtLog::callback, &state.log), doing);
  for (const auto& [key, value] : options.config) {
    state.succeed(api.AddSessionConfigEntry(raw, key.c_str(), value.c_str()),
                  fmt::format("setting '{}' to '{}'", key, value));
  }
  if (state.device.cuda) append_cuda(state, raw);
  return made;
}

using CountFunction = OrtStatus* (*)(const OrtSession*, size_t*);
using NameFunction = OrtStatus* (*)(const OrtSession*, size_t, OrtAllocator*, char**);
using TypeFunction = OrtStatus* (*)(const OrtSession*, size_t, OrtTypeInfo**);

std::string read_name(const SessionState& state, NameFunction function, size_t index) {
  const OrtApi& api = state.library.api();
  OrtAllocator* allocator = nullptr;
  state.succeed(api.GetAllocatorWithDefaultOptions(&allocator), "reading a name");
  char* text = nullptr;
  state.succeed(function(state.session.get(), index, allocator, &text), "reading a name");
  std::string name = text;
  state.succeed(api.AllocatorFree(allocator, text), "reading a name");
  return name;
}

/// The type of an input or output; nothing if it is not a tensor.
std::optional<OrtTensorType> read_type(const SessionState& state, TypeFunction function,
                                       size_t index) {
  const OrtApi& api = state.library.api();
  OrtTypeInfo* raw = nullptr;
  state.succeed(function(state.session.get(), index, &raw), "reading a type");
  const OrtTypeInfoPtr info(raw, {&api});
  int kind = 0;
  state.succeed(api.GetOnnxTypeFromTypeInfo(raw, &kind), "reading a type");
  if (kind != kOrtTypeTensor) return std::nullopt;
  const OrtTensorInfo* tensor = nullptr;  // belongs to `info`
  state.succeed(api.CastTypeInfoToTensorInfo(raw, &tensor), "reading a type");
  return read_tensor_type(state.library, tensor);
}

/// All inputs or all outputs. Errors: unsupported, naming all that are not tensors of a known
/// dtype.
std::vector<ValueInfo> read_infos(const SessionState& state, std::string_view role,
                                  CountFunction count_function, NameFunction name_function,
                                  TypeFunction type_function) {
  size_t count = 0;
  state.succeed(count_function(state.session.get(), &count), "counting inputs and outputs");
  std::vector<ValueInfo> infos;
  std::vector<std::string> refused;
  for (size_t i = 0; i < count; ++i) {
    std::string name = read_name(state, name_function, i);
    std::optional<OrtTensorType> type = read_type(state, type_function, i);
    const std::optional<DType> dtype = type ? find_ort_dtype(type->element_type) : std::nullopt;
    if (dtype) {
      infos.push_back(
          {std::move(name), *dtype, std::move(type->shape), std::move(type->dim_names)});
    } else {
      refused.push_back(std::move(name));
    }
  }
  if (!refused.empty()) {
    fail(ErrorKind::kUnsupported,
         "[onnxruntime] '{}': only tensors of numbers and bools can go in and out, but these "
         "{}s are something else (strings, sequences ...): {}",
         state.path, role, listed(refused));
  }
  return infos;
}

std::vector<std::string> names_of(const std::vector<ValueInfo>& infos) {
  std::vector<std::string> names;
  names.reserve(infos.size());
  for (const ValueInfo& info : infos) names.push_back(info.name);
  return names;
}

/// Errors: invalid_argument, for all missing, else all unknown, else all inputs that do not fit.
void check_inputs(const SessionState& state, const NamedTensors& inputs) {
  std::vector<std::string> missing;
  std::string misfits;
  for (const ValueInfo& info : state.inputs) {
    const auto found = inputs.find(info.name);
    if (found == inputs.end()) {
      missing.push_back(info.name);
      continue;
    }
    const std::string why = misfit(info, found->second.dtype(), found->second.shape());
    if (!why.empty()) misfits += (misfits.empty() ? "" : "; ") + why;
  }
  if (!missing.empty()) {
    fail(ErrorKind::kInvalidArgument, "[onnxruntime] '{}': inputs are missing: {}", state.path,
         listed(missing));
  }
  std::vector<std::string> unknown;
  for (const auto& [name, tensor] : inputs) {
    const auto same = [&name = name](const ValueInfo& info) { return info.name == name; };
    if (std::none_of(state.inputs.begin(), state.inputs.end(), same)) unknown.push_back(name);
  }
  if (!unknown.empty()) {
    fail(ErrorKind::kInvalidArgument, "[onnxruntime] '{}': the model has no inputs {}; it has {}",
         state.path, listed(unknown), listed(names_of(state.inputs)));
  }
  if (!misfits.empty())
    fail(ErrorKind::kInvalidArgument, "[onnxruntime] '{}': input {}", state.path, misfits);
}

/// ONNX Runtime takes inputs by a pointer that is not const, but does not write to them.
std::span<std::byte> writable(const Tensor& tensor) { return const_cast<Tensor&>(tensor).bytes(); }

}  // namespace

OrtDevice parse_device(std::string_view text) {
  if (text == "cpu") return {};
  if (text == "cuda") return {true, 0};
  constexpr std::string_view kPrefix = "cuda:";
  int index = -1;
  if (text.starts_with(kPrefix)) {
    const char* end = text.data() + text.size();
    const auto result = std::from_chars(text.data() + kPrefix.size(), end, index);
    if (result.ec != std::errc{} || result.ptr != end) index = -1;
  }
  if (index < 0) {
    fail(ErrorKind::kInvalidArgument,
         "[onnxruntime] device '{}': expected 'cpu', 'cuda', or 'cuda:' and a number", text);
  }
  return {true, index};
}

SessionState::SessionState(const OrtLibrary& the_library, std::string the_path, const Sink& sink)
    : library(the_library), path(std::move(the_path)), log(path, sink) {
  library.attach(&log);
}

SessionState::~SessionState() {
  session.reset();
  library.detach(&log);
}

void SessionState::succeed(OrtStatus* status, std::string_view doing,
                           std::optional<ErrorKind> vague) const {
  log.settle(status != nullptr);
  library.succeed(status, path, doing, vague);
}

const ValueInfo& at_info(const SessionState& state, const std::vector<ValueInfo>& infos,
                         const std::string& name, std::string_view role) {
  for (const ValueInfo& info : infos) {
    if (info.name == name) return info;
  }
  fail(ErrorKind::kInvalidArgument, "[onnxruntime] '{}': the model has no {} '{}'; it has {}",
       state.path, role, name, listed(names_of(infos)));
}

std::string misfit(const ValueInfo& info, DType dtype, const std::vector<int64_t>& shape) {
  bool fits = dtype == info.dtype && shape.size() == info.shape.size();
  for (size_t i = 0; fits && i < shape.size(); ++i)
    fits = info.shape[i] < 0 || info.shape[i] == shape[i];
  if (fits) return "";
  return fmt::format("'{}' is {}, expected {}", info.name, describe(dtype, shape, {}),
                     describe(info.dtype, info.shape, info.dim_names));
}

namespace {

/// ONNX Runtime names the node for which it has no kernel, and not why: mostly it is the dtype.
void explain_half_floats(const std::filesystem::path& path, const std::string& device,
                         const Error& error) {
  for (const WeightInfo& weight : read_summary(path).weights) {
    if (weight.dtype != "bf16" && weight.dtype != "f16") continue;
    fail(ErrorKind::kUnsupported,
         "{}. The model computes in {}, for which ONNX Runtime lacks kernels on '{}': export it "
         "with --dtype f32, or run it on a device that has them (--device)",
         error.what(), weight.dtype, device);
  }
}

bool shares_weights(const SessionOptions& options) {
  return options.weights && options.device == "cpu";
}

/// Sets a session up; `create` has ONNX Runtime load the model.
template <class Create>
std::unique_ptr<SessionState> load(const std::filesystem::path& path, const SessionOptions& options,
                                   const Sink& sink, Create create) {
  const OrtDevice device = parse_device(options.device);
  const OrtLibrary& library = OrtLibrary::open(options.library, sink);
  auto state = std::make_unique<SessionState>(library, path.string(), sink);
  state->device = device;
  const OrtApi& api = library.api();
  const OrtSessionOptionsPtr made = make_options(*state, options);
  state->weights = options.weights;
  if (shares_weights(options)) options.weights->lend(path, made.get());
  OrtSession* raw = nullptr;
  try {
    state->succeed(create(api, library.env(), made.get(), &raw), "loading the model",
                   ErrorKind::kCorrupt);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kUnsupported) explain_half_floats(path, options.device, error);
    throw;
  }
  state->session = OrtSessionPtr(raw, {&api});
  state->inputs = read_infos(*state, "input", api.SessionGetInputCount, api.SessionGetInputName,
                             api.SessionGetInputTypeInfo);
  state->outputs = read_infos(*state, "output", api.SessionGetOutputCount, api.SessionGetOutputName,
                              api.SessionGetOutputTypeInfo);
  return state;
}

}  // namespace

Session Session::open(const std::filesystem::path& path, const SessionOptions& options,
                      const Sink& sink) {
  const auto create = [&](const OrtApi& api, const OrtEnv* env, const OrtSessionOptions* made,
                          OrtSession** session) {
    if (!shares_weights(options)) return api.CreateSession(env, path.c_str(), made, session);
    return api.CreateSessionWithPrepackedWeightsContainer(env, path.c_str(), made,
                                                          options.weights->prepacked(), session);
  };
  return Session(load(path, options, sink, create));
}

Session Session::open_edited(const std::filesystem::path& path, Bytes model,
                             const SessionOptions& options, const Sink& sink) {
  SessionOptions with_folder = options;
  with_folder.config.emplace("session.model_external_initializers_file_folder_path",
                             path.has_parent_path() ? path.parent_path().string() : ".");
  const auto create = [&](const OrtApi& api, const OrtEnv* env, const OrtSessionOptions* made,
                          OrtSession** session) {
    return api.CreateSessionFromArray(env, model.data(), model.size(), made, session);
  };
  return Session(load(path, with_folder, sink, create));
}

Session::Session(std::unique_ptr<SessionState> state) : state_(std::move(state)) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

const std::vector<ValueInfo>& Session::inputs() const { return state_->inputs; }
const std::vector<ValueInfo>& Session::outputs() const { return state_->outputs; }
const std::string& Session::runtime_version() const { return state_->library.version(); }

NamedTensors Session::run(const NamedTensors& inputs) const {
  check_inputs(*state_, inputs);
  std::vector<Value> values;
  std::vector<const OrtValue*> in;
  std::vector<const char*> in_names;
  for (const auto& [name, tensor] : inputs) {
    values.push_back(value_over(state_->library, tensor.dtype(), tensor.shape(), writable(tensor)));
    in.push_back(values.back().handle());
    in_names.push_back(name.c_str());
  }
  std::vector<const char*> out_names;
  out_names.reserve(state_->outputs.size());
  for (const ValueInfo& info : state_->outputs) out_names.push_back(info.name.c_str());
  std::vector<OrtValue*> out(out_names.size());
  state_->succeed(
      state_->library.api().Run(state_->session.get(), nullptr, in_names.data(), in.data(),
                                in.size(), out_names.data(), out_names.size(), out.data()),
      kRunning, ErrorKind::kInvalidArgument);
  std::vector<OrtValuePtr> owners;
  owners.reserve(out.size());
  for (OrtValue* value : out) {
    owners.emplace_back(value, OrtValuePtr::deleter_type{&state_->library.api()});
  }
  NamedTensors outputs;
  for (size_t i = 0; i < owners.size(); ++i) {
    outputs.emplace(out_names[i], Value(state_->library, owners[i].release()).to_tensor());
  }
  return outputs;
}

Value Session::allocate(DType dtype, const std::vector<int64_t>& shape) const {
  return allocate_value(state_->library, dtype, shape);
}
Value Session::over(DType dtype, const std::vector<int64_t>& shape,
                    std::span<std::byte> bytes) const {
  return value_over(state_->library, dtype, shape, bytes);
}
Value Session::over(Tensor& tensor) const {
  return over(tensor.dtype(), tensor.shape(), tensor.bytes());
}

}  // namespace tranship::onnx
