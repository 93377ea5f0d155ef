#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace tranship {

std::shared_ptr<const MappedFile> MappedFile::open(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) fail(ErrorKind::kIo, "[open] '{}': {}", path.string(), std::strerror(errno));
  struct stat status{};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor);
    fail(ErrorKind::kInvalidArgument, "[open] '{}' is not a regular file", path.string());
  }
  const auto size = static_cast<size_t>(status.st_size);
  const std::byte* data = nullptr;
  if (size > 0) {
    void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (address == MAP_FAILED) {
      const int reason = errno;
      ::close(descriptor);
      fail(ErrorKind::kIo, "[open] '{}': cannot map {} bytes: {}", path.string(), size,
           std::strerror(reason));
    }
    data = static_cast<const std::byte*>(address);
  }
  return std::shared_ptr<const MappedFile>(new MappedFile(path, descriptor, Bytes(data, size)));
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  ::close(descriptor_);
}

void MappedFile::release(size_t offset, size_t size) const {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t begin = (offset + page - 1) / page * page;
  const size_t end = (offset + size) / page * page;
  if (begin < end && end <= bytes_.size()) {
    ::madvise(const_cast<std::byte*>(bytes_.data()) + begin, end - begin, MADV_DONTNEED);
  }
}

}  // namespace tranship
