#include "base/mapped_file.h"

#include <fcntl.h>
#include <sanitizer/asan_interface.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace tranship {
namespace {

size_t page_bytes() { return static_cast<size_t>(::sysconf(_SC_PAGESIZE)); }

/// The mapped bytes behind the end of a file: the rest of its last page.
Bytes tail_of(Bytes bytes) {
  const size_t page = page_bytes();
  return {bytes.data() + bytes.size(), (page - bytes.size() % page) % page};
}

}  // namespace

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
    const Bytes tail = tail_of({data, size});  // the address sanitizer finds reads past the end
    ASAN_POISON_MEMORY_REGION(tail.data(), tail.size());
  }
  return std::shared_ptr<const MappedFile>(new MappedFile(path, descriptor, Bytes(data, size)));
}

std::shared_ptr<const MappedFile> MappedFile::of_memory(std::filesystem::path path, Bytes bytes) {
  return std::shared_ptr<const MappedFile>(new MappedFile(std::move(path), -1, bytes));
}

MappedFile::~MappedFile() {
  if (descriptor_ < 0) return;
  if (!bytes_.empty()) {
    const Bytes tail = tail_of(bytes_);
    ASAN_UNPOISON_MEMORY_REGION(tail.data(), tail.size());
    ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  }
  ::close(descriptor_);
}

void MappedFile::release(size_t offset, size_t size) const {
  if (descriptor_ < 0) return;
  const size_t page = page_bytes();
  const size_t begin = (offset + page - 1) / page * page;
  const size_t end = (offset + size) / page * page;
  if (begin < end && end <= bytes_.size()) {
    ::madvise(const_cast<std::byte*>(bytes_.data()) + begin, end - begin, MADV_DONTNEED);
  }
}

}  // namespace tranship
