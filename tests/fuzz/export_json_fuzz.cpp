#include "exporters/export_json.h"
#include "fuzz.h"

using namespace tranship;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  exporters::Manifest manifest;
  if (!fuzz::accepts(
          [&] { manifest = exporters::read_manifest("export.json", fuzz::text_of(data, size)); })) {
    return 0;
  }
  for (const auto& component : manifest.components) {
    fuzz::require(!component.file.empty() && component.file.find('/') == std::string::npos,
                  "a component's file is a name");
  }
  const std::string text = exporters::write_manifest(manifest);
  fuzz::require(exporters::write_manifest(exporters::read_manifest("again", text)) == text,
                "what is written reads back");
  return 0;
}
