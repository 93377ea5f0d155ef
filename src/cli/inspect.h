// `tranship inspect`, taken apart: each kind of thing gives a JSON report, and one function says a
// report in tables.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tasks/task.h"
#include "tranship/sink.h"

namespace tranship {
using Json = nlohmann::ordered_json;
}

namespace tranship::cli {

enum class PathKind { kArtifact, kCheckpoint, kGguf, kConfig, kSafetensors, kOnnx, kProgram };

/// By name and content: a directory with an export.json is an artifact.
/// Errors: io if nothing is there; unsupported for a file of another kind.
PathKind kind_of(const std::filesystem::path& path);

/// A checkpoint of any kind: with weights, or a bare config.json.
struct OpenedModel {
  PathKind kind;
  std::filesystem::path path;
  Checkpoint checkpoint;
};
/// Errors: those of Checkpoint::open.
OpenedModel open_model(PathKind kind, const std::filesystem::path& path, const Sink& sink);

struct ModelChoice {
  std::string architecture;  // empty: the configuration's
  std::string task;          // empty: default_task()
};
/// The graphs that an export would write, with weights of the checkpoint's own dtype.
tasks::TaskProgram build_model(const OpenedModel& model, const ModelChoice& choice,
                               const Sink& sink);

/// What is wrong with a model that cannot be exported is in the report ("problem"), not an error.
Json report_model(const OpenedModel& model, const ModelChoice& choice, const Sink& sink);
Json report_artifact(const std::filesystem::path& path, const Sink& sink);
Json report_safetensors(const std::filesystem::path& path);
Json report_onnx(const std::filesystem::path& path);
/// Of a .pt2. Operators that cannot be exported are in the report ("unmapped"), not an error.
Json report_program(const std::filesystem::path& path);
/// The graph that an export of a .pt2 would write, before its passes.
ir::Program open_program(const std::filesystem::path& path);

/// The report as tables, `width` columns wide where it can be.
std::string describe(const Json& report, size_t width);

}  // namespace tranship::cli
