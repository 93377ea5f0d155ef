// A format that forgets an op: must not compile (-Werror=switch), unless COMPILES is defined, which
// adds the default.
#include "ir/op.h"

int lower(const tranship::ir::Op& op) {
  switch (op.kind) {
    case tranship::ir::OpKind::kInput:
      return 1;
#ifdef COMPILES
    default:
      return 0;
#endif
  }
  return 0;
}
