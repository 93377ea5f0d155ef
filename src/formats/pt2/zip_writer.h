// A zip archive as PyTorch lays one out: stored records at multiples of 64 bytes, so that weights
// can be mapped. Sizes are known before a byte is written; nothing large is held in memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "ir/tensor_source.h"
#include "tranship/sink.h"

namespace tranship::pt2 {

/// Collects the records of an archive, then writes it. The same records are the same bytes: there
/// are no dates. Sizes and offsets over 4 GB are written as zip64.
class ZipWriter {
 public:
  ZipWriter() = default;
  /// zip64_from: sizes and offsets from here on are written as zip64; for tests.
  explicit ZipWriter(uint64_t zip64_from) : zip64_from_(zip64_from) {}

  /// A record of bytes that are there. Names are ASCII, parts with '/', and differ (internal).
  void add(std::string name, std::string bytes);
  /// A record of a tensor's bytes, read when the archive is written.
  void add(std::string name, TensorSourcePtr source);
  /// A record of zeros, deflated: 1 byte for 159.
  void add_zeros(std::string name, uint64_t size_bytes);

  /// The whole archive's size.
  uint64_t size_bytes() const { return directory_offset_ + directory_size() + end_size(); }
  /// Writes all of it from the file's start -> the file's hash (base/file_hash.h). `what` is what
  /// the progress says. Errors: io; those of reading the sources.
  std::string write(AtomicFile& file, std::string_view what, const Sink& sink = {}) const;
  /// A small archive in memory. Errors: internal if a record is a tensor.
  std::string to_bytes() const;

 private:
  struct Record {
    std::string name;
    std::string bytes;       // as they lie in the archive
    TensorSourcePtr source;  // in place of bytes
    bool is_deflated = false;
    uint64_t size_bytes = 0;    // unpacked
    uint64_t stored_bytes = 0;  // in the archive
    uint64_t header_offset = 0;
    uint64_t data_offset = 0;
    uint32_t crc = 0;  // of a record of bytes; a tensor's is known when it is written
  };

  void place(Record record);
  bool is_large(uint64_t number) const { return number >= zip64_from_; }
  /// Headers take this length whatever the checksum is.
  std::string local_header(const Record& record, uint32_t crc) const;
  std::string directory_entry(const Record& record, uint32_t crc) const;
  uint64_t directory_size() const;
  std::string end_records() const;
  uint64_t end_size() const { return end_records().size(); }

  uint64_t zip64_from_ = 0xffffffff;
  std::vector<Record> records_;
  uint64_t directory_offset_ = 0;
};

}  // namespace tranship::pt2
