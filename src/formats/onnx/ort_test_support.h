// For the tests that need ONNX Runtime: they are skipped, with the reason, where there is none.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "formats/onnx/ort_library.h"
#include "formats/onnx/session.h"
#include "tranship/error.h"

namespace tranship::onnx {

class NeedsOnnxRuntime : public testing::Test {
 protected:
  void SetUp() override {
    try {
      library_ = &OrtLibrary::open({}, {});
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kUnsupported) throw;
      GTEST_SKIP() << error.what();
    }
  }

  /// A sink that keeps the warnings.
  Sink sink() {
    return {.warning = [this](std::string_view message) { warnings_.emplace_back(message); },
            .progress = {}};
  }
  /// Opens one of the models in tests/cases/onnx/, with its warnings kept.
  Session open(const std::string& name, const SessionOptions& options = {}) {
    return Session::open(case_path(name), options, sink());
  }
  static std::filesystem::path case_path(const std::string& name) {
    return std::filesystem::path(TRANSHIP_SOURCE_DIR) / "tests/cases/onnx" / (name + ".onnx");
  }

  const OrtLibrary* library_ = nullptr;
  std::vector<std::string> warnings_;
};

/// The kind and message of the Error that `function` throws; the test fails if there is none.
template <class Function>
Error error_of(Function function) {
  try {
    function();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "expected an error";
  return Error(ErrorKind::kInternal, "no error");
}

}  // namespace tranship::onnx
