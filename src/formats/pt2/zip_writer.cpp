#include "formats/pt2/zip_writer.h"

#include <algorithm>

#include "base/crc32.h"
#include "base/error.h"
#include "formats/pt2/deflate_zeros.h"
#include "ir/source_writer.h"

namespace tranship::pt2 {
namespace {

constexpr uint64_t kAlignment = 64;
constexpr uint32_t kLocalSignature = 0x04034b50;
constexpr uint32_t kEntrySignature = 0x02014b50;
constexpr uint32_t kEndSignature = 0x06054b50;
constexpr uint32_t kEnd64Signature = 0x06064b50;
constexpr uint32_t kLocatorSignature = 0x07064b50;
constexpr uint16_t kVersion = 20;    // of the format, that a reader needs
constexpr uint16_t kVersion64 = 45;  // the same with zip64
constexpr uint16_t kUtf8Flag = 0x0800;
constexpr uint16_t kDeflated = 8;
constexpr uint16_t kZip64Extra = 0x0001;
constexpr uint16_t kPaddingExtra = 0x4246;  // "FB", as PyTorch names it
constexpr uint16_t kFirstDay = 0x21;        // 1980-01-01: the earliest date there is
constexpr size_t kLocalHeaderSize = 30;
constexpr size_t kExtraHeaderSize = 4;
constexpr uint32_t kFull32 = 0xffffffff;  // "see zip64"
constexpr uint16_t kFull16 = 0xffff;

/// Little-endian numbers, one behind the other.
class Fields {
 public:
  Fields& u16(uint64_t value) { return add(value, 2); }
  Fields& u32(uint64_t value) { return add(value, 4); }
  Fields& u64(uint64_t value) { return add(value, 8); }
  Fields& text(std::string_view value) {
    bytes.append(value);
    return *this;
  }
  std::string bytes;

 private:
  Fields& add(uint64_t value, int count) {
    for (int i = 0; i < count; ++i) bytes.push_back(static_cast<char>(value >> (8 * i)));
    return *this;
  }
};

/// An extra field that makes what follows it begin at a multiple of 64.
std::string padding(uint64_t offset) {
  uint64_t missing = (kAlignment - offset % kAlignment) % kAlignment;
  if (missing == 0) return {};
  if (missing < kExtraHeaderSize) missing += kAlignment;
  const uint64_t content = missing - kExtraHeaderSize;
  return Fields().u16(kPaddingExtra).u16(content).text(std::string(content, 'Z')).bytes;
}

}  // namespace

void ZipWriter::add(std::string name, std::string bytes) {
  Record record;
  record.name = std::move(name);
  record.size_bytes = record.stored_bytes = bytes.size();
  record.crc = crc32(as_bytes(bytes));
  record.bytes = std::move(bytes);
  place(std::move(record));
}

void ZipWriter::add(std::string name, TensorSourcePtr source) {
  Record record;
  record.name = std::move(name);
  record.size_bytes = record.stored_bytes = source->size_bytes();
  record.source = std::move(source);
  place(std::move(record));
}

void ZipWriter::add_zeros(std::string name, uint64_t size_bytes) {
  if (size_bytes == 0) return add(std::move(name), std::string());
  Record record;
  record.name = std::move(name);
  record.bytes = deflate_zeros(size_bytes);
  record.is_deflated = true;
  record.size_bytes = size_bytes;
  record.stored_bytes = record.bytes.size();
  record.crc = crc32_of_zeros(size_bytes);
  place(std::move(record));
}

void ZipWriter::place(Record record) {
  const bool is_new = std::ranges::find(records_, record.name, &Record::name) == records_.end();
  check(is_new, "zip: two records are called " + record.name);
  record.header_offset = directory_offset_;
  record.data_offset = record.header_offset + local_header(record, 0).size();
  directory_offset_ = record.data_offset + record.stored_bytes;
  records_.push_back(std::move(record));
}

std::string ZipWriter::local_header(const Record& record, uint32_t crc) const {
  const bool large = is_large(record.size_bytes) || is_large(record.stored_bytes);
  Fields extra;
  if (large) extra.u16(kZip64Extra).u16(16).u64(record.size_bytes).u64(record.stored_bytes);
  extra.text(
      padding(record.header_offset + kLocalHeaderSize + record.name.size() + extra.bytes.size()));
  return Fields()
      .u32(kLocalSignature)
      .u16(large ? kVersion64 : kVersion)
      .u16(kUtf8Flag)
      .u16(record.is_deflated ? kDeflated : 0)
      .u16(0)
      .u16(kFirstDay)
      .u32(crc)
      .u32(large ? kFull32 : record.stored_bytes)
      .u32(large ? kFull32 : record.size_bytes)
      .u16(record.name.size())
      .u16(extra.bytes.size())
      .text(record.name)
      .text(extra.bytes)
      .bytes;
}

std::string ZipWriter::directory_entry(const Record& record, uint32_t crc) const {
  const bool large = is_large(record.size_bytes) || is_large(record.stored_bytes);
  const bool far = is_large(record.header_offset);
  Fields numbers;
  if (large) numbers.u64(record.size_bytes).u64(record.stored_bytes);
  if (far) numbers.u64(record.header_offset);
  Fields extra;
  if (large || far) extra.u16(kZip64Extra).u16(numbers.bytes.size()).text(numbers.bytes);
  return Fields()
      .u32(kEntrySignature)
      .u16(large || far ? kVersion64 : kVersion)
      .u16(large || far ? kVersion64 : kVersion)
      .u16(kUtf8Flag)
      .u16(record.is_deflated ? kDeflated : 0)
      .u16(0)
      .u16(kFirstDay)
      .u32(crc)
      .u32(large ? kFull32 : record.stored_bytes)
      .u32(large ? kFull32 : record.size_bytes)
      .u16(record.name.size())
      .u16(extra.bytes.size())
      .u16(0)  // comment
      .u16(0)  // disk
      .u16(0)  // attributes
      .u32(0)
      .u32(far ? kFull32 : record.header_offset)
      .text(record.name)
      .text(extra.bytes)
      .bytes;
}

uint64_t ZipWriter::directory_size() const {
  uint64_t size = 0;
  for (const Record& record : records_) size += directory_entry(record, 0).size();
  return size;
}

std::string ZipWriter::end_records() const {
  const uint64_t size = directory_size(), count = records_.size();
  const bool large = is_large(directory_offset_) || is_large(size) || count >= kFull16;
  Fields end;
  if (large) {
    end.u32(kEnd64Signature).u64(44).u16(kVersion64).u16(kVersion64).u32(0).u32(0);
    end.u64(count).u64(count).u64(size).u64(directory_offset_);
    end.u32(kLocatorSignature).u32(0).u64(directory_offset_ + size).u32(1);
  }
  const uint64_t short_count = large ? kFull16 : count;
  end.u32(kEndSignature).u16(0).u16(0).u16(short_count).u16(short_count);
  end.u32(large ? kFull32 : size).u32(large ? kFull32 : directory_offset_).u16(0);
  return end.bytes;
}

std::string ZipWriter::write(AtomicFile& file, std::string_view what, const Sink& sink) const {
  file.reserve(size_bytes());
  std::vector<PlacedSource> sources;
  for (const Record& record : records_) {
    if (record.source) sources.push_back({record.source, record.data_offset});
  }
  SourceWriter writer(file, size_bytes(), std::move(sources), SourceWriter::Checksums::kCrc32);
  writer.write(what, sink);
  const std::vector<uint32_t> sums = writer.checksums();
  std::vector<std::string> headers;
  std::string directory;
  size_t next = 0;
  for (const Record& record : records_) {
    const uint32_t crc = record.source ? sums[next++] : record.crc;
    headers.push_back(local_header(record, crc));
    directory += directory_entry(record, crc);
  }
  directory += end_records();
  std::vector<PlacedBytes> rest;
  for (size_t i = 0; i < records_.size(); ++i) {
    rest.push_back({records_[i].header_offset, as_bytes(headers[i])});
    if (!records_[i].source) rest.push_back({records_[i].data_offset, as_bytes(records_[i].bytes)});
  }
  rest.push_back({directory_offset_, as_bytes(directory)});
  for (const PlacedBytes& piece : rest) file.write_at(piece.offset, piece.bytes);
  return writer.hash(rest);
}

std::string ZipWriter::to_bytes() const {
  std::string out, directory;
  for (const Record& record : records_) {
    check(!record.source, "zip: a tensor in an archive in memory");
    out += local_header(record, record.crc) + record.bytes;
    directory += directory_entry(record, record.crc);
  }
  return out + directory + end_records();
}

}  // namespace tranship::pt2
