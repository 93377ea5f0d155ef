#include "formats/pt2/zip_reader.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"

namespace tranship::pt2 {
namespace {

constexpr std::string_view kOperation = "zip";
constexpr uint32_t kLocalHeader = 0x04034b50;
constexpr uint32_t kDirectoryEntry = 0x02014b50;
constexpr uint32_t kDirectoryEnd = 0x06054b50;
constexpr uint32_t kDirectoryEnd64 = 0x06064b50;
constexpr uint32_t kLocator64 = 0x07064b50;
constexpr size_t kDirectoryEndBytes = 22;
constexpr size_t kDirectoryEnd64Bytes = 56;
constexpr size_t kLocator64Bytes = 20;
constexpr size_t kMaxComment = 65535;
constexpr uint16_t kExtra64 = 1;
constexpr uint16_t kEncrypted = 1;
constexpr uint16_t kStored = 0;
constexpr uint16_t kDeflated = 8;
constexpr size_t kMaxDeflateRatio = 1032;  // what deflate reaches at best

struct Directory {
  size_t offset = 0;
  size_t size = 0;
  size_t num_entries = 0;
};

/// An entry of the directory; offsets within the archive.
struct Entry {
  ZipRecord record;
  size_t header_offset = 0;
};

class DirectoryReader {
 public:
  DirectoryReader(std::string_view file, Bytes archive) : file_(file), archive_(archive) {}

  std::vector<Entry> entries() const {
    const Directory directory = find();
    ByteReader reader(kOperation, file_, archive_.first(directory.offset + directory.size));
    reader.seek(directory.offset, "the central directory");
    std::vector<Entry> entries;
    for (size_t i = 0; i < directory.num_entries; ++i) entries.push_back(entry(reader));
    if (reader.left() != 0) {
      corrupt("the central directory has {} bytes after its {} entries", reader.left(),
              directory.num_entries);
    }
    for (Entry& e : entries) locate(e, directory.offset);
    check_overlaps(entries);
    return entries;
  }

 private:
  template <class... Args>
  [[noreturn]] void corrupt(fmt::format_string<Args...> format, const Args&... args) const {
    fail(ErrorKind::kCorrupt, "[zip] '{}': {}", file_,
         fmt::vformat(fmt::string_view(format), fmt::make_format_args(args...)));
  }

  /// The end record stands last, but for a comment that it gives the length of.
  size_t end_offset() const {
    if (archive_.size() < kDirectoryEndBytes)
      corrupt("{} bytes are too few for a zip archive", archive_.size());
    const size_t last = archive_.size() - kDirectoryEndBytes;
    const size_t first = last > kMaxComment ? last - kMaxComment : 0;
    for (size_t at = last + 1; at-- > first;) {
      ByteReader reader(kOperation, file_, archive_);
      reader.seek(at, "the end of the directory");
      if (reader.number<uint32_t>("a signature") != kDirectoryEnd) continue;
      reader.seek(at + 20, "the length of the comment");
      if (reader.number<uint16_t>("the length of the comment") == last - at) return at;
    }
    corrupt("there is no end of a central directory: not a zip archive, or cut short");
  }

  Directory find() const {
    const size_t end = end_offset();
    ByteReader reader(kOperation, file_, archive_);
    reader.seek(end + 4, "the end of the directory");
    const auto disk = reader.number<uint16_t>("a disk's number");
    const auto directory_disk = reader.number<uint16_t>("a disk's number");
    const auto entries_here = reader.number<uint16_t>("a number of entries");
    Directory d;
    d.num_entries = reader.number<uint16_t>("a number of entries");
    d.size = reader.number<uint32_t>("the directory's size");
    d.offset = reader.number<uint32_t>("the directory's offset");
    const bool has_locator =
        end >= kLocator64Bytes && signature(end - kLocator64Bytes) == kLocator64;
    size_t limit = end;
    if (has_locator) {
      limit = end - kLocator64Bytes;
      d = find64(limit);
    } else if (disk != 0 || directory_disk != 0 || entries_here != d.num_entries) {
      fail(ErrorKind::kUnsupported, "[zip] '{}' is split over several disks", file_);
    }
    if (d.offset > limit || d.size != limit - d.offset) {
      corrupt("the central directory is said to be {} bytes at {}, but ends at {}", d.size,
              d.offset, limit);
    }
    return d;
  }

  uint32_t signature(size_t offset) const {
    ByteReader reader(kOperation, file_, archive_);
    reader.seek(offset, "a signature");
    return reader.number<uint32_t>("a signature");
  }

  /// -> the directory; `limit` becomes where it has to end.
  Directory find64(size_t& limit) const {
    ByteReader reader(kOperation, file_, archive_);
    reader.seek(limit + 8, "the zip64 locator");
    const auto offset = reader.number<uint64_t>("the zip64 end's offset");
    if (limit < kDirectoryEnd64Bytes || offset > limit - kDirectoryEnd64Bytes)
      corrupt("the zip64 end of the directory is said to be at {}, outside of the file", offset);
    reader.seek(offset, "the zip64 end");
    if (reader.number<uint32_t>("a signature") != kDirectoryEnd64)
      corrupt("there is no zip64 end of the directory at {}", offset);
    const auto size = reader.number<uint64_t>("the zip64 end's size");
    if (size < kDirectoryEnd64Bytes - 12 || size != limit - offset - 12)
      corrupt("the zip64 end of the directory has a size of {}", size);
    reader.skip(12, "versions and disks");
    Directory d;
    const auto entries_here = reader.number<uint64_t>("a number of entries");
    d.num_entries = reader.number<uint64_t>("a number of entries");
    d.size = reader.number<uint64_t>("the directory's size");
    d.offset = reader.number<uint64_t>("the directory's offset");
    if (entries_here != d.num_entries)
      fail(ErrorKind::kUnsupported, "[zip] '{}' is split over several disks", file_);
    limit = offset;
    return d;
  }

  Entry entry(ByteReader& reader) const {
    const size_t at = reader.offset();
    if (reader.number<uint32_t>("a directory entry") != kDirectoryEntry)
      corrupt("there is no directory entry at {}", at);
    reader.skip(4, "versions");
    const auto flags = reader.number<uint16_t>("flags");
    const auto method = reader.number<uint16_t>("a method");
    reader.skip(4, "a time");
    Entry e;
    e.record.crc = reader.number<uint32_t>("a CRC");
    e.record.stored_size = reader.number<uint32_t>("a size");
    e.record.size = reader.number<uint32_t>("a size");
    const auto name_bytes = reader.number<uint16_t>("a length");
    const auto extra_bytes = reader.number<uint16_t>("a length");
    const auto comment_bytes = reader.number<uint16_t>("a length");
    const auto disk = reader.number<uint16_t>("a disk's number");
    reader.skip(6, "attributes");
    e.header_offset = reader.number<uint32_t>("an offset");
    e.record.name = std::string(as_text(reader.take(name_bytes, "a name")));
    check_name(e.record.name, at);
    widen(e, reader.take(extra_bytes, "extra fields"));
    reader.skip(comment_bytes, "a comment");
    if (disk != 0 && disk != 0xffff)
      fail(ErrorKind::kUnsupported, "[zip] '{}' is split over several disks", file_);
    e.record.deflated = method == kDeflated;
    check_method(e.record, flags, method);
    return e;
  }

  void check_method(const ZipRecord& record, uint16_t flags, uint16_t method) const {
    if ((flags & kEncrypted) != 0)
      fail(ErrorKind::kUnsupported, "[zip] '{}': the record '{}' is encrypted", file_, record.name);
    if (method != kStored && method != kDeflated) {
      fail(ErrorKind::kUnsupported,
           "[zip] '{}': the record '{}' is compressed by method {}, expected 0 (stored) or 8 "
           "(deflate)",
           file_, record.name, method);
    }
    const bool possible = method == kStored ? record.size == record.stored_size
                                            : record.size / kMaxDeflateRatio <= record.stored_size;
    if (!possible) {
      corrupt("the record '{}' is said to hold {} bytes in {} bytes of the file", record.name,
              record.size, record.stored_size);
    }
  }

  /// Sizes that do not fit in 32 bits stand in an extra field, in a fixed order.
  void widen(Entry& e, Bytes extra) const {
    constexpr size_t kWide = std::numeric_limits<uint32_t>::max();
    ByteReader fields(kOperation, file_, extra);
    while (fields.left() >= 4) {
      const auto id = fields.number<uint16_t>("an extra field");
      const auto size = fields.number<uint16_t>("an extra field's length");
      ByteReader field(kOperation, file_, fields.take(size, "an extra field"));
      if (id != kExtra64) continue;
      for (size_t* number : {&e.record.size, &e.record.stored_size, &e.header_offset}) {
        if (*number == kWide) *number = field.number<uint64_t>("a zip64 size");
      }
    }
  }

  void check_name(const std::string& name, size_t at) const {
    const auto refuse = [&](std::string_view why) {
      corrupt("the name of the directory entry at {} {}", at, why);
    };
    if (name.empty()) refuse("is empty");
    if (name.find('\0') != name.npos || name.find('\\') != name.npos)
      refuse("has a zero byte or a backslash");
    if (name.front() == '/' || (name.size() > 1 && name[1] == ':')) refuse("is absolute");
    for (size_t begin = 0; begin <= name.size();) {
      const size_t end = std::min(name.find('/', begin), name.size());
      const std::string_view part = std::string_view(name).substr(begin, end - begin);
      const bool is_folder_mark = part.empty() && end == name.size();
      if (part == "." || part == ".." || (part.empty() && !is_folder_mark))
        refuse("has an empty part, '.' or '..'");
      begin = end + 1;
    }
  }

  /// Finds the data behind the local header, which repeats the name.
  void locate(Entry& e, size_t directory_offset) const {
    ByteReader reader(kOperation, file_, archive_.first(directory_offset));
    reader.seek(e.header_offset, "a local header");
    if (reader.number<uint32_t>("a local header") != kLocalHeader)
      corrupt("the record '{}' has no header at {}", e.record.name, e.header_offset);
    reader.skip(22, "a local header");
    const auto name_bytes = reader.number<uint16_t>("a length");
    const auto extra_bytes = reader.number<uint16_t>("a length");
    if (as_text(reader.take(name_bytes, "a name")) != e.record.name)
      corrupt("the record '{}' has another name in its own header", e.record.name);
    reader.skip(extra_bytes, "extra fields");
    e.record.offset = reader.offset();
    if (e.record.stored_size > reader.left()) {
      corrupt(
          "the record '{}' is said to be {} bytes at {}, past the {} bytes before the directory",
          e.record.name, e.record.stored_size, e.record.offset, directory_offset);
    }
  }

  void check_overlaps(const std::vector<Entry>& entries) const {
    std::vector<const Entry*> sorted;
    for (const Entry& e : entries) sorted.push_back(&e);
    std::ranges::sort(sorted, {}, &Entry::header_offset);
    for (size_t i = 1; i < sorted.size(); ++i) {
      const ZipRecord& before = sorted[i - 1]->record;
      if (sorted[i]->header_offset < before.offset + before.stored_size) {
        corrupt("the records '{}' and '{}' lie over each other", before.name,
                sorted[i]->record.name);
      }
    }
  }

  std::string_view file_;
  Bytes archive_;
};

/// zlib's inflate over one record.
class Inflater {
 public:
  Inflater() { check(inflateInit2(&stream_, -MAX_WBITS) == Z_OK, "inflateInit2 fails"); }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  /// False unless the input is one whole stream that gives exactly the output.
  bool run(Bytes in, std::span<std::byte> out) {
    constexpr size_t kPiece = std::numeric_limits<uInt>::max();
    std::byte nowhere = {};  // zlib wants an address even for nothing
    int status = Z_OK;
    while (status == Z_OK) {
      const size_t give = std::min(in.size(), kPiece), room = std::min(out.size(), kPiece);
      stream_.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(in.data()));
      stream_.avail_in = static_cast<uInt>(give);
      stream_.next_out = reinterpret_cast<Bytef*>(out.empty() ? &nowhere : out.data());
      stream_.avail_out = static_cast<uInt>(room);
      status = inflate(&stream_, Z_NO_FLUSH);
      in = in.subspan(give - stream_.avail_in);
      out = out.subspan(room - stream_.avail_out);
    }
    return status == Z_STREAM_END && in.empty() && out.empty();
  }

 private:
  z_stream stream_ = {};
};

uint32_t crc_of(Bytes bytes) {
  return static_cast<uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace

ZipReader ZipReader::open(FileRange archive) {
  ZipReader reader;
  reader.file_name_ = archive.file->path().string();
  for (Entry& e : DirectoryReader(reader.file_name_, archive.bytes()).entries()) {
    e.record.offset += archive.offset;
    const std::string name = e.record.name;
    if (!reader.records_.emplace(name, std::move(e.record)).second) {
      fail(ErrorKind::kCorrupt, "[zip] '{}': two records have the name '{}'", reader.file_name_,
           name);
    }
  }
  reader.archive_ = std::move(archive);
  return reader;
}

const ZipRecord* ZipReader::find(std::string_view name) const {
  const auto it = records_.find(name);
  return it == records_.end() ? nullptr : &it->second;
}

std::optional<FileRange> ZipReader::range(const ZipRecord& record) const {
  if (record.deflated) return std::nullopt;
  return FileRange{archive_.file, record.offset, record.size};
}

std::vector<std::byte> ZipReader::content(const ZipRecord& record, size_t limit) const {
  if (record.size > limit) {
    fail(ErrorKind::kUnsupported, "[zip] '{}': the record '{}' holds {} bytes, expected at most {}",
         file_name_, record.name, record.size, limit);
  }
  const Bytes stored = archive_.file->bytes().subspan(record.offset, record.stored_size);
  std::vector<std::byte> out;
  if (record.deflated) {
    out.resize(record.size);
    if (!Inflater().run(stored, out)) {
      fail(ErrorKind::kCorrupt, "[zip] '{}': the record '{}' is not {} bytes compressed by deflate",
           file_name_, record.name, record.size);
    }
  } else {
    out.assign(stored.begin(), stored.end());
  }
  if (crc_of(out) != record.crc)
    fail(ErrorKind::kCorrupt, "[zip] '{}': the record '{}' does not have its CRC", file_name_,
         record.name);
  return out;
}

std::string ZipReader::text(const ZipRecord& record, size_t limit) const {
  return std::string(as_text(content(record, limit)));
}

}  // namespace tranship::pt2
