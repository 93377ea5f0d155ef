// ONNX Runtime's shared library, opened at run time, so that a user can point at any build of it.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/onnx/ort_abi.h"
#include "tranship/error.h"
#include "tranship/sink.h"

namespace tranship::onnx {

/// Older releases are refused.
inline constexpr std::string_view kOrtMinimumVersion = "1.20";
/// Releases that the tests run with; others get a warning.
inline constexpr std::string_view kOrtTestedVersions = "1.29 to 1.31";

/// Where the log of one session goes. ONNX Runtime calls it from several threads; the sink is
/// called by one at a time, and must not use the session.
class OrtLog {
 public:
  /// `model` is for the messages.
  OrtLog(std::string model, Sink sink) : model_(std::move(model)), sink_(std::move(sink)) {}

  /// A message of the library. What is only informative counts as a warning too: the caller has set
  /// the level. Errors are held back until settle(): a call that fails says the same in its status.
  void write(OrtLogLevel level, std::string_view message);
  /// Ends a call: drops the errors held back if it failed, passes them on as warnings if it did
  /// not.
  void settle(bool failed);
  /// A warning of our own, in the same words.
  void warn(std::string_view message);

  /// To be given to ONNX Runtime, with the log as the parameter. Nothing is thrown.
  static void callback(void* log, OrtLogLevel level, const char* category, const char* log_id,
                       const char* code_location, const char* message) noexcept;

 private:
  std::string model_;
  Sink sink_;
  std::mutex mutex_;
  std::vector<std::string> errors_;
};

/// A loaded library, its functions, and its environment. Each is loaded once and stays until the
/// process ends, because unloading one with threads is not safe; so a reference is always valid.
/// All functions may be called from any thread.
class OrtLibrary {
 public:
  /// Loads ONNX Runtime. `library` is the file, or a folder that has it; if empty, it is searched:
  ///   the environment variable TRANSHIP_ORT_LIBRARY (file or folder),
  ///   the folder of the SDK that tranship was built with,
  ///   ../lib and the folder beside the program,
  ///   libonnxruntime.so.1 and libonnxruntime.so, as the system's loader finds them.
  /// What the caller or the environment names must load: nothing else is tried then.
  /// One warning if its version is not a tested one.
  /// Errors: invalid_argument if the named library cannot be loaded; unsupported if none is found
  /// (with the places), if it is not ONNX Runtime, or if it is older than kOrtMinimumVersion.
  static const OrtLibrary& open(const std::filesystem::path& library, const Sink& sink);

  OrtLibrary(const OrtLibrary&) = delete;
  OrtLibrary& operator=(const OrtLibrary&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// "1.31.1".
  const std::string& version() const { return version_; }
  const OrtApi& api() const { return api_; }
  const OrtEnv* env() const { return env_; }

  /// The execution providers this build has: "CPUExecutionProvider" ...
  std::vector<std::string> providers() const;

  /// Throws what a status says, and releases it; does nothing for null.
  /// The message: [onnxruntime] 'where': `doing`: what ONNX Runtime says.
  /// Errors: corrupt, io, unsupported, invalid_argument or internal, by the status' code; `vague`
  /// instead of the last two, which ONNX Runtime also uses when it does not know better.
  void succeed(OrtStatus* status, std::string_view where, std::string_view doing,
               std::optional<ErrorKind> vague = std::nullopt) const;

  /// The newest attached log gets what the library says outside of any session (its workers, its
  /// kernels).
  void attach(OrtLog* log) const;
  void detach(OrtLog* log) const;

 private:
  OrtLibrary(std::filesystem::path path, const OrtApiBase& base, const Sink& sink);
  static void default_callback(void* library, OrtLogLevel level, const char* category,
                               const char* log_id, const char* code_location,
                               const char* message) noexcept;

  std::filesystem::path path_;
  std::string version_;
  OrtApi api_{};
  OrtEnv* env_ = nullptr;
  mutable std::mutex mutex_;
  mutable std::vector<OrtLog*> logs_;
};

/// A library that is loaded, but not yet known to be ONNX Runtime.
struct OrtFile {
  std::filesystem::path path;
  void* handle = nullptr;
};

/// The first library that loads: the one in each folder, then by name through the system's loader.
/// Errors: unsupported if there is none: with what was tried, why each failed, and what to do.
OrtFile search_ort_library(const std::vector<std::filesystem::path>& folders,
                           const std::vector<std::string>& names);

/// What decides over a version: nothing, a warning, or Error{unsupported}. `path` is for the
/// message.
void check_ort_version(std::string_view version, const std::filesystem::path& path,
                       const Sink& sink);

/// Frees a thing of the library by the function of its kind.
template <class T, auto kFunction>
struct OrtRelease {
  const OrtApi* api = nullptr;
  void operator()(T* thing) const noexcept { (api->*kFunction)(thing); }
};
template <class T, auto kFunction>
using OrtPtr = std::unique_ptr<T, OrtRelease<T, kFunction>>;

using OrtSessionPtr = OrtPtr<OrtSession, &OrtApi::ReleaseSession>;
using OrtSessionOptionsPtr = OrtPtr<OrtSessionOptions, &OrtApi::ReleaseSessionOptions>;
using OrtValuePtr = OrtPtr<OrtValue, &OrtApi::ReleaseValue>;
using OrtTypeInfoPtr = OrtPtr<OrtTypeInfo, &OrtApi::ReleaseTypeInfo>;
using OrtTensorInfoPtr = OrtPtr<OrtTensorInfo, &OrtApi::ReleaseTensorTypeAndShapeInfo>;
using OrtMemoryInfoPtr = OrtPtr<OrtMemoryInfo, &OrtApi::ReleaseMemoryInfo>;
using OrtIoBindingPtr = OrtPtr<OrtIoBinding, &OrtApi::ReleaseIoBinding>;
using OrtCudaOptionsPtr = OrtPtr<OrtCudaOptions, &OrtApi::ReleaseCUDAProviderOptions>;

}  // namespace tranship::onnx
