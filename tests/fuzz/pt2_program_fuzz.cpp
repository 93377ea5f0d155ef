// model.json of a stranger, without the archive around it: schema, sizes, tree specs, and the
// import of every operator.
#include "formats/pt2/import.h"
#include "fuzz.h"
#include "ir/verify.h"

using namespace tranship;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::accepts([&] {
    pt2::Archive archive;
    archive.program = pt2::read_program("fuzz", fuzz::text_of(data, size));
    const pt2::ImportedProgram program = pt2::import_program(archive, "fuzz");
    for (const ir::Component& component : program.program.components) ir::verify(*component.graph);
  });
  return 0;
}
