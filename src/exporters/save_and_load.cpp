// An artifact's way to disk and back. Whole or absent: export.json goes first and comes last.
#include <algorithm>
#include <set>
#include <system_error>

#include "base/atomic_file.h"
#include "base/directory_lock.h"
#include "base/error.h"
#include "base/file_hash.h"
#include "base/mapped_file.h"
#include "exporters/exported_model.h"
#include "exporters/program_summary.h"
#include "exporters/referred_files.h"

namespace tranship {

using exporters::Artifact;
using exporters::kManifestFile;
using exporters::Manifest;

namespace {

namespace fs = std::filesystem;

/// Makes a directory and those above it. What was made goes away with the object, if nothing is in
/// it by then: an export that failed leaves no empty directory.
class MadeDirectory {
 public:
  explicit MadeDirectory(const fs::path& directory) {
    std::error_code error;
    fs::path path = fs::absolute(directory, error).lexically_normal();
    if (path.filename().empty()) path = path.parent_path();  // "out/"
    for (; !error && !path.empty() && !fs::exists(path, error); path = path.parent_path())
      made_.push_back(path);
    fs::create_directories(directory, error);
    if (!error && fs::is_directory(directory, error)) return;
    const std::string why = error ? error.message() : "something else is there";
    remove_empty();
    fail(ErrorKind::kIo, "[save] '{}' cannot be made a directory: {}", directory.string(), why);
  }
  ~MadeDirectory() { remove_empty(); }
  MadeDirectory(const MadeDirectory&) = delete;
  MadeDirectory& operator=(const MadeDirectory&) = delete;

 private:
  void remove_empty() const noexcept {
    std::error_code ignored;
    for (const fs::path& path : made_) fs::remove(path, ignored);
  }

  std::vector<fs::path> made_;  // the deepest first
};

/// Says that a disk is too small before a byte is written.
void check_space(const fs::path& directory, const std::vector<ArtifactFile>& files) {
  uint64_t needed = 0;
  for (const ArtifactFile& file : files) needed += file.size_bytes;
  std::error_code error;
  const fs::space_info space = fs::space(directory, error);
  if (error || space.available >= needed) return;
  fail(ErrorKind::kIo,
       "[save] '{}': the export has {} bytes, and the disk has {} left: make room, or choose "
       "another "
       "directory",
       directory.string(), needed, space.available);
}

void remove_manifest(const fs::path& directory) {
  std::error_code error;
  fs::remove(directory / kManifestFile, error);
  if (error)
    fail(ErrorKind::kIo, "[save] '{}': {}", (directory / kManifestFile).string(), error.message());
}

uint64_t size_of(const fs::path& path) {
  std::error_code error;
  const uint64_t size = fs::file_size(path, error);
  if (error) {
    fail(ErrorKind::kIo,
         "[load] '{}', which {} names, is not there: is the directory a whole copy? ({})",
         path.string(), kManifestFile, error.message());
  }
  return size;
}

// ---- saving

/// Puts the sizes and hashes of the small files that were written into the manifest.
void record(const fs::path& directory, Manifest& manifest) {
  for (ArtifactFile& file : manifest.small_files) {
    const auto written = MappedFile::open(directory / file.name);
    file.size_bytes = written->bytes().size();
    file.hash = hash_of(written->bytes());
  }
  exporters::record_referred(directory, manifest.referred_files);
}

/// Copies the programs of a loaded artifact.
void copy_programs(const Artifact& artifact, const fs::path& directory, const Sink& sink) {
  for (const std::string& name : artifact.data_files) {
    const auto& files = artifact.manifest.files;
    if (std::ranges::find(files, name, &ArtifactFile::name) != files.end()) continue;
    fail(ErrorKind::kUnsupported,
         "[save] the weights of '{}' lie in '{}', which is not a file of the export: export the "
         "checkpoint again instead",
         artifact.directory.string(), name);
  }
  constexpr size_t kBlock = 64u << 20;
  for (const ArtifactFile& file : artifact.manifest.files) {
    const auto source = MappedFile::open(artifact.directory / file.name);
    const size_t size = source->bytes().size();
    AtomicFile copy(directory / file.name);
    for (size_t done = 0; done < size; done += kBlock) {
      copy.write_range(*source, done, std::min(kBlock, size - done));
      sink.report(copy.position_bytes(), size, "writing " + file.name);
    }
    copy.commit();
  }
}

// ---- loading

void check_sizes(const Artifact& artifact) {
  for (const ArtifactFile& file : artifact.manifest.files) {
    const fs::path path = artifact.directory / file.name;
    const uint64_t size = size_of(path);
    if (size == file.size_bytes) continue;
    fail(ErrorKind::kCorrupt, "[load] '{}' has {} bytes, and {} says {}: is it a whole copy?",
         path.string(), size, kManifestFile, file.size_bytes);
  }
}

/// Whether a name that a stranger wrote can only be that of a file in the same folder.
bool is_plain(const std::string& name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\\\0", 3)) == name.npos;
}

/// Errors: io for weights that stayed behind when the programs were moved.
void check_data_files(const Artifact& artifact) {
  std::vector<std::string> missing;
  std::error_code ignored;
  for (const std::string& name : artifact.data_files) {
    if (is_plain(name) && !fs::exists(artifact.directory / name, ignored)) missing.push_back(name);
  }
  if (missing.empty()) return;
  fail(ErrorKind::kIo,
       "[load] '{}': the weights lie in {}, which is not there: move it along with the .onnx",
       artifact.directory.string(), listed(missing));
}

/// The files of an artifact that tranship did not write: the programs, what their weights lie in
/// whatever it is called, and the data file that Transformers puts beside each.
std::vector<ArtifactFile> find_files(const Artifact& artifact) {
  std::set<std::string> names;
  for (const std::string& name : artifact.data_files) {
    if (is_plain(name)) names.insert(name);
  }
  for (const Manifest::Component& component : artifact.manifest.components) {
    names.insert(component.file);
    std::error_code ignored;
    const std::string data = component.file + ".data";
    if (fs::exists(artifact.directory / data, ignored)) names.insert(data);
  }
  std::vector<ArtifactFile> files;
  for (const std::string& name : names) files.push_back({name, size_of(artifact.directory / name)});
  return files;
}

Artifact load(const fs::path& directory, const Sink& sink) {
  Artifact artifact;
  artifact.directory = directory;
  artifact.manifest = exporters::read_manifest((directory / kManifestFile).string(),
                                               exporters::manifest_text(directory), sink);
  exporters::check_format(artifact.manifest.export_format, directory);
  check_sizes(artifact);
  exporters::check_referred(directory, artifact.manifest.referred_files);
  for (const Manifest::Component& component : artifact.manifest.components) {
    size_of(directory / component.file);
    exporters::ProgramSummary summary =
        exporters::summarize_program(artifact.manifest.export_format, directory / component.file);
    for (const auto& [name, bytes] : summary.data_files) artifact.data_files.insert(name);
    artifact.ranges.emplace(component.name,
                            exporters::ranges_of(component.metadata, summary.program.inputs()));
    artifact.in_place.emplace(component.name, std::move(summary.in_place));
    artifact.components.emplace_back(
        component.name, ExportedComponent{std::move(summary.program), component.metadata});
  }
  check_data_files(artifact);
  if (artifact.manifest.files.empty()) artifact.manifest.files = find_files(artifact);
  artifact.small_files = exporters::small_files_in(directory);
  return artifact;
}

}  // namespace

std::vector<ArtifactFile> ExportedModel::files(const fs::path& directory) const {
  const exporters::SmallFiles& small_files = impl_->artifact->small_files;
  Manifest manifest = impl_->artifact->manifest;
  std::vector<ArtifactFile> files = manifest.files;
  for (ArtifactFile& file : exporters::list(small_files)) {
    if (!exporters::stays(small_files, directory, file.name)) files.push_back(std::move(file));
  }
  for (ArtifactFile& file : manifest.small_files) {  // export.json records what will be there
    if (exporters::stays(small_files, directory, file.name))
      file.size_bytes = size_of(directory / file.name);
  }
  files.push_back({std::string(kManifestFile), exporters::write_manifest(manifest).size()});
  return files;
}

void ExportedModel::save_pretrained(const fs::path& directory, const Sink& sink) const {
  const Artifact& artifact = *impl_->artifact;
  const MadeDirectory made(directory);
  std::error_code ignored;
  if (!artifact.directory.empty() && fs::equivalent(artifact.directory, directory, ignored))
    return;  // it is there
  const DirectoryLock lock(directory);
  const std::vector<ArtifactFile> planned = files(directory);
  for (const ArtifactFile& file : planned) remove_leftovers(directory / file.name);
  check_space(directory, planned);
  remove_manifest(directory);
  Manifest manifest = artifact.manifest;
  if (artifact.save_programs) {
    manifest.files = artifact.save_programs(directory, sink);
  } else {
    copy_programs(artifact, directory, sink);
  }
  exporters::write(artifact.small_files, directory);
  if (artifact.save_programs) record(directory, manifest);
  write_text(directory / kManifestFile, exporters::write_manifest(manifest));
}

ExportedModel ExportedModel::from_pretrained(const fs::path& directory, const Source& source,
                                             const Sink& sink) {
  auto impl = std::make_shared<Impl>();
  impl->artifact = std::make_shared<const Artifact>(
      load(source.subfolder.empty() ? directory : directory / source.subfolder, sink));
  impl->options = source.run;
  return ExportedModel(std::move(impl));
}

}  // namespace tranship
