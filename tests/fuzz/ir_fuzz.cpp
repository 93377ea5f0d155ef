#include "fuzz.h"
#include "ir/text.h"
#include "ir/verify.h"

using namespace tranship;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::unique_ptr<ir::Graph> graph;
  if (!fuzz::accepts([&] { graph = ir::parse(fuzz::text_of(data, size)); })) return 0;
  ir::verify(*graph);
  const std::string text = ir::print(*graph);
  fuzz::require(ir::print(*ir::parse(text)) == text, "what is printed reads back");
  return 0;
}
