// `tranship --version`.
#include "tranship/version.h"

#include <fmt/core.h>

#include <string>

#include "cli/command.h"
#include "formats/onnx/ort_library.h"

namespace tranship::cli {
namespace {

std::string runtime_text() {
  std::string warnings;
  Sink sink;
  sink.warning = [&](std::string_view message) { warnings += fmt::format("  {}\n", message); };
  try {
    const onnx::OrtLibrary& library = onnx::OrtLibrary::open({}, sink);
    std::string providers;
    for (const std::string& provider : library.providers())
      providers += (providers.empty() ? "" : ", ") + provider;
    return fmt::format("ONNX Runtime {}\n  {}\n  {}\n{}", library.version(),
                       library.path().string(), providers, warnings);
  } catch (const Error& error) {
    return fmt::format("ONNX Runtime: none that can be used\n  {}\n", error.what());
  }
}

}  // namespace

std::string version_text() {
  return fmt::format("tranship {}\nbuilt by {}, {}, {} tokenizer\n{}", version(), TRANSHIP_COMPILER,
                     TRANSHIP_BUILD_TYPE, TRANSHIP_HAS_TOKENIZER ? "with" : "without",
                     runtime_text());
}

}  // namespace tranship::cli
