#include "base/directory_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace tranship {

DirectoryLock::DirectoryLock(const std::filesystem::path& directory)
    : descriptor_(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (descriptor_ < 0)
    fail(ErrorKind::kIo, "[save] '{}': {}", directory.string(), std::strerror(errno));
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) == 0) return;
  const int reason = errno;
  ::close(descriptor_);
  if (reason == EWOULDBLOCK) {
    fail(ErrorKind::kIo,
         "[save] '{}': another export is writing there; wait for it, or choose another directory",
         directory.string());
  }
  if (reason != ENOLCK && reason != EOPNOTSUPP) {
    fail(ErrorKind::kIo, "[save] '{}' cannot be locked: {}", directory.string(),
         std::strerror(reason));
  }
  descriptor_ = -1;  // a file system without locks: as well as can be
}

DirectoryLock::~DirectoryLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace tranship
