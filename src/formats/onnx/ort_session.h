// What a Session and its Bindings share. Not for others: include session.h.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/onnx/ort_library.h"
#include "formats/onnx/session.h"

namespace tranship::onnx {

/// What is being done, in the errors of a run. What ONNX Runtime does not blame on anyone is most
/// often inputs that do not go together (two sizes of one dimension), so that is what runs take it
/// for.
inline constexpr std::string_view kRunning = "running the model";

/// "cpu", or "cuda" and the number of a GPU.
struct OrtDevice {
  bool cuda = false;
  int index = 0;
};

/// Errors: invalid_argument for any other text.
OrtDevice parse_device(std::string_view text);

/// Owns the loaded model. The log is attached to the library as long as this lives.
struct SessionState {
  SessionState(const OrtLibrary& library, std::string path, const Sink& sink);
  ~SessionState();
  SessionState(const SessionState&) = delete;
  SessionState& operator=(const SessionState&) = delete;

  /// Ends a call of the library: throws what the status says, with the model's name (see
  /// OrtLibrary::succeed).
  void succeed(OrtStatus* status, std::string_view doing,
               std::optional<ErrorKind> vague = std::nullopt) const;

  const OrtLibrary& library;
  std::string path;
  mutable OrtLog log;
  OrtDevice device;
  std::vector<ValueInfo> inputs;
  std::vector<ValueInfo> outputs;
  std::shared_ptr<WeightPool> weights;  // that the session looks at
  OrtSessionPtr session;                // last: released before the log it writes to
};

/// Errors: invalid_argument if there is no such name, with those there are. `role` is "input" or
/// "output".
const ValueInfo& at_info(const SessionState& state, const std::vector<ValueInfo>& infos,
                         const std::string& name, std::string_view role);

/// Why a tensor does not fit an input or output ("'x' is f32[2, 3], expected i64[batch, 3]"); empty
/// if it does.
std::string misfit(const ValueInfo& info, DType dtype, const std::vector<int64_t>& shape);

}  // namespace tranship::onnx
