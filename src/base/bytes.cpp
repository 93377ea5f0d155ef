#include "base/bytes.h"

#include "base/error.h"

namespace tranship {

void ByteReader::seek(size_t offset, std::string_view what) {
  if (offset > bytes_.size()) {
    fail(ErrorKind::kCorrupt,
         "[{}] '{}': {} would start at byte {}, but the file has {}: incomplete download?",
         operation_, file_, what, offset, bytes_.size());
  }
  offset_ = offset;
}

Bytes ByteReader::take(size_t count, std::string_view what) {
  if (count > left()) {
    fail(ErrorKind::kCorrupt,
         "[{}] '{}': {} at byte {} needs {} bytes, but only {} are left: incomplete download?",
         operation_, file_, what, offset_, count, left());
  }
  const Bytes taken = bytes_.subspan(offset_, count);
  offset_ += count;
  return taken;
}

}  // namespace tranship
