// export.json: which files an artifact has, and what was recorded when they were made.
// Transformers' format (schema_version 1), with a block of our own that its loader passes over.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tranship/exporters.h"

namespace tranship::exporters {

inline constexpr std::string_view kManifestFile = "export.json";

struct Manifest {
  struct Component {
    std::string name;
    std::string file;
    ExportMetadata metadata;
  };
  std::string export_format;
  std::vector<Component> components;
  /// All files of the components with their sizes, if tranship wrote the artifact; else empty.
  std::vector<ArtifactFile> files = {};
  /// The small files that were written with them. They may be edited: only `verify` looks at this.
  std::vector<ArtifactFile> small_files = {};
  /// Files of the checkpoint beside it that hold weights; `hash` is of samples.
  std::vector<ArtifactFile> referred_files = {};
};

/// What stands for a hash before it is known, as long as one.
inline constexpr std::string_view kNoHashYet = "0000000000000000";

/// Whether export.json is as tranship wrote it; nothing if it has no hash of itself.
/// Errors: those of read_manifest.
std::optional<bool> is_as_written(std::string_view where, std::string_view text);

/// The text of a directory's export.json. Errors: io if there is none; the message says whether
/// there is an export that is not whole, and what to do.
std::string manifest_text(const std::filesystem::path& directory);

/// The text of the file.
std::string write_manifest(const Manifest& manifest);

/// Reads what anybody wrote. `where` is the file's name in messages. Unknown keys are passed over;
/// a newer schema_version is a warning. Errors: corrupt, with the path of the key, for a wrong
/// type, a missing key, or a file name that is more than a name. Hashes of another scheme than
/// base/file_hash.h's are passed over.
Manifest read_manifest(std::string_view where, std::string_view text, const Sink& sink = {});

}  // namespace tranship::exporters
