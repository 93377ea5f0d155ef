#include "fuzz.h"
#include "tranship/exporters.h"

using namespace tranship;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  OnnxConfig config;
  if (!fuzz::accepts([&] { config = OnnxConfig::from_json(text); })) return 0;
  const std::string written = config.to_json();
  fuzz::require(OnnxConfig::from_json(written).to_json() == written, "what is written reads back");
  fuzz::accepts([&] { AutoExportConfig::from_json(text); });
  return 0;
}
