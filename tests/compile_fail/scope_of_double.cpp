// One step down a Scope is a name or an int64_t; a number that merely converts must not compile.
#include "nn/scope.h"

tranship::nn::Scope step(const tranship::nn::Scope& m) {
#ifdef COMPILES
  return m / int64_t{3};
#else
  return m / 3.5;
#endif
}
