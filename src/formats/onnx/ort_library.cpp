#include "formats/onnx/ort_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "base/error.h"

namespace tranship::onnx {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kStem = "libonnxruntime.so";
constexpr const char* kVariable = "TRANSHIP_ORT_LIBRARY";
constexpr size_t kMaxErrorsHeld = 16;

using Version = std::pair<int, int>;
constexpr Version kMinimum{1, 20};
constexpr Version kFirstTested{1, 29};
constexpr Version kLastTested{1, 31};

/// The first two numbers of "1.31.1".
std::optional<Version> parse_version(std::string_view text) {
  Version version{};
  const size_t dot = text.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const char* begin = text.data();
  const char* end = begin + text.size();
  if (std::from_chars(begin, end, version.first).ec != std::errc{}) return std::nullopt;
  if (std::from_chars(begin + dot + 1, end, version.second).ec != std::errc{}) return std::nullopt;
  return version;
}

/// The library's file in a folder. Its link without numbers wins, then the longest name: that of
/// the full version.
std::optional<fs::path> find_in(const fs::path& folder) {
  std::optional<fs::path> best;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name == kStem) return entry.path();
    if (!name.starts_with(std::string(kStem) + ".")) continue;
    const std::string chosen = best ? best->filename().string() : "";
    if (std::pair(name.size(), name) > std::pair(chosen.size(), chosen)) best = entry.path();
  }
  return best;
}

/// A library's handle, or why there is none.
struct Loaded {
  void* handle = nullptr;
  std::string reason;
};

Loaded load(const fs::path& library) {
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle != nullptr) return {handle, ""};
  const char* reason = dlerror();
  return {nullptr, reason != nullptr ? reason : "unknown reason"};
}

OrtFile load_named(const fs::path& named, std::string_view who) {
  std::error_code ignored;
  fs::path file = named;
  if (fs::is_directory(named, ignored)) {
    const std::optional<fs::path> inside = find_in(named);
    if (!inside) {
      fail(ErrorKind::kInvalidArgument,
           "[onnxruntime] '{}', named by {}, is a folder without a {}*: name the library",
           named.string(), who, kStem);
    }
    file = *inside;
  }
  const Loaded loaded = load(file);
  if (loaded.handle == nullptr) {
    fail(ErrorKind::kInvalidArgument, "[onnxruntime] '{}', named by {}, cannot be loaded: {}",
         file.string(), who, loaded.reason);
  }
  return {file, loaded.handle};
}

/// Folders to look into when nobody names the library.
std::vector<fs::path> default_folders() {
  std::vector<fs::path> folders{TRANSHIP_ORT_FOLDER};
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error) {
    folders.push_back(program.parent_path().parent_path() / "lib");
    folders.push_back(program.parent_path());
  }
  return folders;
}

std::vector<std::string> default_names() { return {std::string(kStem) + ".1", std::string(kStem)}; }

OrtFile find_library(const fs::path& library) {
  if (!library.empty()) return load_named(library, "the caller");
  const char* variable = std::getenv(kVariable);
  if (variable != nullptr && *variable != '\0') return load_named(variable, kVariable);
  return search_ort_library(default_folders(), default_names());
}

const OrtApiBase& api_base(const OrtFile& found) {
  void* symbol = dlsym(found.handle, "OrtGetApiBase");
  if (symbol == nullptr) {
    fail(ErrorKind::kUnsupported, "[onnxruntime] '{}' is not ONNX Runtime: it has no OrtGetApiBase",
         found.path.string());
  }
  const auto function = reinterpret_cast<const OrtApiBase* (*)()>(symbol);
  return *function();
}

ErrorKind kind_of(OrtErrorCode code, std::optional<ErrorKind> vague) {
  switch (code) {
    case OrtErrorCode::kNoModel:
    case OrtErrorCode::kInvalidProtobuf:
    case OrtErrorCode::kInvalidGraph:
      return ErrorKind::kCorrupt;
    case OrtErrorCode::kNoSuchFile:
      return ErrorKind::kIo;
    case OrtErrorCode::kNotImplemented:
      return ErrorKind::kUnsupported;
    case OrtErrorCode::kInvalidArgument:
      return vague.value_or(ErrorKind::kInvalidArgument);
    case OrtErrorCode::kFail:
    case OrtErrorCode::kEngineError:
    case OrtErrorCode::kRuntimeException:
    case OrtErrorCode::kModelLoaded:
    case OrtErrorCode::kExecutionProviderFail:
      break;
  }
  return vague.value_or(ErrorKind::kInternal);  // a code of a later release too
}

/// Without the line's end that some messages have.
std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  return text;
}

}  // namespace

void OrtLog::write(OrtLogLevel level, std::string_view message) {
  const std::lock_guard lock(mutex_);
  if (level < OrtLogLevel::kError) {
    sink_.warn(fmt::format("[onnxruntime] '{}': {}", model_, trimmed(message)));
  } else if (errors_.size() < kMaxErrorsHeld) {
    errors_.emplace_back(trimmed(message));
  }
}

void OrtLog::settle(bool failed) {
  const std::lock_guard lock(mutex_);
  const std::vector<std::string> errors = std::exchange(errors_, {});
  if (failed) return;
  for (const std::string& error : errors)
    sink_.warn(fmt::format("[onnxruntime] '{}': {}", model_, error));
}

void OrtLog::warn(std::string_view message) { write(OrtLogLevel::kWarning, message); }

void OrtLog::callback(void* log, OrtLogLevel level, const char*, const char*, const char*,
                      const char* message) noexcept {
  try {
    static_cast<OrtLog*>(log)->write(level, message);
  } catch (...) {
    return;  // a sink that throws must not unwind through ONNX Runtime
  }
}

void OrtLibrary::default_callback(void* library, OrtLogLevel level, const char* category,
                                  const char* log_id, const char* code_location,
                                  const char* message) noexcept {
  const auto* self = static_cast<const OrtLibrary*>(library);
  const std::lock_guard lock(self->mutex_);
  if (!self->logs_.empty())
    OrtLog::callback(self->logs_.back(), level, category, log_id, code_location, message);
}

void OrtLibrary::attach(OrtLog* log) const {
  const std::lock_guard lock(mutex_);
  logs_.push_back(log);
}

void OrtLibrary::detach(OrtLog* log) const {
  const std::lock_guard lock(mutex_);
  std::erase(logs_, log);
}

OrtFile search_ort_library(const std::vector<std::filesystem::path>& folders,
                           const std::vector<std::string>& names) {
  std::vector<std::string> tried;
  for (const fs::path& folder : folders) {
    const std::optional<fs::path> file = find_in(folder);
    const Loaded loaded = file ? load(*file) : Loaded{nullptr, "not there"};
    if (loaded.handle != nullptr) return {*file, loaded.handle};
    tried.push_back(
        fmt::format("{} ({})", (file ? *file : folder / kStem).string(), loaded.reason));
  }
  for (const std::string& name : names) {
    const Loaded loaded = load(name);
    if (loaded.handle != nullptr) return {name, loaded.handle};
    tried.push_back(fmt::format("{} ({})", name, loaded.reason));
  }
  fail(ErrorKind::kUnsupported,
       "[onnxruntime] ONNX Runtime is needed to run a model, and was not found. Tried: {}. Run "
       "`make setup`, or set "
       "{} to a libonnxruntime.so of version {} or later",
       listed(tried), kVariable, kOrtMinimumVersion);
}

void check_ort_version(std::string_view version, const std::filesystem::path& path,
                       const Sink& sink) {
  const std::optional<Version> number = parse_version(version);
  if (!number || *number < kMinimum) {
    fail(ErrorKind::kUnsupported,
         "[onnxruntime] '{}' is ONNX Runtime {}, but {} or later is needed: run `make setup`, or "
         "set {} to a newer one",
         path.string(), version, kOrtMinimumVersion, kVariable);
  }
  if (*number < kFirstTested || *number > kLastTested) {
    sink.warn(fmt::format("[onnxruntime] '{}' is ONNX Runtime {}; tranship is tested with {}",
                          path.string(), version, kOrtTestedVersions));
  }
}

OrtLibrary::OrtLibrary(std::filesystem::path path, const OrtApiBase& base, const Sink& sink)
    : path_(std::move(path)), version_(base.GetVersionString()) {
  check_ort_version(version_, path_, sink);
  const auto* table = static_cast<const std::byte*>(base.GetApi(kOrtApiVersion));
  if (table == nullptr) {
    fail(ErrorKind::kUnsupported,
         "[onnxruntime] '{}' (version {}) does not offer version {} of its interface",
         path_.string(), version_, kOrtApiVersion);
  }
  for (const OrtSlot& slot : kOrtSlots) {
    std::memcpy(reinterpret_cast<std::byte*>(&api_) + slot.offset,
                table + slot.slot * sizeof(void (*)()), sizeof(void (*)()));
  }
  // What it says while it looks at the machine (say, that there is no GPU) is of no interest: no
  // log is attached yet.
  succeed(api_.CreateEnvWithCustomLogger(&default_callback, this, OrtLogLevel::kWarning, "tranship",
                                         &env_),
          path_.string(), "starting ONNX Runtime");
}

const OrtLibrary& OrtLibrary::open(const std::filesystem::path& library, const Sink& sink) {
  // By handle, which the system's loader keeps the same for one file under whatever name. Never
  // destroyed.
  static std::mutex& mutex = *new std::mutex;
  static auto& libraries = *new std::map<void*, std::unique_ptr<OrtLibrary>>;
  const std::lock_guard lock(mutex);
  const OrtFile found = find_library(library);
  std::unique_ptr<OrtLibrary>& slot = libraries[found.handle];
  if (slot == nullptr) slot.reset(new OrtLibrary(found.path, api_base(found), sink));
  return *slot;
}

std::vector<std::string> OrtLibrary::providers() const {
  char** names = nullptr;
  int count = 0;
  succeed(api_.GetAvailableProviders(&names, &count), path_.string(),
          "listing the execution providers");
  std::vector<std::string> list(names, names + count);
  succeed(api_.ReleaseAvailableProviders(names, count), path_.string(),
          "listing the execution providers");
  return list;
}

void OrtLibrary::succeed(OrtStatus* status, std::string_view where, std::string_view doing,
                         std::optional<ErrorKind> vague) const {
  if (status == nullptr) return;
  const OrtPtr<OrtStatus, &OrtApi::ReleaseStatus> owner(status, {&api_});
  fail(kind_of(api_.GetErrorCode(status), vague),
       "[onnxruntime] '{}': {}: ONNX Runtime {} says: {}", where, doing, version_,
       trimmed(api_.GetErrorMessage(status)));
}

}  // namespace tranship::onnx
