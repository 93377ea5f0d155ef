// What is behind an ExportedModel.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "exporters/export_json.h"
#include "exporters/ranges.h"
#include "exporters/small_files.h"
#include "exporters/temporary_folder.h"
#include "formats/onnx/session.h"
#include "tranship/exporters.h"

namespace tranship {

namespace exporters {

/// Writes the files of an export's programs into a directory -> the files with their hashes.
using SavePrograms = std::function<std::vector<ArtifactFile>(const std::filesystem::path& directory,
                                                             const Sink& sink)>;

/// An export, wherever its files are. Never changes.
struct Artifact {
  std::vector<std::pair<std::string, ExportedComponent>> components;
  std::map<std::string, Ranges> ranges = {};  // by component: which sizes it may be run with
  Manifest manifest;
  SmallFiles small_files;
  /// Of a fresh export; else the files are in `directory`.
  SavePrograms save_programs;
  bool refers_to_checkpoint =
      false;  // then a fresh export can only be saved, beside the checkpoint
  std::filesystem::path directory;
  /// What external weights of a loaded artifact lie in.
  std::set<std::string> data_files;
  /// Of a loaded artifact, by component: what it can write in place (ProgramSummary).
  std::map<std::string, std::map<std::string, std::string>> in_place = {};
};

/// Passes what a runtime says while a call is on to that call's sink: a session outlives the calls,
/// their sinks do not.
class CallSinks {
 public:
  class Call {
   public:
    Call(CallSinks& sinks, const Sink& sink);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    CallSinks& sinks_;
    const Sink* sink_;
  };
  void warn(std::string_view message);
  /// False the second time: warnings of a loop are given once.
  bool is_new(const std::string& message);

 private:
  std::mutex mutex_;
  std::vector<const Sink*> sinks_;
  std::set<std::string> given_;
};

/// Where a fresh export is written for its first run. Shared by models on several devices.
struct Scratch {
  std::mutex mutex;
  std::optional<TemporaryFolder> folder;
};

}  // namespace exporters

/// Sessions belong to a device; `artifact` and `scratch` are shared. May be used from several
/// threads.
struct ExportedModel::Impl {
  std::shared_ptr<const exporters::Artifact> artifact;
  std::shared_ptr<exporters::Scratch> scratch = std::make_shared<exporters::Scratch>();
  std::shared_ptr<exporters::CallSinks> sinks = std::make_shared<exporters::CallSinks>();
  RunOptions options = {};

  /// The session of a component, opened when it is first asked for; valid as long as this.
  /// Errors: invalid_argument for an unknown component; those of onnx::Session::open.
  const onnx::Session& session(std::string_view component, const Sink& sink = {}) const;

  mutable std::mutex mutex = {};
  mutable std::map<std::string, onnx::Session, std::less<>> sessions = {};

 private:
  std::filesystem::path program_directory(const Sink& sink) const;
};

}  // namespace tranship
