// A zip archive of a stranger, read by its central directory: stored and deflated records, zip64,
// data descriptors. Records that are stored stay in the mapped file.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/tensor_source.h"

namespace tranship::pt2 {

/// A file within an archive, as the central directory has it.
struct ZipRecord {
  std::string name;        // "model/data/weights/weight_0"; never absolute, never with ".."
  size_t offset = 0;       // of its data, in the mapped file
  size_t stored_size = 0;  // bytes in the archive
  size_t size = 0;         // bytes of its content; the same unless deflated
  uint32_t crc = 0;
  bool deflated = false;
};

/// Shares the mapping of its file.
class ZipReader {
 public:
  /// Reads the directory; no record is touched but its header. The archive may be a part of a file:
  /// a record of another archive. Errors: corrupt for what is not a whole zip archive: no end of
  /// the directory, names twice, absolute or with "..", records outside of the file or over each
  /// other, sizes that no deflate gives; unsupported for encryption, several disks, and methods
  /// other than stored and deflate.
  static ZipReader open(FileRange archive);

  const std::string& file_name() const { return file_name_; }
  const std::map<std::string, ZipRecord, std::less<>>& records() const { return records_; }
  const ZipRecord* find(std::string_view name) const;

  /// Where a stored record lies in the mapped file; nothing for a deflated one.
  std::optional<FileRange> range(const ZipRecord& record) const;
  /// The content, checked against its CRC. Errors: corrupt for a wrong CRC, a wrong size, or bytes
  /// that are not deflate's; unsupported for one of more than `limit` bytes.
  std::vector<std::byte> content(const ZipRecord& record, size_t limit) const;
  /// The same, as text.
  std::string text(const ZipRecord& record, size_t limit) const;

 private:
  FileRange archive_;
  std::string file_name_;
  std::map<std::string, ZipRecord, std::less<>> records_;
};

}  // namespace tranship::pt2
