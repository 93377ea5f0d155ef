#include "tranship/version.h"

namespace tranship {

std::string_view version() { return TRANSHIP_VERSION; }

}  // namespace tranship
