// A program in ONNX Runtime.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "formats/onnx/onnx_program.h"
#include "formats/onnx/session.h"
#include "support/run_golden.h"

namespace tranship::testing {

/// Sessions of all components, one thread each. Their files are gone with them.
class OnnxSessions {
 public:
  OnnxSessions(const ir::Program& program, const onnx::OnnxOptions& options, const Sink& sink = {});
  ~OnnxSessions() { std::filesystem::remove_all(folder_); }
  OnnxSessions(const OnnxSessions&) = delete;
  OnnxSessions& operator=(const OnnxSessions&) = delete;

  onnx::Session& at(const std::string& component) const { return sessions_.at(component); }
  Runner runner() const;

 private:
  std::filesystem::path folder_;
  mutable std::map<std::string, onnx::Session> sessions_;
};

}  // namespace tranship::testing
