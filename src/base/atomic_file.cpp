#include "base/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace tranship {
namespace {

/// What stands between a file's name and its writer's number while it is written.
constexpr std::string_view kMark = ".tranship-";

[[noreturn]] void fail_with_errno(const std::filesystem::path& path, std::string_view what) {
  const int reason = errno;
  fail(ErrorKind::kIo, "[write] '{}': {}: {}", path.string(), what, std::strerror(reason));
}

void write_all(int descriptor, Bytes bytes, uint64_t offset, const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_with_errno(path, "cannot write");
    bytes = bytes.subspan(static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
  }
}

}  // namespace

AtomicFile::AtomicFile(std::filesystem::path path) : path_(std::move(path)), temporary_(path_) {
  temporary_ += std::string(kMark) + std::to_string(::getpid());
  descriptor_ =
      ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (descriptor_ < 0) fail_with_errno(path_, "cannot create");
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_.c_str());
}

void AtomicFile::write(Bytes bytes) {
  write_all(descriptor_, bytes, position_, path_);
  position_ += bytes.size();
}

void AtomicFile::pad_to(size_t alignment) {
  static constexpr std::array<std::byte, 256> kZeros{};
  uint64_t missing = (alignment - position_ % alignment) % alignment;
  while (missing > 0) {
    const size_t n = std::min<uint64_t>(missing, kZeros.size());
    write(Bytes(kZeros.data(), n));
    missing -= n;
  }
}

void AtomicFile::write_range(const MappedFile& file, size_t offset, size_t size) {
  auto in = static_cast<off64_t>(offset);
  auto out = static_cast<off64_t>(position_);
  size_t left = size;
  while (left > 0) {
    const ssize_t n = ::copy_file_range(file.descriptor(), &in, descriptor_, &out, left, 0);
    if (n <= 0)
      break;  // not between these file systems, or the disk is full: plain writes will tell
    left -= static_cast<size_t>(n);
  }
  position_ += size - left;
  write(file.bytes().subspan(offset + size - left, left));
}

void AtomicFile::reserve(uint64_t size_bytes) {
  const int reason =
      size_bytes == 0 ? 0 : ::posix_fallocate(descriptor_, 0, static_cast<off_t>(size_bytes));
  if (reason == 0) return;
  if (reason == EOPNOTSUPP || reason == EINVAL) {
    if (::ftruncate(descriptor_, static_cast<off_t>(size_bytes)) == 0) return;
  } else {
    errno = reason;
  }
  fail_with_errno(path_, fmt::format("cannot reserve {} bytes", size_bytes));
}

void AtomicFile::write_at(uint64_t offset, Bytes bytes) {
  write_all(descriptor_, bytes, offset, path_);
}

void AtomicFile::commit() {
  const int descriptor = descriptor_;
  descriptor_ = -1;
  const bool closed = ::close(descriptor) == 0;
  if (!closed || ::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const int reason = errno;
    ::unlink(temporary_.c_str());
    errno = reason;
    fail_with_errno(path_, "cannot finish the file");
  }
}

void remove_leftovers(const std::filesystem::path& path) {
  const std::string start = path.filename().string() + std::string(kMark);
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(path.parent_path(), ignored)) {
    if (entry.path().filename().string().starts_with(start))
      std::filesystem::remove(entry.path(), ignored);
  }
}

bool is_leftover(const std::filesystem::path& path) {
  return path.filename().string().find(kMark) != std::string::npos;
}

std::string read_text(const std::filesystem::path& path, uint64_t limit_bytes) {
  const auto file = MappedFile::open(path);
  if (file->bytes().size() > limit_bytes) {
    fail(ErrorKind::kInvalidArgument,
         "[open] '{}' has {} bytes; at most {} are expected of such a file", path.string(),
         file->bytes().size(), limit_bytes);
  }
  return std::string(as_text(file->bytes()));
}

void write_text(const std::filesystem::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

}  // namespace tranship
