#include "exporters/export_json.h"

#include <algorithm>
#include <system_error>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/file_hash.h"
#include "base/json.h"
#include "tranship/version.h"

namespace tranship::exporters {
namespace {

constexpr int64_t kSchemaVersion = 1;
constexpr size_t kMostComponents = 64;

// ---- writing

Json parsed(const std::string& text, Json absent) {
  return text.empty() ? std::move(absent) : parse_json("export.json", "metadata", text);
}

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

Json metadata_json(const ExportMetadata& metadata) {
  Json packages = Json::object();
  for (const auto& [name, version] : metadata.packages) packages[name] = version;
  Json json = {{"architecture", text_or_null(metadata.architecture)},
               {"packages", std::move(packages)},
               {"export_config", parsed(metadata.export_config, Json::object())},
               {"export_dtype", text_or_null(metadata.export_dtype)},
               {"export_device", text_or_null(metadata.export_device)},
               {"kwargs", parsed(metadata.kwargs, Json::object())},
               {"in_spec", text_or_null(metadata.in_spec)},
               {"out_spec", text_or_null(metadata.out_spec)},
               {"in_constants", parsed(metadata.in_constants, Json::object())},
               {"out_constants", parsed(metadata.out_constants, Json::array())}};
  if (metadata.logits_to_keep > 0) json["logits_to_keep"] = metadata.logits_to_keep;
  return json;
}

Json files_json(const std::vector<ArtifactFile>& files) {
  Json out = Json::object();
  for (const ArtifactFile& file : files) {
    out[file.name] = {{"size_bytes", file.size_bytes}};
    if (!file.hash.empty()) out[file.name]["hash"] = file.hash;
  }
  return out;
}

/// The hash of all but itself.
std::string hash_of_document(Json document) {
  document["tranship"].erase("hash");
  return hash_of(as_bytes(to_python_json(document)));
}

// ---- reading

/// A value of the document, with its path for messages.
struct Place {
  std::string_view where;
  std::string path;  // empty: the document
  const Json& value;

  [[noreturn]] void fail_type(std::string_view expected) const {
    fail(ErrorKind::kCorrupt, "[export.json] '{}': {} is a JSON {}, expected {}", where,
         path.empty() ? "the file" : path, value.type_name(), expected);
  }

  void require_object() const {
    if (!value.is_object()) fail_type("an object");
  }

  Place of(const std::string& key, const Json& member) const {
    return {where, path.empty() ? key : path + "." + key, member};
  }

  /// A member that may be absent or null: then nothing.
  std::optional<Place> find(const std::string& key) const {
    require_object();
    const auto found = value.find(key);
    if (found == value.end() || found->is_null()) return std::nullopt;
    return of(key, *found);
  }

  Place at(const std::string& key) const {
    std::optional<Place> found = find(key);
    if (!found)
      fail(ErrorKind::kCorrupt, "[export.json] '{}': {} is missing", where, of(key, value).path);
    return *found;
  }

  std::string text() const {
    if (!value.is_string()) fail_type("a string");
    return value.get<std::string>();
  }

  std::string text_of(const std::string& key) const {
    const std::optional<Place> found = find(key);
    return found ? found->text() : std::string();
  }

  /// The member as JSON text.
  std::string object_of(const std::string& key) const {
    const std::optional<Place> found = find(key);
    if (!found) return "{}";
    found->require_object();
    return to_python_json_line(found->value);
  }

  std::string list_of(const std::string& key) const {
    const std::optional<Place> found = find(key);
    if (!found) return "[]";
    if (!found->value.is_array()) found->fail_type("a list");
    return to_python_json_line(found->value);
  }

  uint64_t count() const {
    if (!value.is_number_unsigned()) fail_type("a number from 0");
    return value.get<uint64_t>();
  }
};

/// Errors: corrupt for a name that could lead out of the artifact's directory.
void check_file_name(const Place& place, const std::string& name) {
  const bool dots = name.find_first_not_of('.') == name.npos;  // "", ".", ".."
  const bool plain =
      std::string_view(name).find_first_of(std::string_view("/\\:\0", 4)) == name.npos;
  if (!dots && plain && name.size() <= 255) return;
  fail(ErrorKind::kCorrupt,
       "[export.json] '{}': {} is {}, expected the plain name of a file beside it", place.where,
       place.path, Json(name).dump());
}

ExportMetadata read_metadata(const Place& place) {
  ExportMetadata metadata;
  metadata.architecture = place.text_of("architecture");
  if (const std::optional<Place> packages = place.find("packages")) {
    packages->require_object();
    for (const auto& [name, version] : packages->value.items()) {
      metadata.packages[name] = packages->of(name, version).text();
    }
  }
  metadata.export_config = place.object_of("export_config");
  metadata.export_dtype = place.text_of("export_dtype");
  metadata.export_device = place.text_of("export_device");
  metadata.kwargs = place.object_of("kwargs");
  metadata.in_spec = place.text_of("in_spec");
  metadata.out_spec = place.text_of("out_spec");
  metadata.in_constants = place.object_of("in_constants");
  metadata.out_constants = place.list_of("out_constants");
  if (const std::optional<Place> kept = place.find("logits_to_keep"))
    metadata.logits_to_keep = static_cast<int64_t>(std::min<uint64_t>(kept->count(), INT32_MAX));
  return metadata;
}

std::vector<Manifest::Component> read_components(const Place& components) {
  components.require_object();
  if (components.value.empty() || components.value.size() > kMostComponents) {
    fail(ErrorKind::kCorrupt, "[export.json] '{}': {} components, expected 1 to {}",
         components.where, components.value.size(), kMostComponents);
  }
  std::vector<Manifest::Component> out;
  for (const auto& [name, entry] : components.value.items()) {
    const Place component = components.of(name, entry);
    const Place file = component.at("file");
    check_file_name(file, file.text());
    static const Json kNothing = Json::object();
    const std::optional<Place> metadata = component.find("metadata");
    out.push_back({name, file.text(),
                   read_metadata(metadata ? *metadata : component.of("metadata", kNothing))});
  }
  return out;
}

std::vector<ArtifactFile> read_files(const Place& document, const std::string& key) {
  const std::optional<Place> ours = document.find("tranship");
  if (!ours) return {};
  const std::optional<Place> files = ours->find(key);
  if (!files) return {};
  files->require_object();
  const bool is_known = ours->text_of("hash_scheme") == kHashScheme;
  std::vector<ArtifactFile> out;
  for (const auto& [name, entry] : files->value.items()) {
    const Place file = files->of(name, entry);
    constexpr std::string_view kTemplates = "chat_templates/";  // the one folder of small files
    const bool is_template = key == "small_files" && name.starts_with(kTemplates);
    check_file_name(file, is_template ? name.substr(kTemplates.size()) : name);
    out.push_back({name, file.at("size_bytes").count(), is_known ? file.text_of("hash") : ""});
  }
  return out;
}

void check_schema(const Place& document, const Sink& sink) {
  const std::optional<Place> version = document.find("schema_version");
  if (version && version->count() > static_cast<uint64_t>(kSchemaVersion)) {
    sink.warn(fmt::format(
        "[export.json] '{}' is of schema_version {}, and this tranship knows {}: some of it may be "
        "passed over or misread",
        document.where, version->count(), kSchemaVersion));
  }
}

/// Errors: io: the directory is none, or holds no whole export.
[[noreturn]] void fail_without_manifest(const std::filesystem::path& directory) {
  std::error_code error;
  if (!std::filesystem::is_directory(directory, error)) {
    fail(ErrorKind::kIo,
         "[load] '{}' is no directory, or is not there (`tranship export` makes one)",
         directory.string());
  }
  std::vector<std::string> parts;
  for (const std::filesystem::directory_entry& entry :
       std::filesystem::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".onnx") || name.ends_with(".onnx.data") || is_leftover(entry.path()))
      parts.push_back(name);
  }
  if (parts.empty()) {
    fail(ErrorKind::kIo,
         "[load] '{}' holds no export: there is no {} (`tranship export` makes one)",
         directory.string(), kManifestFile);
  }
  std::ranges::sort(parts);
  fail(ErrorKind::kIo,
       "[load] '{}' holds an export that is not whole: there are {}, and no {}, which is written "
       "last. It was interrupted, or it is still being written: wait, or export again",
       directory.string(), listed(parts, 6), kManifestFile);
}

}  // namespace

std::string manifest_text(const std::filesystem::path& directory) {
  constexpr uint64_t kLimitBytes = 64u << 20;
  const std::filesystem::path file = directory / kManifestFile;
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) fail_without_manifest(directory);
  return read_text(file, kLimitBytes);
}

std::string write_manifest(const Manifest& manifest) {
  Json components = Json::object();
  for (const Manifest::Component& component : manifest.components) {
    components[component.name] = {{"file", component.file},
                                  {"metadata", metadata_json(component.metadata)}};
  }
  Json document = {{"schema_version", kSchemaVersion},
                   {"export_format", manifest.export_format},
                   {"components", std::move(components)}};
  if (!manifest.files.empty()) {
    Json& ours = document["tranship"];
    ours = {{"version", version()}, {"files", files_json(manifest.files)}};
    ours["hash_scheme"] = kHashScheme;
    if (!manifest.small_files.empty()) ours["small_files"] = files_json(manifest.small_files);
    if (!manifest.referred_files.empty())
      ours["referred_files"] = files_json(manifest.referred_files);
    const std::string hash = hash_of_document(document);
    ours["hash"] = hash;
  }
  return to_python_json(document) + "\n";
}

std::optional<bool> is_as_written(std::string_view where, std::string_view text) {
  const Json json = parse_json("export.json", where, text);
  const std::optional<Place> ours = Place{where, "", json}.find("tranship");
  const std::string hash = ours ? ours->text_of("hash") : std::string();
  if (hash.empty()) return std::nullopt;
  return ours->text_of("hash_scheme") == kHashScheme && hash == hash_of_document(json);
}

Manifest read_manifest(std::string_view where, std::string_view text, const Sink& sink) {
  const Json json = parse_json("export.json", where, text);
  const Place document{where, "", json};
  document.require_object();
  check_schema(document, sink);
  Manifest manifest;
  manifest.export_format = document.at("export_format").text();
  manifest.components = read_components(document.at("components"));
  manifest.files = read_files(document, "files");
  manifest.small_files = read_files(document, "small_files");
  manifest.referred_files = read_files(document, "referred_files");
  return manifest;
}

}  // namespace tranship::exporters
