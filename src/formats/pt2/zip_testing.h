// Archives made by hand, whole or broken on purpose. For *_test.cpp files only.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tranship::pt2::testing {

/// A record as it is written; what is set differs from what would be right.
struct TestRecord {
  std::string name;
  std::string content;
  bool deflated = false;
  bool descriptor = false;  // sizes and CRC behind the data, as torch writes them
  bool wide = false;        // sizes and offset in a zip64 field
  std::optional<std::string> name_in_header = {};
  std::optional<uint64_t> size = {};
  std::optional<uint64_t> stored_size = {};
  std::optional<uint64_t> offset = {};
  std::optional<uint32_t> crc = {};
  std::optional<uint16_t> method = {};
  uint16_t flags = 0x800;
};

struct TestArchive {
  std::vector<TestRecord> records;
  bool zip64 = false;
  std::string comment = {};
  std::optional<uint32_t> directory_offset = {};
  std::optional<uint32_t> directory_size = {};
  std::optional<uint16_t> num_entries = {};
};

/// The low bytes of a number.
template <class T>
void put(std::string& out, uint64_t value) {
  for (size_t i = 0; i < sizeof(T); ++i) out += static_cast<char>((value >> (8 * i)) & 0xff);
}

inline std::string deflate_raw(std::string_view content) {
  z_stream stream = {};
  deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, static_cast<uLong>(content.size())), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

struct WrittenRecord {
  uint64_t offset = 0;
  uint64_t stored_size = 0;
  uint64_t size = 0;
  uint32_t crc = 0;
};

inline WrittenRecord write_record(const TestRecord& r, std::string& out) {
  const std::string data = r.deflated ? deflate_raw(r.content) : r.content;
  WrittenRecord w{out.size(), data.size(), r.content.size(), 0};
  w.crc = static_cast<uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(r.content.data()),
                                      static_cast<uInt>(r.content.size())));
  const std::string& name = r.name_in_header.value_or(r.name);
  put<uint32_t>(out, 0x04034b50);
  put<uint16_t>(out, 20);
  put<uint16_t>(out, r.flags | (r.descriptor ? 8U : 0U));
  put<uint16_t>(out, r.deflated ? 8U : 0U);
  put<uint32_t>(out, 0);
  put<uint32_t>(out, r.descriptor ? 0 : w.crc);
  put<uint32_t>(out, r.descriptor ? 0 : w.stored_size);
  put<uint32_t>(out, r.descriptor ? 0 : w.size);
  put<uint16_t>(out, name.size());
  put<uint16_t>(out, 6);  // padding, as torch aligns
  out += name + std::string("FB\2\0ZZ", 6) + data;
  if (r.descriptor) {
    put<uint32_t>(out, 0x08074b50);
    put<uint32_t>(out, w.crc);
    put<uint32_t>(out, w.stored_size);
    put<uint32_t>(out, w.size);
  }
  return w;
}

inline void write_entry(const TestRecord& r, const WrittenRecord& w, std::string& out) {
  constexpr uint64_t kWide = 0xffffffff;
  const uint64_t size = r.size.value_or(w.size), stored = r.stored_size.value_or(w.stored_size),
                 offset = r.offset.value_or(w.offset);
  put<uint32_t>(out, 0x02014b50);
  put<uint32_t>(out, 0);
  put<uint16_t>(out, r.flags);
  put<uint16_t>(out, r.method.value_or(r.deflated ? uint16_t{8} : uint16_t{0}));
  put<uint32_t>(out, 0);
  put<uint32_t>(out, r.crc.value_or(w.crc));
  put<uint32_t>(out, r.wide ? kWide : stored);
  put<uint32_t>(out, r.wide ? kWide : size);
  put<uint16_t>(out, r.name.size());
  put<uint16_t>(out, r.wide ? 28 : 0);
  put<uint16_t>(out, 0);
  put<uint16_t>(out, 0);
  put<uint16_t>(out, 0);
  put<uint32_t>(out, 0);
  put<uint32_t>(out, r.wide ? kWide : offset);
  out += r.name;
  if (!r.wide) return;
  put<uint16_t>(out, 1);
  put<uint16_t>(out, 24);
  for (const uint64_t number : {size, stored, offset}) put<uint64_t>(out, number);
}

inline std::string bytes_of(const TestArchive& archive) {
  std::string out;
  std::vector<WrittenRecord> written;
  for (const TestRecord& r : archive.records) written.push_back(write_record(r, out));
  const size_t directory = out.size();
  for (size_t i = 0; i < written.size(); ++i) write_entry(archive.records[i], written[i], out);
  const size_t size = out.size() - directory, count = written.size();
  if (archive.zip64) {
    const size_t end = out.size();
    put<uint32_t>(out, 0x06064b50);
    put<uint64_t>(out, 44);
    put<uint32_t>(out, 0);
    put<uint64_t>(out, 0);
    for (const size_t number : {count, count, size, directory}) put<uint64_t>(out, number);
    put<uint32_t>(out, 0x07064b50);
    put<uint32_t>(out, 0);
    put<uint64_t>(out, end);
    put<uint32_t>(out, 1);
  }
  put<uint32_t>(out, 0x06054b50);
  put<uint32_t>(out, 0);
  for (int i = 0; i < 2; ++i)
    put<uint16_t>(
        out, archive.zip64 ? 0xffff : archive.num_entries.value_or(static_cast<uint16_t>(count)));
  put<uint32_t>(out, archive.zip64 ? 0xffffffff
                                   : archive.directory_size.value_or(static_cast<uint32_t>(size)));
  put<uint32_t>(out, archive.zip64
                         ? 0xffffffff
                         : archive.directory_offset.value_or(static_cast<uint32_t>(directory)));
  put<uint16_t>(out, archive.comment.size());
  return out + archive.comment;
}

}  // namespace tranship::pt2::testing
