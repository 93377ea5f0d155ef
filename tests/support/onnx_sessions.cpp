#include "support/onnx_sessions.h"

#include <unistd.h>

#include <atomic>

namespace tranship::testing {
namespace {

/// A folder that no other test and no other process has.
std::filesystem::path new_folder() {
  static std::atomic<int> count = 0;
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() /
      ("tranship-sessions-" + std::to_string(getpid()) + "-" + std::to_string(++count));
  std::filesystem::create_directories(folder);
  return folder;
}

}  // namespace

OnnxSessions::OnnxSessions(const ir::Program& program, const onnx::OnnxOptions& options,
                           const Sink& sink)
    : folder_(new_folder()) {
  onnx::OnnxProgram::lower(program, options).save(folder_);
  for (const ir::Component& c : program.components) {
    sessions_.emplace(
        c.name, onnx::Session::open(folder_ / (c.name + ".onnx"), {.intra_op_threads = 1}, sink));
  }
}

Runner OnnxSessions::runner() const {
  return [this](const std::string& component, const NamedTensors& inputs) {
    return sessions_.at(component).run(inputs);
  };
}

}  // namespace tranship::testing
