// What the sides of a comparison share.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "exporters/compare.h"
#include "ir/program.h"

namespace tranship::exporters {

/// Inputs that a model has a default for.
const std::set<std::string>& optional_inputs();

DType dtype_of(const ExportedModel& model);

/// The program of a .pt2 as this component; without recognizing anything in it, so that what is
/// computed is what the file says. Errors: those of the reader; unsupported for operators that
/// nobody has mapped.
ir::Program read_pt2(const std::filesystem::path& file, const std::string& component);

/// Programs in the interpreter; a component is the first's that has it. They are kept.
Side side_of(std::vector<ir::Program> programs, DType dtype, bool with_modules);

}  // namespace tranship::exporters
