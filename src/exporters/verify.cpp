#include "exporters/verify.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/file_hash.h"
#include "base/mapped_file.h"
#include "exporters/export_json.h"
#include "exporters/program_summary.h"
#include "exporters/referred_files.h"

namespace tranship::exporters {
namespace {

namespace fs = std::filesystem;
using Kind = FileVerdict::Kind;

/// One look at a directory.
class Check {
 public:
  Check(const fs::path& directory, const Sink& sink) : directory_(directory), sink_(sink) {}

  std::vector<FileVerdict> run() {
    const std::string name(kManifestFile);
    const std::string where = (directory_ / name).string();
    Manifest manifest;
    try {
      const std::string text = manifest_text(directory_);
      manifest = read_manifest(where, text, sink_);
      check_manifest(is_as_written(where, text), is_of_tranship(manifest));
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::kIo) throw;
      add(name, Kind::kWrong, error.what());
      return std::move(verdicts_);
    }
    for (const auto* files : {&manifest.files, &manifest.small_files}) {
      for (const ArtifactFile& file : *files) check_recorded(file);
    }
    for (const ArtifactFile& file : manifest.referred_files) check_referred(file);
    for (const Manifest::Component& component : manifest.components)
      check_program(manifest.export_format, component.file);
    return std::move(verdicts_);
  }

 private:
  void add(const std::string& file, Kind kind, std::string text) {
    verdicts_.push_back({file, kind, std::move(text)});
  }

  static bool is_of_tranship(const Manifest& manifest) {
    return std::ranges::any_of(manifest.components, [](const Manifest::Component& component) {
      return component.metadata.packages.contains("tranship");
    });
  }

  void check_manifest(std::optional<bool> as_written, bool is_of_tranship) {
    const std::string name(kManifestFile);
    if (as_written == true) return add(name, Kind::kSame, "");
    if (as_written == false) {
      return add(name, Kind::kWrong,
                 "was changed after the export, or a newer tranship wrote it: its own hash is "
                 "another");
    }
    if (is_of_tranship)
      return add(name, Kind::kWrong, "was changed after the export: its hashes are missing");
    add(name, Kind::kUnknown,
        "no hashes were recorded (Transformers wrote it): a changed byte cannot be seen without "
        "--against");
  }

  void check_recorded(const ArtifactFile& file) {
    seen_.insert(file.name);
    const fs::path path = directory_ / file.name;
    std::error_code ignored;
    if (!fs::exists(path, ignored)) return add(file.name, Kind::kWrong, "is missing");
    if (!fs::is_regular_file(path, ignored)) return add(file.name, Kind::kWrong, "is no file");
    try {
      const auto mapped = MappedFile::open(path);
      const uint64_t size = mapped->bytes().size();
      if (size != file.size_bytes) {
        return add(file.name, Kind::kWrong,
                   fmt::format("has {} bytes, expected {}", size, file.size_bytes));
      }
      if (file.hash.empty()) return add(file.name, Kind::kUnknown, "has no hash in export.json");
      const std::string hash = hash_of(*mapped, sink_);
      const bool is_same = hash == file.hash;
      add(file.name, is_same ? Kind::kSame : Kind::kWrong,
          is_same ? "" : fmt::format("was changed: its hash is {}, expected {}", hash, file.hash));
    } catch (const Error& error) {
      add(file.name, Kind::kWrong, error.what());
    }
  }

  /// Of weights in the checkpoint only samples are known.
  void check_referred(const ArtifactFile& file) {
    seen_.insert(file.name);
    try {
      const std::string fault = find_fault(directory_, file);
      add(file.name, fault.empty() ? Kind::kUnknown : Kind::kWrong,
          fault.empty() ? "is the checkpoint's own: size and samples are those of the export, not "
                          "every byte was recorded"
                        : fault);
    } catch (const Error& error) {
      add(file.name, Kind::kWrong, error.what());
    }
  }

  /// That a graph can be read, and that its weights lie within the files it points to.
  void check_program(const std::string& export_format, const std::string& file) {
    const bool is_told = std::ranges::any_of(verdicts_, [&](const FileVerdict& verdict) {
      return verdict.file == file && verdict.kind == Kind::kWrong;
    });
    if (is_told) return;
    try {
      const ProgramSummary summary = summarize_program(export_format, directory_ / file);
      if (!seen_.contains(file))
        add(file, Kind::kUnknown, "can be read, but has no hash in export.json");
      for (const auto& [name, bytes] : summary.data_files) check_data(file, name, bytes);
    } catch (const Error& error) {
      add(file, Kind::kWrong, error.what());
    }
  }

  void check_data(const std::string& program, const std::string& name, uint64_t needed) {
    if (!seen_.insert(name).second) return;
    std::error_code error;
    const uint64_t size = fs::file_size(directory_ / name, error);
    if (error) {
      add(name, Kind::kWrong, fmt::format("is missing; the weights of {} lie in it", program));
    } else if (size < needed) {
      add(name, Kind::kWrong,
          fmt::format("has {} bytes, and {} points to {} of weights in it", size, program, needed));
    } else {
      add(name, Kind::kUnknown,
          fmt::format("holds weights of {}, but has no hash in export.json", program));
    }
  }

  const fs::path& directory_;
  const Sink& sink_;
  std::vector<FileVerdict> verdicts_;
  std::set<std::string> seen_;
};

}  // namespace

std::vector<FileVerdict> check_files(const fs::path& directory, const Sink& sink) {
  return Check(directory, sink).run();
}

}  // namespace tranship::exporters
