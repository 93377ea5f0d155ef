#include "exporters/temporary_folder.h"

#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>

#include "base/error.h"

namespace tranship::exporters {

TemporaryFolder::TemporaryFolder() {
  std::error_code error;
  std::string name = (std::filesystem::temp_directory_path(error) / "tranship-XXXXXX").string();
  if (error || ::mkdtemp(name.data()) == nullptr) {
    fail(ErrorKind::kIo,
         "[run] cannot make a temporary folder '{}': {} (TMPDIR chooses another place)", name,
         error ? error.message() : std::strerror(errno));
  }
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace tranship::exporters
