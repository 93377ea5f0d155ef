#include "formats/pt2/zip_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/crc32.h"
#include "base/file_hash.h"
#include "base/testing.h"
#include "formats/pt2/deflate_zeros.h"

namespace tranship::pt2 {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kLocalSignature = "PK\3\4";

Tensor numbers(int64_t count) {
  Tensor tensor(DType::kF32, {count});
  for (int64_t i = 0; i < count; ++i) tensor.f32()[static_cast<size_t>(i)] = static_cast<float>(i);
  return tensor;
}

std::string write(const ZipWriter& zip, const std::filesystem::path& path) {
  AtomicFile file(path);
  const std::string hash = zip.write(file, "writing");
  file.commit();
  EXPECT_EQ(hash, hash_of(*MappedFile::open(path)));
  return read_text(path);
}

/// Info-ZIP's opinion: it unpacks each record and compares its checksum.
bool is_good_zip(const std::filesystem::path& path) {
  return std::system(("unzip -tqq '" + path.string() + "'").c_str()) == 0;
}

void fill(ZipWriter& zip) {
  zip.add("model/data/weights/weight_0", memory_source("w", numbers(100'000)));
  zip.add("model/data/weights/weight_1", memory_source("v", numbers(3)));
  zip.add("model/data/constants/empty", memory_source("e", numbers(0)));
  zip.add("model/models/model.json", std::string("{}"));
  zip.add_zeros("model/zeros", 1'000'000);
  zip.add("model/byteorder", std::string("little"));
}

TEST(ZipWriterTest, another_program_unpacks_it) {
  const TestFolder folder;
  ZipWriter zip;
  fill(zip);
  const std::string bytes = write(zip, folder / "a.zip");
  EXPECT_EQ(bytes.size(), zip.size_bytes());
  EXPECT_TRUE(is_good_zip(folder / "a.zip"));
  EXPECT_THAT(bytes, Not(HasSubstr("PK\6\6")));  // nothing needs zip64
}

TEST(ZipWriterTest, another_program_unpacks_zip64) {
  const TestFolder folder;
  for (const uint64_t from : {0u, 1u, 13u, 2000u, 400'000u, 500'000u}) {
    ZipWriter zip(from);
    fill(zip);
    const std::string bytes = write(zip, folder / "a.zip");
    EXPECT_EQ(bytes.size(), zip.size_bytes()) << from;
    EXPECT_TRUE(is_good_zip(folder / "a.zip")) << from;
  }
}

TEST(ZipWriterTest, data_begins_at_multiples_of_64) {
  for (const uint64_t zip64_from : {0u, 0xffffffffu}) {
    ZipWriter zip(zip64_from);
    std::string name;
    for (int i = 0; i < 150; ++i) zip.add(name += 'n', "DATA" + std::string(i % 67, '-') + "END");
    const std::string bytes = zip.to_bytes();
    size_t found = 0;
    for (size_t at = bytes.find("DATA"); at != bytes.npos; at = bytes.find("DATA", at + 1)) {
      EXPECT_EQ(at % 64, 0u) << found;
      ++found;
    }
    EXPECT_EQ(found, 150u);
  }
}

TEST(ZipWriterTest, the_local_headers_have_checksums_and_sizes_too) {
  ZipWriter zip;
  zip.add("name", std::string("123456789"));
  const std::string bytes = zip.to_bytes();
  ByteReader reader("test", "zip", as_bytes(bytes));
  EXPECT_EQ(as_text(reader.take(4, "signature")), kLocalSignature);
  reader.skip(10, "version, flags, method, date");
  EXPECT_EQ(reader.number<uint32_t>("checksum"), 0xcbf43926u);
  EXPECT_EQ(reader.number<uint32_t>("packed size"), 9u);
  EXPECT_EQ(reader.number<uint32_t>("size"), 9u);
}

TEST(ZipWriterTest, the_same_records_are_the_same_bytes_in_memory_and_in_a_file) {
  const TestFolder folder;
  ZipWriter a, b;
  for (ZipWriter* zip : {&a, &b}) {
    zip->add("x", std::string("one"));
    zip->add_zeros("y", 700);
  }
  EXPECT_EQ(a.to_bytes(), b.to_bytes());
  EXPECT_EQ(write(a, folder / "a.zip"), a.to_bytes());
}

TEST(ZipWriterTest, without_a_record_it_is_an_end_alone) {
  EXPECT_EQ(ZipWriter().to_bytes().size(), 22u);
}

TEST(ZipWriterTest, a_name_that_is_there_already_is_a_bug) {
  ZipWriter zip;
  zip.add("x", std::string());
  EXPECT_EQ(error_of([&] { zip.add_zeros("x", 5); }).kind(), ErrorKind::kInternal);
}

TEST(DeflateZerosTest, another_program_inflates_every_length) {
  const TestFolder folder;
  ZipWriter zip;
  for (uint64_t size = 1; size < 1100; ++size) zip.add_zeros(std::to_string(size), size);
  write(zip, folder / "a.zip");
  EXPECT_TRUE(is_good_zip(folder / "a.zip"));
}

TEST(DeflateZerosTest, the_checksum_is_that_of_zeros) {
  for (const size_t size : {0u, 1u, 2u, 3u, 64u, 1000u, 65'537u}) {
    const std::string zeros(size, '\0');
    EXPECT_EQ(crc32_of_zeros(size), crc32(as_bytes(zeros))) << size;
  }
}

TEST(DeflateZerosTest, a_gigabyte_is_some_megabytes) {
  EXPECT_LT(deflate_zeros(uint64_t{1} << 30).size(), size_t{7} << 20);
}

}  // namespace
}  // namespace tranship::pt2
